"""The bounds of [002] beside what the mechanisms really do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from scipy import special, stats

from discreet.core.airlock import Airlock
from discreet.entrance import open_airlock
from discreet.networks.posterior import Posterior
from discreet.papers import posterior
from discreet.papers.posterior.basis import bound_cells, close_downward
from discreet.papers.theory.guarantees import bound_fourier, bound_maximum, tabulate
from discreet.values.budget import PureDP
from discreet.values.errors import MechanismError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table, count_cells

NAMES = ("y", "a", "b", "c")
SIZES = dict.fromkeys(NAMES, 2)
DAG_4 = DAG.build({"y": [], "a": ["y"], "b": ["y"], "c": ["y", "a"]})
SCHEMA = Schema.of({name: ["0", "1"] for name in NAMES})
ROWS = {name: np.random.default_rng(i).integers(0, 2, 60) for i, name in enumerate(NAMES)}


@dataclass(frozen=True, slots=True)
class DivergenceBound:
    """Bounds on KL(posterior ‖ noisy posterior): as printed, and the largest that the cut-off updates allow at all."""

    expected: float
    """Printed: Σ n·ln((α + Δα)(β + Δβ)). At a uniform prior and an empty row it is 0, where noise is not."""
    deviation: float
    """Printed: √(−½·Σc·ln δ), c = (2n + 1)·ln(α + β + 2n + 2); McDiarmid's inequality has c² there."""
    worst: float
    """The divergence is convex in the updates, so its largest value on [0, n] is at a corner; this always holds."""


def bound_divergence(
    alphas: Sequence[np.ndarray], updates: Sequence[np.ndarray], rows: int, delta: float
) -> DivergenceBound:
    """Theorem 1 for Beta posteriors: α and the true updates of each node, with two levels along the last axis."""
    expected = spread = worst = 0.0
    for prior, update in zip(alphas, updates, strict=True):
        alpha = np.asarray(prior, dtype=np.float64).reshape(-1, 2)
        counts = np.asarray(update, dtype=np.float64).reshape(-1, 2)
        expected += float((rows * np.log((alpha + counts).prod(axis=1))).sum())
        spread += float(((2 * rows + 1) * np.log(alpha.sum(axis=1) + 2 * rows + 2)).sum())
        corners = [
            diverge(alpha + counts, alpha + rows * np.array(corner))
            for corner in ((0, 0), (0, 1), (1, 0), (1, 1))
        ]
        worst += float(np.max(corners, axis=0).sum())
    return DivergenceBound(expected, math.sqrt(-0.5 * spread * math.log(delta)), worst)


