"""Releases beside each other: what changed by more than noise, and an index page that vouches for what it lists."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.publishing.catalog import write_catalog
from discreet.judge.publishing.differences import find_differences
from discreet.values.errors import FormatError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SCHEMA = dc.Schema.of({"a": ["x", "y", "z"], "b": ["no", "yes"]})
DAG = dc.DAG.build({"a": (), "b": ("a",)})


def make_rows(shares: tuple[float, float, float], ill: float, count: int = 4000) -> dict[str, list[str]]:
    """Exact shares, so that what the tables say is known."""
    a = np.repeat(["x", "y", "z"], [round(count * share) for share in shares])
    b = np.where(np.arange(len(a)) % 1000 < 1000 * ill, "yes", "no")
    return {"a": a.tolist(), "b": b.tolist()}


def publish(rows: dict[str, list[str]], **more: object) -> dc.Release:
    return dc.release(rows, SCHEMA, DAG, **{"epsilon": 1, "account": "clinic", **more})


def test_real_changes_are_found_and_noise_is_not() -> None:
    """Each interval of a difference holds the true one; failing takes noise beyond guaranteed bounds of 95 %, so 6
    of 8 tries miss (at most 5 % each) less than once in a million times."""
    before, after = make_rows((0.5, 0.3, 0.2), 0.2), make_rows((0.3, 0.3, 0.4), 0.2)
    true = {"P(a=x)": -0.2, "P(a=y)": 0.0, "P(a=z)": 0.2}
    missed = 0
    for _ in range(8):
        found = find_differences(publish(before), publish(after))
        by_question = {change.question: change for change in found.changes}
        missed += any(not by_question[name].low <= by <= by_question[name].high for name, by in true.items())
        assert {"P(b=yes)", "P(b=yes | a=x)"} <= set(by_question)
    assert missed < 6
    sure = {change.question for change in found.sure}
    assert {"P(a=x)", "P(a=z)"} <= sure  # a fifth of 4,000 rows beside noise of a few: certain
    assert "differ by more than noise" in found.explain() and found.to_json()["coverage"] == 0.95


def test_a_release_and_itself_differ_in_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = publish(make_rows((0.5, 0.3, 0.2), 0.2))
    assert find_differences(made, made).sure == ()
    made.write(tmp_path / "one.json")
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "one.json")]) == 0
    assert "0 of 11 probabilities differ by more than noise" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "one.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"]["more than noise"] == 0
    made.network.write_bif(tmp_path / "one.bif")
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "one.bif")]) == 0
    assert "noise" not in capsys.readouterr().out
    forged = (tmp_path / "one.json").read_text("utf-8").replace("2.72 times", "1.01 times")
    (tmp_path / "forged.json").write_text(forged, "utf-8")
    for told in (
        ["compare", str(tmp_path / "forged.json"), str(tmp_path / "one.json")],
        ["statement", str(tmp_path / "forged.json")],
        ["statement", str(tmp_path / "forged.json"), "--json"],
        ["statement", str(tmp_path / "forged.json"), "--format", "registry"],
    ):
        assert main(told) == 2
        assert "forged.json does not add up (promise: the words do not say" in capsys.readouterr().err


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("catalogue")
    rows = make_rows((0.5, 0.3, 0.2), 0.2, 400)
    paid = {"ledger": str(place / "l.ledger"), "budget": "epsilon=4", "create": True}
    (place / "site").mkdir()
    words = {"title": "<b>First</b> & last", "description": "d < e"}
    publish(rows, **paid, about=words).write(place / "site" / "2025 a")
    publish(rows, **paid, request="second").write(place / "site" / "second.json")
    publish(rows, **paid, request="unpublished")
    return place


def test_the_page_lists_every_release_with_files_and_checksums(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = published / "site"
    assert (
        main(["catalog", str(site), "--ledger", str(published / "l.ledger"), "--title", "Our <releases>"])
        == 0
    )
    told = capsys.readouterr()
    assert "paid for, and not listed: clinic: unpublished, ε = 1" in told.err and "warning" not in told.err
    page = (site / "index.html").read_text("utf-8")
    assert "<b>First" not in page and "&lt;b&gt;First" in page and "Our &lt;releases&gt;" in page
    assert "it adds up</p>" in page and "unpublished" in page
    links = re.findall(r"href='([^']+)'", page)
    assert len(links) > 6
    for link in links:
        assert (site / link.replace("%20", " ")).is_file(), link
    for line in (site / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((site / name).read_bytes()).hexdigest() == digest
        assert name == "index.html" or digest in page
    assert "Variant and parameters" in (site / "2025 a" / "statement.txt").read_text("utf-8")
    before = page
    write_catalog(site, "Our <releases>")
    assert "nobody vouches" in (site / "index.html").read_text("utf-8") and before != ""


def test_what_does_not_add_up_is_not_listed(published: Path, tmp_path: Path) -> None:
    shutil.copytree(published / "site", tmp_path / "site")
    path = tmp_path / "site" / "second.json"
    document = json.loads(path.read_text("utf-8"))
    document["provenance"]["measurements"][0]["counts"][0] += 50
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(FormatError, match=r"second\.json: not listed, because it does not add up"):
        write_catalog(tmp_path / "site", "x")
    path.write_text("{", "utf-8")
    with pytest.raises(FormatError, match=r"second\.json: it may be a release, but cannot be read"):
        write_catalog(tmp_path / "site", "x")
    (tmp_path / "bare").mkdir()
    with pytest.raises(FormatError, match="no release in it"):
        write_catalog(tmp_path / "bare", "x")
    with pytest.raises(FormatError, match="no such folder"):
        write_catalog(tmp_path / "nowhere", "x")


@pytest.mark.parametrize("name", ["explorer.html", "report.html", "network.bif"])
def test_a_page_that_discreet_did_not_make_is_not_listed(name: str, published: Path, tmp_path: Path) -> None:
    """A catalogue vouches for what it links to: a page with another promise in it is found."""
    shutil.copytree(published / "site", tmp_path / "site")
    page = tmp_path / "site" / "2025 a" / name
    page.write_text(page.read_text("utf-8").replace("0.", "0.0", 1), "utf-8")
    with pytest.raises(FormatError, match=f"not listed, because it does not add up: {name}"):
        write_catalog(tmp_path / "site", "x")


def test_private_files_beside_releases_are_neither_linked_nor_summed_but_named(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    shutil.copy(published / "l.ledger", site / "2025 a" / "l.ledger")
    assert main(["catalog", str(site)]) == 0
    assert "l.ledger is no part of a release" in capsys.readouterr().err
    assert "l.ledger" not in (site / "index.html").read_text("utf-8") + (site / "SHA256SUMS").read_text(
        "utf-8"
    )
