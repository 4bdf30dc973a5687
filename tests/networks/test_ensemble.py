"""Plausible networks and the rule that combines what m synthetic tables say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

import discreet as dc
from chance import SURE
from discreet.doors.cli import main
from discreet.judge.tails import bound_share_above, bound_share_below
from discreet.networks.ensemble import draw_networks, find_student, pool
from discreet.values.errors import NetworkError


def test_student_is_scipys() -> None:
    """Quantiles for few and many degrees of freedom."""
    for degrees in (1.0, 2.5, 4.0, 30.0, 400.0):
        for share in (0.75, 0.975, 0.995):
            assert find_student(share, degrees) == pytest.approx(student.ppf(share, degrees), rel=2e-3)


def test_combined_intervals_hold_at_least_as_often_as_they_say() -> None:
    """Where a truth, a posterior and synthetic tables are all normal, the rule is safe; one table alone is not."""
    rng = np.random.default_rng(5)
    trials, m, spread, within = 3000, 10, 1.0, 0.5
    hits = alone = 0
    for _ in range(trials):
        centre = rng.normal(0.0, np.sqrt(spread))  # the posterior is off the truth, 0, by as much as it says
        found = rng.normal(centre, np.sqrt(spread), m) + rng.normal(0.0, np.sqrt(within), m)
        joined = pool(found, [within] * m)
        hits += joined.lower <= 0 <= joined.upper
        alone += abs(found[0]) <= 1.96 * np.sqrt(within)
    doubt = 1 - SURE
    assert bound_share_below(hits, trials, doubt) > 0.95
    assert bound_share_above(alone, trials, doubt) < 0.8


def test_what_cannot_be_combined_is_refused() -> None:
    """Fewer than two tables, unequal lists, no numbers."""
    for estimates, variances in (([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([1.0, np.nan], [1.0, 1.0])):
        with pytest.raises(NetworkError):
            pool(estimates, variances)
    flat = pool([1.0, 1.0, 1.0], [0.5, 0.5, 0.5])
    assert flat.standard_error == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("graph", [True, False])
def test_plausible_networks_scatter_around_the_released_one(graph: bool) -> None:
    """Their mean is near, their spread is that of noise and sampling, and the same seed gives the same ones."""
    asia = dc.examples.asia()
    rows = asia.sample(5000, rng=2).arrow()
    release = dc.release(rows, asia.schema, asia.dag if graph else None, epsilon=2)
    drawn = draw_networks(release.network, 30, rng=1)
    again = draw_networks(release.network, 30, rng=1)
    assert all(one.close_to(two) for one, two in zip(drawn, again, strict=True))
    found = np.array([network.query("bronc", {"smoke": "yes"})["yes"] for network in drawn])
    sampling = np.sqrt(0.6 * 0.4 / 2500)
    assert 0.4 * sampling < found.std() < 4 * sampling  # about 1, give or take 0.1; of noise alone 0.1
    assert (
        abs(found.mean() - release.query("bronc", {"smoke": "yes"})["yes"])
        < 5 * found.std() / np.sqrt(30) + 0.01
    )


def test_several_tables_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One file for each, drawn from networks of their own."""
    asia = dc.examples.asia()
    release = dc.release(asia.sample(2000, rng=2).arrow(), asia.schema, asia.dag, epsilon=2)
    release.write(tmp_path / "release.json")
    out = str(tmp_path / "rows.csv")
    command = ["synthesize", str(tmp_path / "release.json"), "--rows", "300", "--out", out]
    assert main([*command, "--tables", "3"]) == 0
    files = sorted(path.name for path in tmp_path.glob("rows*.csv"))
    assert files == ["rows-1.csv", "rows-2.csv", "rows-3.csv"]
    texts = {(tmp_path / name).read_text("utf-8") for name in files}
    assert len(texts) == 3
    assert "dc.pool" in capsys.readouterr().out
    assert main([*command, "--tables", "1"]) == 2
    assert "--tables must be 2 or more" in capsys.readouterr().err


@pytest.mark.slow
def test_synthetic_tables_of_a_release_have_honest_standard_errors() -> None:
    """Over many samples and releases, combined intervals hold the population's share; naive ones hold less often."""
    asia = dc.examples.asia()
    truth = asia.query("bronc", {"smoke": "yes"})["yes"]
    trials, hits, naive = 60, 0, 0
    for k in range(trials):
        release = dc.release(asia.sample(1000, rng=k).arrow(), asia.schema, asia.dag, epsilon="1/2")
        shares, errors = [], []
        for i, network in enumerate(draw_networks(release.network, 10, rng=k)):
            codes = network.sample(1000, rng=i).codes()
            smoked = codes["smoke"] == asia.schema["smoke"].code("yes")
            share = float((codes["bronc"][smoked] == asia.schema["bronc"].code("yes")).mean())
            shares.append(share)
            errors.append(share * (1 - share) / smoked.sum())
        joined = pool(shares, errors)
        hits += joined.lower <= truth <= joined.upper
        naive += abs(shares[0] - truth) <= 1.96 * np.sqrt(errors[0])
    assert bound_share_above(hits, trials, 1 - SURE) > 0.95
    assert hits / trials > 0.85
    assert naive < hits
