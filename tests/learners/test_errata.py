"""The arithmetic behind `docs/errata.md`: each test shows a printed formula at fault, without our code."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaln, digamma

from discreet.compute.metrics import FLOOR
from discreet.networks import examples

Array = npt.NDArray[np.float64]


def printed_marginal(family: Array, parents: Array) -> Array:
    """[000, Proc. 1]: T/T_pa over its sum along the child; the child is the last axis."""
    quotient = family / parents[..., None]
    return np.asarray(quotient / quotient.sum(axis=-1, keepdims=True))


def test_procedure_1_does_not_depend_on_the_parent_table() -> None:
    """[000, Proc. 1] T_pa cancels: any two parent tables give the same result, which is no joint."""
    family = np.array([[30.0, 10.0], [5.0, 55.0], [1.0, 1.0]])
    one = printed_marginal(family, np.array([40.0, 60.0, 2.0]))
    other = printed_marginal(family, np.array([7.0, 1000.0, 3.0]))
    assert np.allclose(one, other, rtol=0, atol=1e-15)
    assert one.sum() == pytest.approx(3.0)  # one for each parent row: a conditional, where 1 was meant


def printed_error(conditional: Array, parents: Array, family: Array) -> float:
    """[000, Eq. 12]: the mean of Θ·sqrt(1/T_pa² + 1/T²) over the cells."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float((conditional * np.sqrt(1 / parents[..., None] ** 2 + 1 / family**2)).mean())


def test_equation_12_is_ruled_by_rare_rows_of_the_parents() -> None:
    """[000, Eq. 12] With Θ = T/T_pa a cell's own count cancels: rare cells hardly matter, rare parent rows rule."""
    parents = np.array([1000.0, 1000.0])
    even, rare_cell = np.full((2, 2), 500.0), np.array([[500.0, 500.0], [999.0, 1.0]])
    usual = printed_error(even / parents[:, None], parents, even)
    conditional = rare_cell / parents[:, None]
    assert printed_error(conditional, parents, rare_cell) == pytest.approx(
        (np.sqrt(1 + conditional**2) / parents[:, None]).mean()
    )
    assert printed_error(conditional, parents, rare_cell) == pytest.approx(usual, rel=0.05)
    rare_row = np.array([[500.0, 500.0], [1.0, 1.0]])
    few = np.array([1000.0, 2.0])
    assert printed_error(rare_row / few[:, None], few, rare_row) > 200 * usual
    mirrored = np.array([1000.0, -2.0])  # noise has made the parent row negative: it counts like one of 2
    assert printed_error(rare_row / few[:, None], mirrored, rare_row) > 200 * usual
    assert (
        printed_error(even / parents[:, None], 0.5 * parents, even) > 1.1 * usual
    )  # so T_pa does have an effect


@settings(deadline=None, max_examples=100)
@given(st.floats(0.001, 5), st.floats(0.001, 0.999))
def test_a_sample_is_always_noisier_than_all_rows(epsilon: float, rate: float) -> None:
    """[000, Sec. 3.3] β·ln(1 + (e^ε − 1)/β) ≤ ε: noise on a sample, scaled up to all rows, is never narrower."""
    amplified = math.log1p(math.expm1(epsilon) / rate)
    assert rate * amplified <= epsilon * (1 + 1e-12)
    printed = 1 / amplified < 1 / epsilon
    assert printed  # without the factor 1/β the sample looks better
    paper = 0.1 * math.log1p(math.expm1(0.1) / 0.1)
    assert 0.1 / paper == pytest.approx(1.39, abs=0.005)


def test_a_co_parent_can_depend_on_the_node() -> None:
    """[000, Sec. 3.4] X → V → W → C, X → C: W is C's other parent, no child of X, and P(W) moves with P(X)."""
    follow = np.array([[0.9, 0.1], [0.2, 0.8]])
    marginals = [np.array([1 - x, x]) @ follow @ follow for x in (0.1, 0.6)]
    assert np.abs(marginals[0] - marginals[1]).sum() > 0.4


def test_a_node_moves_what_lies_outside_of_its_blanket() -> None:
    """[000, Sec. 3.4] X → Y → Z: Z is no part of X's blanket {Y}, and P(Z) moves with P(X)."""
    follow = np.array([[0.9, 0.1], [0.2, 0.8]])
    moved = [(np.array([1 - x, x]) @ follow @ follow)[0] for x in (0.1, 0.6)]
    assert abs(moved[0] - moved[1]) > 0.2