def diverge(mine: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """KL between Beta distributions, one in each line."""

    def log_beta(found: np.ndarray) -> np.ndarray:
        return np.asarray(special.gammaln(found).sum(axis=1) - special.gammaln(found.sum(axis=1)))

    slope = special.digamma(mine) - special.digamma(mine.sum(axis=1))[:, None]
    return np.asarray(log_beta(theirs) - log_beta(mine) + ((mine - theirs) * slope).sum(axis=1))


def bound_updates(
    dag: DAG, sizes: Mapping[str, int], epsilon: float, delta: float, *, replaced: bool = True
) -> float:
    """‖Δω − Δω'‖∞ ≤ (2|I|/ε)·ln(cells/δ) with probability 1 − δ [002, Prop. 1]; half of it under add-remove.

    Integer noise exceeds the next whole number with no larger a probability.
    """
    cells = sum(count_cells(sizes[name] for name in family) for family in dag.families())
    return (2 if replaced else 1) * len(dag) / epsilon * math.log(cells / delta)


def bound_stealth(dag: DAG, sizes: Mapping[str, int], scale: float, t: float) -> tuple[float, float]:
    """What stealth adds to the total of every table, 2t·scale·|N_I|, and how likely no cell is negative [002, Cor. 3].

    With the printed scale 2|N_I|/ε this is 4t|N_I|²/ε, spread over the cells.
    """
    return 2.0 * t * scale * bound_cells(close_downward(dag.families()), sizes), 1.0 - math.exp(-t)


KAPPA, OMEGA = 4.91081, 1.25643
"""The constants of [002, Thm. 4.2]."""


@dataclass(frozen=True, slots=True)
class StochasticBound:
    """What Theorem 4.2 guarantees: no event moves by more than `delta` between neighbours; above 1 that is nothing."""

    m: float
    delta: float
    conditions: bool
    """Whether the premises of the theorem hold; if not, it says nothing either."""

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee excludes nothing at all."""
        return self.delta >= 1.0 or not self.conditions

    def __str__(self) -> str:
        if not self.conditions:
            return "no guarantee: the premises of Theorem 4.2 do not hold"
        verdict = "vacuous: a probability cannot move further" if self.vacuous else "(0, δ)-private"
        return f"M = {self.m:.3g}, δ = {self.delta:.3g}: {verdict}"


def bound_log_ratio(floor: float, levels: int = 2) -> float:
    """L = log((1 − (k−1)ω)/ω), the most that one value in place of another changes a log-probability of at least ω."""
    if not 0 < floor <= 1 / levels:
        raise MechanismError(f"ω is above 0 and at most 1/{levels}, not {floor:g}")
    return math.log((1 - (levels - 1) * floor) / floor)


def sum_log_ratios(floors: Sequence[float], levels: Sequence[int]) -> float:
    """Σ_i L_i: what a whole record changes log p_θ by.

    Lemma 2 of [002] states max_i L_i per unit of a distance that adds up the nodes; a record is d units away, and a
    child's conditional changes with its parents, too.
    """
    return math.fsum(bound_log_ratio(omega, k) for omega, k in zip(floors, levels, strict=True))


def concentrate(alpha: float, beta: float, start: float) -> float:
    """The c of a Beta(α, β) prior: the largest with P(|log(θ/(1−θ))| > L) ≤ e^{−cL} for all L ≥ L₀ [002, Asm. 2]."""
    if not (alpha > 0 and beta > 0 and start > 0):
        raise MechanismError("α, β and L₀ are above 0")
    # Beyond the grid the rate only nears its limit min(α, β) from below or stays above it.
    lengths = start + np.linspace(0.0, 600.0 / max(1.0, min(alpha, beta)), 20_001)
    border = 1.0 / (1.0 + np.exp(lengths))
    with np.errstate(divide="ignore"):
        tail = np.log(special.betainc(alpha, beta, border) + special.betainc(beta, alpha, border))
    rates = -tail[np.isfinite(tail)] / lengths[np.isfinite(tail)]
    return float(min(rates.min(initial=math.inf), min(alpha, beta)))


def join_concentrations(rates: Sequence[float], start: float) -> float:
    """c' = min c_i − ln|I|/L₀, or 0 where |I| > e^{L₀·min c_i} and the lemma does not apply [002, Lemma 3]."""
    return max(0.0, min(rates) - math.log(len(rates)) / start)


def compare_likelihoods(priors: Mapping[str, npt.ArrayLike]) -> dict[str, float]:
    """C_i = max_x 1/E[θ_x]: the maximum over the marginal likelihood of one value of node i [002, Thm. 4.2]."""
    found = {}
    for name, prior in priors.items():
        alpha = np.asarray(prior, dtype=np.float64)
        found[name] = float((alpha.sum(axis=-1, keepdims=True) / alpha).max())
    return found


def bound_stochastically(
    rate: float, start: float, ratios: Sequence[float], *, share: float = 0.5, distance: float = 1.0
) -> StochasticBound:
    """M and δ = √(M/2·max(ρ, 1)) of Theorem 4.2, from c, L₀ and the C_i; `share` is the δ in ρ ≤ (1 − δ)c."""
    if not 0 < share < 1:
        raise MechanismError(f"the share lies strictly between 0 and 1, not {share}")
    if not rate > 0:
        return StochasticBound(math.inf, math.inf, False)
    c = math.prod(ratios)
    inner = math.exp(-start * share * rate) / (math.exp(-OMEGA * (1 - share)) - math.exp(-OMEGA))
    inner += math.exp(start * (1 - share) * rate)
    m = KAPPA / rate + start * (1 / (1 - math.exp(-OMEGA)) + 1) + math.log(c) + math.log(inner)
    holds = distance <= (1 - share) * rate
    return StochasticBound(m * c, math.sqrt(m * c / 2.0 * max(distance, 1.0)), holds)


def open_rows() -> Airlock:
    return open_airlock(ROWS, SCHEMA, budget=PureDP(10**6), unit="replace-one")


def exact_tables() -> list[Table]:
    with open_rows() as airlock:
        return [found.noisy for found in airlock.reveal(DAG_4.families(), reason="test")]


def test_updates_stay_within_proposition_1() -> None:
    """With δ = 0.2, at most a fifth of 100 releases may leave the bound; and they do come near it."""
    airlock, truth = open_rows(), exact_tables()
    bound = bound_updates(DAG_4, SIZES, 1.0, 0.2)
    assert bound == pytest.approx(8 * math.log(18 / 0.2))
    far = []
    for _ in range(100):
        found = posterior.laplace(airlock, DAG_4, spend=1)
        assert found.updates is not None
        far.append(max(np.abs(u.values - t.values).max() for u, t in zip(found.updates, truth, strict=True)))
    assert 1 <= sum(gap > bound for gap in far) <= stats.binom.isf(1e-7, 100, 0.2)
    assert bound_updates(DAG_4, SIZES, 1.0, 0.2, replaced=False) == pytest.approx(bound / 2)


def test_the_divergence_never_leaves_its_corners_and_the_printed_mean_fails_on_an_empty_row() -> None:
    schema, dag = Schema.of({"y": ["0", "1"]}), DAG.build({"y": []})
    exact = Posterior(schema, dag, (Table(("y",), np.array([1.0, 1.0])),))
    bound = bound_divergence([np.ones(2)], [np.zeros(2)], 50, 0.05)
    assert bound.expected == 0.0 and bound.deviation > 0
    rng = np.random.default_rng(3)
    measured = []
    for noise in rng.laplace(scale=10, size=(300, 2)):
        noisy = Posterior(schema, dag, (Table(("y",), 1 + np.clip(noise, 0, 50)),))
        measured.append(exact.kl(noisy))
    assert np.mean(measured) > 0.5  # beyond the printed bound on the mean
    assert max(measured) <= bound.worst + 1e-9
    full = bound_divergence([np.ones(2)], [np.array([20.0, 30.0])], 50, 0.05)
    assert full.expected == pytest.approx(50 * math.log(21 * 31))
    assert full.worst < full.expected  # where there are counts, the printed bound holds with room to spare


def test_the_printed_numbers_of_theorem_3_and_corollary_3() -> None:
    """On bits, with the printed scale: (4|N|/ε)(2^|π|·ln(|N|/δ) + t|N|) and 4t|N|²/ε."""
    size = 1 + 4 + 4 + 1  # ∅, four single bits, ya yb yc ac, yac
    scale = 2 * size / 0.5
    printed = 4 * size / 0.5 * (2**2 * math.log(size / 0.1) + 1.5 * size)
    assert bound_fourier(DAG_4, SIZES, "c", scale, 0.1, t=1.5) == pytest.approx(printed)
    raised, chance = bound_stealth(DAG_4, SIZES, scale, 1.5)
    assert raised == pytest.approx(4 * 1.5 * size**2 / 0.5)
    assert chance == pytest.approx(1 - math.exp(-1.5))


def test_fourier_tables_stay_within_theorem_3() -> None:
    airlock, truth = open_rows(), exact_tables()
    beyond = 0
    for _ in range(60):
        found = posterior.fourier(airlock, DAG_4, spend=1, sensitivity="paper")
        assert found.updates is not None
        gap = np.abs(found.updates[3].values - truth[3].values).sum()
        beyond += gap > bound_fourier(DAG_4, SIZES, "c", 20.0, 0.2)
    assert beyond <= stats.binom.isf(1e-7, 60, 0.2)  # none, as a rule


def test_lemma_4_holds_on_a_grid_once_the_sensitivity_is_in_it() -> None:
    """P(score < best − 2t) computed in full, at several Δ; the printed bound, for Δ = ½, fails at a larger one."""
    scores = np.random.default_rng(4).normal(scale=6, size=500)
    failed = False
    for sensitivity in (0.5, 2.0, 10.0):
        chance = np.exp(0.8 * (scores - scores.max()) / (2 * sensitivity))
        chance /= chance.sum()
        for t in (0.5, 2.0, 5.0):
            low = chance[scores <= scores.max() - 2 * t].sum()
            mass = float((scores > scores.max() - t).mean())
            assert low <= bound_maximum(0.8, t, mass, sensitivity) + 1e-12
            failed |= low > bound_maximum(0.8, t, mass)
    assert failed


def test_table_1_has_a_line_for_each_mechanism() -> None:
    lines = tabulate(DAG_4, SIZES, 1.0, 60)
    assert [line.mechanism for line in lines] == ["Laplace", "Fourier", "Sampler", "MAP"]
    assert all(math.isfinite(line.bound) and line.bound > 0 for line in lines)
    assert lines[2].bound == pytest.approx(1 / (1 + math.exp(1 / 8)))
    assert "0.4688" in str(lines[2])
    with pytest.raises(MechanismError):
        tabulate(DAG_4, SIZES, 0.0, 60)


def test_lipschitz_constants_of_networks_add_up() -> None:
    assert bound_log_ratio(0.25) == pytest.approx(math.log(3))
    assert bound_log_ratio(0.1, 3) == pytest.approx(math.log(8))
    assert sum_log_ratios([0.25, 0.25, 0.1], [2, 2, 3]) == pytest.approx(2 * math.log(3) + math.log(8))
    with pytest.raises(MechanismError):
        bound_log_ratio(0.6)


@pytest.mark.parametrize(("alpha", "beta", "start"), [(1.0, 1.0, 1.0), (5.0, 5.0, 0.5), (0.7, 2.0, 2.0)])
def test_a_prior_concentrates_as_fast_as_it_says_and_no_faster(
    alpha: float, beta: float, start: float
) -> None:
    rate = concentrate(alpha, beta, start)
    law = stats.beta(alpha, beta)

    def outside(length: float) -> float:
        border = 1 / (1 + math.exp(length))
        return float(law.cdf(border) + law.sf(1 - border))

    lengths = np.linspace(start, start + 30, 400)
    assert all(outside(length) <= math.exp(-rate * length) * (1 + 1e-9) for length in lengths)
    assert any(outside(length) > math.exp(-1.05 * rate * length) for length in lengths)
    assert rate <= min(alpha, beta)


def test_the_stochastic_guarantee_is_vacuous_for_uniform_priors() -> None:
    """[002, Thm. 4.2] Even one bit under a uniform prior has δ above 1; seventeen have more than a thousand."""
    ratios = compare_likelihoods({"y": np.ones(2), "x": np.ones((2, 2))})
    assert ratios == {"y": 2.0, "x": 2.0}
    rate = join_concentrations([concentrate(50.0, 50.0, 1.0)], 1.0)
    one = bound_stochastically(rate, 1.0, [2.0])
    many = bound_stochastically(rate, 1.0, [2.0] * 17)
    assert one.delta > 1 and one.vacuous and "vacuous" in str(one)
    assert many.delta > 1000
    assert join_concentrations([1.0] * 5, 1.0) == 0.0
    nothing = bound_stochastically(0.0, 1.0, [2.0])
    assert nothing.vacuous and "premises" in str(nothing)
    assert not StochasticBound(0.02, 0.1, True).vacuous
    assert "private" in str(StochasticBound(0.02, 0.1, True))
