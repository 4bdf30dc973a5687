"""`discreet credal` and `discreet bounds`: intervals are made, undone and refused; errors stand beside their bounds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.networks.credal import from_noise, read_credal

ASIA = dc.examples.load("asia")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("credal")
    rows = ASIA.sample(2000, rng=1)
    rows.write(folder / "rows.csv")
    ASIA.schema.write(folder / "schema.toml")
    ASIA.write(folder / "truth.json")
    made = dc.release(
        rows.arrow(labels=True),
        ASIA.schema,
        ASIA.dag,
        epsilon=1,
        ledger=folder / "l",
        account="a",
        create=True,
    )
    made.write(folder / "release.json")
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> str:
    assert main([str(argument) for argument in arguments]) == code
    said = capsys.readouterr()
    return said.out if code == 0 else said.err


def test_a_dirichlet_model_is_made_of_public_rows_only_and_gives_all_away(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "idm.json"
    asked: list[Any] = ["credal", "idm", place / "rows.csv", "--schema", place / "schema.toml"]
    asked += ["--graph", place / "truth.json", "--strength", 5, "--out", out]
    assert "gives their exact frequencies away" in run(capsys, *asked, code=2) and not out.exists()
    below = [-1 if word == 5 else word for word in asked]
    assert "not negative, not -1" in run(capsys, *below, "--public-rows", code=2) and not out.exists()
    run(capsys, *asked, "--public-rows")
    found = json.loads(
        run(capsys, "credal", "recover", out, "--strength", 5, "--out", place / "back.json", "--json")
    )
    assert found["rows"] == pytest.approx(2000)
    ratio = json.loads(run(capsys, "credal", "recover", out, "--json"))
    assert ratio["rows"] == pytest.approx(400) and "times S" in ratio["words"][1]
    back = dc.read_network(place / "back.json")
    smoke = np.mean(ASIA.sample(2000, rng=1).codes()["smoke"] == 0)
    assert back.query("smoke").table.values[0] == pytest.approx(smoke)


def test_a_contamination_is_undone_with_its_share(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = place / "mixed.json"
    run(capsys, "credal", "contaminate", place / "truth.json", "--share", 0.25, "--out", out)
    found = json.loads(run(capsys, "credal", "recover", out, "--out", place / "pure.json", "--json"))
    assert found["contamination"] == pytest.approx(0.25) and "rows" not in found
    for mine, true in zip(dc.read_network(place / "pure.json").cpts, ASIA.cpts, strict=True):
        assert np.allclose(mine.values, true.values, atol=1e-12)
    assert "between 0 and 1" in run(
        capsys, "credal", "contaminate", place / "truth.json", "--share", 2, "--out", out, code=2
    )


def test_intervals_around_noise_are_those_of_the_library_and_give_no_counts(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = place / "noise.json"
    said = run(capsys, "credal", "noise", place / "release.json", "--coverage", 0.9, "--out", out)
    assert "90 % sure" in said
    network = dc.read_release(place / "release.json").network
    for one, two in zip(read_credal(out).lower, from_noise(network, 0.9).lower, strict=True):
        assert np.allclose(one.values, two.values)
    found = json.loads(run(capsys, "credal", "recover", out, "--json"))
    assert "rows" not in found and "no counts" in found["words"][1]
    assert "does not say what was measured" in run(
        capsys, "credal", "noise", place / "truth.json", "--out", out, code=2
    )
    assert "a credal network (.json) is needed" in run(
        capsys, "credal", "recover", place / "truth.json", code=2
    )


def test_errors_stand_between_their_bounds(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["bounds", place / "release.json", "--truth", place / "truth.json", "--rows", 2000]
    found = json.loads(run(capsys, *asked, "--json"))
    assert [one["attribute"] for one in found["known"]] == list(ASIA.nodes)
    for one in found["known"]:
        assert one["error"] <= one["sure"] + 1e-8  # ten digits are published
        if one["upper"] > one["lower"]:
            assert one["mu"] == pytest.approx((one["error"] - one["lower"]) / (one["upper"] - one["lower"]))
    own = {one["attribute"]: one["own"] for one in found["expected"]}
    for one in found["expected"]:
        above = ASIA.dag.ancestors([one["attribute"]])
        assert one["bound"] == pytest.approx(min(2.0, sum(own[name] for name in above)))
    assert [one["mechanism"] for one in found["guarantees"]] == ["Laplace", "Fourier", "Sampler", "MAP"]
    assert "mean μ" in run(capsys, *asked)
    assert "give the true network" in run(capsys, "bounds", place / "truth.json", code=2)


def test_networks_that_are_the_same_in_all_digits_have_no_error_to_normalise(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A BIF file rounds: what is left of that is no error that a μ could be made of."""
    dc.read_release(place / "release.json").network.write(place / "same.bif")
    found = json.loads(run(capsys, "bounds", place / "release.json", "--truth", place / "same.bif", "--json"))
    assert [one["mu"] for one in found["known"]] == [0.0] * len(ASIA.nodes)


def test_help_keeps_its_formulas(capsys: pytest.CaptureFixture[str]) -> None:
    assert "(n + S)/(N + S)" in " ".join(run(capsys, "credal", "idm", "--help").split())