def test_equation_8_keeps_a_factor_that_a_derivative_removes() -> None:
    """[000, Eq. 8] A, B → C: the printed product over all ancestors is Θ[A=0] times the derivative by Θ[A=0]."""
    rng = np.random.default_rng(8)
    of_a, of_b = rng.dirichlet([1, 1]), rng.dirichlet([1, 1])
    of_c = rng.dirichlet([1, 1], size=(2, 2))

    def chance(first: float) -> float:
        return float(np.einsum("a,b,ab->", [first, of_a[1]], of_b, of_c[:, :, 0]))

    derivative = (chance(of_a[0] + 1e-3) - chance(of_a[0])) / 1e-3
    assert derivative == pytest.approx(of_b @ of_c[0, :, 0])  # as in the paper's own example
    printed = sum(of_a[0] * of_b[b] * of_c[0, b, 0] for b in (0, 1))
    assert printed == pytest.approx(of_a[0] * derivative) != pytest.approx(derivative)


def test_the_weights_of_equation_17_do_not_add_up() -> None:
    """[001, Eq. 17] Tables i … j are summed and divided by ε_1 + … + ε_j: two exact ones of four give a half."""
    epsilon, margin = np.full(4, 0.25), 0.8
    printed = (epsilon[2:] * margin).sum() / epsilon.sum()
    assert printed == pytest.approx(margin / 2)
    assert (epsilon[2:] * margin).sum() / epsilon[2:].sum() == pytest.approx(margin)


def test_the_example_of_an_elimination_repeats_a_line() -> None:
    """[001, Sec. 8.3] φ_{B,C}[1, 0] as printed is φ_{B,C}[0, 1]; summing A out gives another number."""
    rng = np.random.default_rng(8)
    of_a, of_c = rng.dirichlet([1, 1]), rng.dirichlet([1, 1], size=(2, 2))  # of_c[a, b, c]
    factor = np.einsum("a,abc->bc", of_a, of_c)
    printed = of_a[0] * of_c[0, 0, 1] + of_a[1] * of_c[1, 0, 1]
    assert printed == pytest.approx(factor[0, 1]) != pytest.approx(factor[1, 0])
    assert factor[1, 0] == pytest.approx(of_a[0] * of_c[0, 1, 0] + of_a[1] * of_c[1, 1, 0])


def printed_shares(weights: Array) -> Array:
    """[000, Eq. 13]: each share is a product of √c over all other nodes, c = 1/(W·δ)."""
    roots = 1 / np.sqrt(weights)
    with np.errstate(over="ignore", invalid="ignore"):
        products = np.array([np.prod(np.delete(roots, i)) for i in range(len(roots))])
        return np.asarray(products / products.sum())


def test_equation_13_is_a_square_root_rule_that_overflows_as_printed() -> None:
    """[000, Eq. 13] The shares are ε_i ∝ √(W_i·δ_i); the printed products leave float64 on a larger graph."""
    rng = np.random.default_rng(13)
    small = rng.uniform(1e-6, 1e-4, size=37)
    assert np.allclose(printed_shares(small), np.sqrt(small) / np.sqrt(small).sum(), rtol=1e-12, atol=0)
    assert not np.isfinite(printed_shares(rng.uniform(1e-6, 1e-4, size=200))).all()


def variance_of_mean(weights: Array, variances: Array) -> float:
    """The variance of a weighted mean of independent estimates."""
    shares = weights / weights.sum()
    return float((shares**2 * variances).sum())


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.floats(0.01, 10), st.integers(1, 1000)), min_size=2, max_size=6))
def test_linear_weights_never_beat_inverse_variance(tables: list[tuple[float, int]]) -> None:
    """[001, Eq. 17] A margin that sums c cells of noise 2/ε has variance 8c/ε²; weights ε ignore both."""
    epsilon, cells = np.array(tables).T
    variances = 8 * cells / epsilon**2
    best = variance_of_mean(1 / variances, variances)
    assert variance_of_mean(epsilon, variances) >= best * (1 - 1e-12)


