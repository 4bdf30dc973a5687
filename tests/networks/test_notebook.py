"""What values show in a notebook: a table with what one looks for, and no text that becomes markup."""

from __future__ import annotations

from pathlib import Path

import discreet as dc
from discreet.entrance import open_ledger
from discreet.networks.network import Network
from discreet.values.budget import PureDP
from discreet.values.notebook import MOST_LINES, tabulate


def test_a_long_table_says_how_much_it_leaves_out() -> None:
    page = tabulate("numbers", ["n"], ([k] for k in range(MOST_LINES + 7)))
    assert page.count("<tr><td>") == MOST_LINES and "… and 7 more" in page
    assert "more" not in tabulate("numbers", ["n"], [[1]])


def test_a_network_shows_its_families() -> None:
    page = dc.examples.asia()._repr_html_()
    assert "<td>dysp</td><td>yes, no</td><td>bronc, either</td><td>8</td>" in page
    assert "expected error" not in page


def test_a_private_network_shows_what_noise_does_to_each_table() -> None:
    asia = dc.examples.asia()
    airlock = dc.open_airlock(asia.sample(200, rng=1).arrow(), asia.schema, budget="1")
    learned = dc.learn.planned(airlock, asia.dag, spend="1")
    assert learned.provenance is not None
    assert f"± {learned.provenance.predicted_error['dysp']:.4f}" in learned._repr_html_()


def test_names_stay_text() -> None:
    evil = "<script>"
    page = Network.build({evil: ["<b>", "&"]}, {evil: []}, {evil: [0.5, 0.5]})._repr_html_()
    assert evil not in page and "<b>" not in page and "&lt;script&gt;" in page


def test_a_ledger_shows_what_is_left(tmp_path: Path) -> None:
    with open_ledger(tmp_path / "book", create=True) as ledger:
        ledger.open_account("clinic", PureDP(2), "add-remove")
        ledger.debit("clinic", "first", PureDP("1/2"), {})
        page = ledger._repr_html_()
    assert "<td>clinic</td><td>add-remove</td><td>ε = 2</td><td>ε = 0.5</td><td>ε = 1.5</td>" in page
