"""`discreet compare`: nothing apart from itself, whatever the order; what differs is measured by hand here."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.comparison import compare
from discreet.networks.network import Network
from discreet.values.errors import NetworkError


def make(lung: float, yes: float = 0.5) -> Network:
    return Network.build(
        {"smoke": ["yes", "no"], "lung": ["yes", "no"]},
        {"smoke": [], "lung": ["smoke"]},
        {"smoke": [yes, 1 - yes], "lung": [[lung, 1 - lung], [0.1, 0.9]]},
    )


def test_a_network_is_nowhere_from_itself() -> None:
    for name in ("asia", "child"):
        found = compare(dc.examples.load(name), dc.examples.load(name))
        assert all((node.l1, node.kl, node.marginal) == (0.0, 0.0, 0.0) for node in found.nodes)


def test_distances_by_hand() -> None:
    """Half of the people smoke, so a row that is off by 0.2 in both cells counts half: L1 = 0.2, TV = 0.1."""
    smoke, lung = compare(make(0.5), make(0.7)).nodes
    assert (smoke.l1, smoke.marginal) == (0.0, 0.0)
    assert lung.l1 == pytest.approx(0.2)
    assert lung.marginal == pytest.approx(0.1)
    assert lung.kl == pytest.approx(0.5 * (0.7 * np.log(0.7 / 0.5) + 0.3 * np.log(0.3 / 0.5)), rel=1e-6)


def test_other_parents_leave_the_marginals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turned = Network.build(
        {"lung": ["yes", "no"], "smoke": ["yes", "no"]},
        {"lung": [], "smoke": ["lung"]},
        {"lung": [0.3, 0.7], "smoke": [[0.5 * 0.5 / 0.3, 1 - 0.25 / 0.3], [0.25 / 0.7, 0.45 / 0.7]]},
    )
    make(0.5).write(tmp_path / "a.json")
    turned.write_bif(tmp_path / "b.bif")
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.bif"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [node["L1"] for node in found["attributes"]] == [None, None]
    assert found["mean marginal TV"] == pytest.approx(0.0, abs=1e-12)
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.bif")]) == 0
    assert "other parents" in capsys.readouterr().out


def test_networks_over_other_attributes_are_refused() -> None:
    with pytest.raises(NetworkError, match="in one network only"):
        compare(dc.examples.asia(), make(0.5))
    other = Network.build(
        {"smoke": ["no", "yes"], "lung": ["yes", "no"]},
        {"smoke": [], "lung": []},
        {"smoke": [1, 0], "lung": [1, 0]},
    )
    with pytest.raises(NetworkError, match="levels of 'smoke'"):
        compare(make(0.5), other)