def test_linear_weights_can_be_worse_than_the_best_table_alone() -> None:
    """[001, Eq. 17] A margin of 1 cell averaged with one of 15: four times the variance of the former."""
    variances = 8 * np.array([1.0, 15.0])  # at ε = 1 the margin sums 1 cell here, 15 there
    assert variance_of_mean(np.ones(2), variances) == pytest.approx(4 * variances[0])
    assert variance_of_mean(1 / variances, variances) < variances[0]


def test_equation_18_makes_negative_cells() -> None:
    """[001, Eq. 18] Spreading a correction evenly over the cells of a margin takes small ones below zero."""
    table, agreed = np.array([[0.30, 0.02], [0.40, 0.28]]), np.array([0.20, 0.80])
    corrected = table + (agreed - table.sum(axis=1))[:, None] / 2
    assert np.allclose(corrected.sum(axis=1), agreed)
    assert corrected.min() < 0


def test_line_17_weighs_the_first_stage_far_above_its_worth() -> None:
    """[000, Alg. 1, line 17] At the paper's β = 0.1 and ε_I = ε_B/10 its mean has over twice the variance of
    the second stage alone, and more than the whole budget spent evenly at once (D-Ind)."""
    total, first, rate = 1.0, 0.1, 0.1
    amplified = math.log((math.exp(first) - 1) / rate + 1)
    noise_first = 1 / (amplified * rate)  # relative to the rows: noise at ε on βn of them
    noise_second = 1 / (total - first)
    weight = first / total
    printed = weight**2 * noise_first**2 + (1 - weight) ** 2 * noise_second**2
    assert printed > 2 * noise_second**2
    assert printed > 2.9 * (1 / total) ** 2
    assert 1 / (1 / noise_first**2 + 1 / noise_second**2) < noise_second**2  # inverse variance does not lose


def test_divergence_from_a_deterministic_conditional_is_infinite() -> None:
    """[000, Sec. 5.1] Σ P̃ ln(P̃/P) with a P̃ that noise has moved off a 0 of Asia's `either`."""
    asia = examples.asia()
    true = asia.cpts[asia.dag.index("either")].values
    assert (true == 0).any()
    noisy = 0.99 * true + 0.01 / 2
    with np.errstate(divide="ignore"):
        assert np.isinf((noisy * np.log(noisy / true)).sum())
        floored = np.maximum(true, FLOOR)
        assert np.isfinite((noisy * np.log(noisy / floored)).sum())


def test_the_log_ratio_of_a_record_grows_with_the_number_of_nodes() -> None:
    """[002, Thm. 4.1] With d bits in [ω, 1−ω] the posterior moves by d·log((1−ω)/ω), beyond 2·‖L‖∞."""
    omega, nodes = 0.3, 5
    grid = np.linspace(omega, 1 - omega, 401)
    one_bit = (grid / grid.sum())[-1] / ((1 - grid) / (1 - grid).sum())[-1]  # all ones against all zeros
    lipschitz = math.log((1 - omega) / omega)
    moved = nodes * math.log(one_bit)
    assert moved > 2 * lipschitz
    assert moved <= 2 * nodes * lipschitz


def test_lemma_2_asks_that_no_arrow_matters() -> None:
    """[002, Lemma 2] x_i = y_i makes L_i·ρ_i(x_i, y_i) = 0, so that p(x_i | x_π) may not depend on the parents."""
    child = np.array([[0.6, 0.4], [0.5, 0.5]])  # of X_i given its parent, hardly an arrow
    moved = abs(math.log(child[0, 0] / child[1, 0]))  # rows (0, 0) and (1, 0): the child's value is the same
    distance = 0.0
    assert all(moved > lipschitz * distance for lipschitz in (1.0, 10.0, 1e9))


def test_the_posterior_density_moves_more_than_the_map_mechanism_claims() -> None:
    """[002, Alg. 3] At ω = 0.4 one of 1, 10, 100 rows moves the density by 2.0, 3.5, 4.1; Δ claims 0.64."""
    omega = 0.4
    grid = np.linspace(omega, 1 - omega, 2001)

    def density(ones: int, rows: int) -> Array:
        log_likelihood = ones * np.log(grid) + (rows - ones) * np.log1p(-grid)
        likelihood = np.exp(log_likelihood - log_likelihood.max())
        return np.asarray(likelihood / np.trapezoid(likelihood, grid))

    claimed = math.sqrt(math.log((1 - omega) / omega))
    moved = [max(np.abs(density(k, n) - density(k + 1, n)).max() for k in range(n)) for n in (1, 10, 100)]
    assert claimed == pytest.approx(0.637, abs=1e-3)
    assert moved == pytest.approx([2.0, 3.52, 4.11], abs=0.02)


@pytest.mark.parametrize("rows", [10, 1000, 100_000])
def test_clamping_a_posterior_sample_is_not_private(rows: int) -> None:
    """[002] The atom that clamping puts on ω has over n times as much mass for n−1 ones as for n ones."""
    omega = Fraction(1, 5)
    # P(Beta(n+1, 1) ≤ ω) and P(Beta(n, 2) ≤ ω), both divided by ω^n
    all_ones, one_zero = omega, (rows + 1) - rows * omega
    claimed = 2 * math.log((1 - omega) / omega)
    assert math.log(one_zero / all_ones) > claimed
    assert one_zero / all_ones > rows


def test_the_stealth_increment_dwarfs_the_counts() -> None:
    """[002, Cor. 3] Naive Bayes on 8 bits, t = 3, ε = 1: a table of 50 rows gains 61 times its weight."""
    nodes, t, epsilon, rows = 8, 3.0, 1.0, 50
    closure = 2 * nodes  # ∅, each bit, and the class with each other bit
    coefficient = 4 * t * closure**2 / epsilon * 2 ** (-nodes / 2)  # of the constant basis vector 2^(−d/2)·1
    added = coefficient * 2 ** (-nodes / 2) * 2**nodes
    assert added == pytest.approx(61.44 * rows)


def test_stealth_at_ln_10_is_far_above_nine_in_ten() -> None:
    """[002, Cor. 3] Naive Bayes on 16 bits, no rows at all, ε = 1, t = ln 10: 1 − e^−t is 0.9, and all are above 0."""
    rng = np.random.default_rng(3)
    features, closure = 16, 34
    noise = rng.laplace(scale=2 * closure, size=(2000, 2 + 2 * features))  # in units of 2^(−|I|/2)
    total, label, bits, both = noise[:, :1], noise[:, 1:2], noise[:, 2:18], noise[:, 18:]
    raised = 4 * math.log(10) * closure**2
    cells = [(total + raised + y * label + x * bits + x * y * both) / 4 for y in (1, -1) for x in (1, -1)]
    assert min(cell.min() for cell in cells) > 0
    assert min((cell - raised / 4).min() for cell in cells) < 0  # it is the increment that does it


@pytest.mark.parametrize("parents", [0, 1, 2, 4])
def test_fourier_wins_a_cell_only_with_a_small_closure(parents: int) -> None:
    """[002, Rem. 1] A cell's deviation is 2^(−(p+1)/2)·|N_I| beside |I|, whatever 2^(−|I|/2) does to the scales."""
    nodes, closure = 10, 40
    members = 2 ** (parents + 1)
    coefficient = 2 * closure * 2 ** (-nodes / 2)  # the printed scale at ε = 1
    entry = 2 ** (nodes - parents - 1) * 2 ** (-nodes / 2)  # of a projected basis vector
    fourier, laplace = math.sqrt(members) * entry * coefficient, 2.0 * nodes
    assert (fourier < laplace) == (closure < nodes * 2 ** ((parents + 1) / 2))


@pytest.mark.parametrize("nodes", [4, 6, 12])
def test_few_parents_do_not_make_fourier_win(nodes: int) -> None:
    """[002, Rem. 1] Each node has the two before it as parents, at most half of the graph, and Laplace wins a cell."""
    families = [frozenset(range(max(i - 2, 0), i + 1)) for i in range(nodes)]
    closure = {
        frozenset(part) for one in families for k in range(4) for part in itertools.combinations(one, k)
    }
    assert len(closure) == 4 * nodes - 4
    assert max(len(family) - 1 for family in families) <= nodes / 2
    assert len(closure) > nodes * 2 ** ((2 + 1) / 2)


def test_the_refined_mean_of_theorem_1_is_passed() -> None:
    """[002, Thm. 1] One bit, 100 rows, ε = 1: the mean divergence is 0.08, its refined bound 1e-19."""
    rows, scale = 100, 2.0
    rng = np.random.default_rng(1)
    updates = np.clip(rows / 2 + rng.laplace(scale=scale, size=(20_000, 2)), 0, rows)
    a, noisy = 1 + rows / 2, 1 + updates
    divergence = (
        betaln(noisy[:, 0], noisy[:, 1])
        - betaln(a, a)
        + (a - noisy).sum(axis=1) * digamma(a)
        + (noisy.sum(axis=1) - 2 * a) * digamma(2 * a)
    )
    refined = math.log((rows + 2) ** 2) * rows / 2 * math.exp(-rows / scale)
    assert divergence.mean() == pytest.approx(0.08, rel=0.1)
    assert refined < 1e-18


def test_the_deviation_of_theorem_1_lacks_a_square() -> None:
    """[002, Thm. 1] √(½·Σc·ln(1/δ)) for functions whose arguments move them by c: a fair coin worth 100 passes it."""
    change, delta = 100.0, 0.1
    printed, bounded = (math.sqrt(0.5 * change**power * math.log(1 / delta)) for power in (1, 2))
    assert change / 2 > printed  # it is 50 above its mean half of the time, not a tenth of it
    assert change / 2 < bounded


def test_the_threshold_of_footnote_2_is_no_quantile() -> None:
    """[003] For L ~ N(−2, 2²) and α = 0.05 the printed τ accuses a thousandth of the share that it should."""
    law = stats.norm(-2, 2)
    assert law.sf(law.ppf(1 - 0.05)) == pytest.approx(0.05)
    assert law.sf(1 - law.ppf(0.05)) < 0.001


def test_lemma_2_fails_on_independent_bits() -> None:
    """[003, Lemma 2] Twenty bits: R has ½, T has 0.55, the credal set ends at 0.53. The plain threshold is higher."""
    bits, alpha = 20, 0.0577
    ones = np.arange(bits + 1)

    def find_threshold(theta: float) -> float:
        ratios = ones * math.log(theta / 0.5) + (bits - ones) * math.log((1 - theta) / 0.5)
        chance = stats.binom(bits, 0.5)
        return float(min(ratio for k, ratio in enumerate(ratios) if chance.sf(k) <= alpha))

    mean = [math.log(theta / 0.5) + math.log((1 - theta) / 0.5) for theta in (0.55, 0.53)]
    assert mean[0] < mean[1] < 0  # Eq. 16 holds
    assert find_threshold(0.55) > find_threshold(0.53)  # and does not order the thresholds


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.integers(0, 1000), min_size=2, max_size=8).filter(any),
    st.fractions(min_value=Fraction(1, 100)),
)
def test_idm_intervals_give_the_network_away(counts: list[int], prior: Fraction) -> None:
    """[003, Lemma 3] Normalised lower bounds are the frequencies, exactly and whatever the secret S is."""
    total = sum(counts)
    lower = [Fraction(count) / (total + prior) for count in counts]
    assert [bound / sum(lower) for bound in lower] == [Fraction(count, total) for count in counts]


def test_equation_14_as_printed_is_not_the_likelihood() -> None:
    """[003, Eq. 14] Maximising the sum of P(x|θ) in place of its logarithms picks the end of the interval."""
    grid = np.linspace(0.1, 0.9, 81)
    ones, zeros = 60, 40
    assert grid[(ones * grid + zeros * (1 - grid)).argmax()] == pytest.approx(0.9)
    assert grid[(ones * np.log(grid) + zeros * np.log(1 - grid)).argmax()] == pytest.approx(0.6)


def entropy(probabilities: Array) -> float:
    """Shannon entropy in bits."""
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log2(positive)).sum())


def test_normalised_mutual_information_has_no_small_sensitivity() -> None:
    """[004, Lemma 1] holds for mutual information; normalised, it moves from 0 to 1 by one row in 10 000."""

    def informations(counts: Array) -> tuple[float, float]:
        joint = counts / counts.sum()
        rows, columns = entropy(joint.sum(axis=1)), entropy(joint.sum(axis=0))
        mutual = rows + columns - entropy(joint)
        return mutual, mutual / min(rows, columns) if min(rows, columns) else 0.0

    n = 10_000
    before, after = informations(np.array([[n, 0.0], [0, 0]])), informations(np.array([[n - 1, 0.0], [0, 1]]))
    lemma = math.log2(n) / n + (n - 1) / n * math.log2(n / (n - 1))
    assert after[0] - before[0] == pytest.approx(lemma)
    assert after[1] - before[1] == pytest.approx(1.0)
