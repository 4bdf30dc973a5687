"""The audit is right as often as it says, and finds what is there as often as it should."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from discreet.judge.attacks.codes import Codes
from discreet.judge.attacks.flat_tables import FlatTables
from discreet.judge.attacks.guess_bound import Guesses
from discreet.judge.attacks.published import Published
from discreet.judge.attacks.tracing import Tracing, compare_populations, trace
from discreet.judge.audit import Outcome, audit_codes
from discreet.judge.costs import check_costs
from discreet.judge.experiments.canaries import audit_once, score_canaries, spread_canaries
from discreet.judge.experiments.neighbours import audit_learner, make_neighbours
from discreet.judge.noise_fit import check_noise, combine, fit_draws, fit_sum
from discreet.judge.tails import pool_p_values, tabulate_binomial
from discreet.networks import examples
from discreet.values.budget import ZCDP, ApproxDP, Infinite, PureDP
from discreet.values.errors import DataError, MechanismError
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.unit import Unit

CLAIM = PureDP(1)
SCHEMA = Schema.of({"a": range(3), "b": range(4), "c": range(2)})
GRAPH = DAG.build({"a": [], "b": ["a"], "c": ["b"]})


def draw_people(rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    return {a.name: np.minimum(rng.geometric(0.4, rows) - 1, a.size - 1) for a in SCHEMA}


def draw_laplace(scale: float, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    p = -math.expm1(-1.0 / scale)
    return np.asarray(rng.geometric(p, shape) - rng.geometric(p, shape))


def release(rows: Codes, rng: np.random.Generator, *, factor: float = 1.0) -> Published:
    """Noisy families, ε split evenly, and a network from them; noise drawn by numpy, for speed and with a seed."""
    measured, cells = [], FlatTables.arrange(GRAPH, SCHEMA.sizes)
    share = PureDP(1) / len(GRAPH)
    for table in cells.split(cells.count(cells.locate(rows))):
        noise = draw_laplace(factor * len(GRAPH), table.values.shape, rng)
        noisy = Table(table.axes, table.values + noise)
        measured.append(Measurement(noisy, DiscreteLaplace(len(GRAPH)), Unit.ADD_REMOVE, share))
    flat = np.maximum(cells.flatten([m.noisy for m in measured]), 0.5)
    return Published(
        SCHEMA,
        GRAPH,
        cells.split(cells.normalise(flat)),
        measurements=tuple(measured),
        unit="add-remove",
        promise=CLAIM,
    )


@pytest.mark.parametrize(("factor", "least", "most"), [(1.0, 0, 18), (0.5, 60, 100)])
def test_the_verdict_accuses_innocents_no_more_often_than_it_says(
    factor: float, least: int, most: int
) -> None:
    """100 releases of 23 cells at confidence 0.9: of sound ones 10 at most are expected, of halved noise most."""
    rng = np.random.default_rng(11)
    accused = 0
    for _ in range(100):
        rows, reference = draw_people(300, rng), draw_people(300, rng)
        found = audit_codes(release(rows, rng, factor=factor), rows, reference, complete=True, confidence=0.9)
        accused += found.outcome is Outcome.BROKEN
    assert least <= accused <= most


def test_a_release_is_accused_by_its_attacks_alone_if_it_leaks_enough_and_rarely_else() -> None:
    """Without `complete`: a network that promises ε = 1 and is not noisy at all, against a sound one, 40 times each."""
    rng = np.random.default_rng(12)
    wide = Schema.of({f"v{i}": range(6) for i in range(8)})
    graph = DAG.build({name: wide.names[max(0, i - 3) : i] for i, name in enumerate(wide.names)})
    cells = FlatTables.arrange(graph, wide.sizes)
    accused = {"plain": 0, "noisy": 0}
    for _ in range(40):
        rows, reference = ({n: rng.integers(0, 6, size) for n in wide.names} for size in (200, 600))
        counts = cells.count(cells.locate(rows)) + 0.0
        for kind, noise in (("plain", 0.0), ("noisy", draw_laplace(8.0, (cells.size,), rng))):
            values = cells.normalise(np.maximum(counts + noise, 0.0))
            published = Published(wide, graph, cells.split(values), unit="add-remove", promise=CLAIM)
            accused[kind] += (
                audit_codes(published, rows, reference, confidence=0.95).outcome is Outcome.BROKEN
            )
    assert accused["plain"] == 40
    assert accused["noisy"] <= 6  # 2 expected at most


def test_another_kind_of_people_is_no_proof_against_a_release() -> None:
    """Members who differ from the reference are recognised as such by any honest release; the audit says so."""
    rng = np.random.default_rng(13)
    rows = draw_people(400, rng)
    reference = draw_people(400, rng)
    reference["a"] = np.where(rng.random(400) < 0.5, 0, reference["a"])
    assert compare_populations(rows, reference, SCHEMA.sizes) < 1e-3
    assert compare_populations(rows, draw_people(400, rng), SCHEMA.sizes) > 1e-3
    found = audit_codes(release(rows, rng), rows, reference)
    assert found.outcome is Outcome.KEPT and any("kind of people" in line for line in found.explain())


def plain_network(rows: Codes, graph: DAG, schema: Schema, strength: float | None = None) -> Published:
    """The network of the frequencies, or its imprecise Dirichlet intervals."""
    cells = FlatTables.arrange(graph, schema.sizes)
    counts = cells.count(cells.locate(rows)) + 0.0
    if strength is None:
        return Published(schema, graph, cells.split(cells.normalise(counts)))
    totals = cells.total_conditionals(counts)
    lower, upper = counts / (totals + strength), (counts + strength) / (totals + strength)
    return Published(schema, graph, lower=cells.split(lower), upper=cells.split(upper))


def powers_of(found: Tracing, attack: str) -> list[float]:
    """The powers of one attack at all errors."""
    (power,) = (power for power in found.powers if power.attack == attack)
    return [point.power for point in power.points]


def random_world(nodes: int, edges: int, seed: int) -> tuple[DAG, Schema, dict[str, np.ndarray]]:
    """A random binary network and 10 000 people, as in paper 003."""
    rng = np.random.default_rng(seed)
    pairs = [(i, j) for j in range(nodes) for i in range(j)]
    chosen = [pairs[k] for k in rng.choice(len(pairs), edges, replace=False)]
    graph = DAG.build({f"x{j}": [f"x{i}" for i, child in chosen if child == j] for j in range(nodes)})
    schema = Schema.of({name: ["0", "1"] for name in graph.nodes})
    codes: dict[str, np.ndarray] = {}
    for name in graph.nodes:
        parents = graph.parents_of(name)
        chance = rng.random([2] * len(parents))
        codes[name] = (rng.random(10_000) < chance[tuple(codes[p] for p in parents)]).astype(np.uint8)
    return graph, schema, codes


def test_recovery_is_as_strong_as_the_attack_on_the_plain_network() -> None:
    """100 nodes, 400 edges: within 0.05 at every α ≥ 1e-3 for S = 1 and 1000, while Definition 6 falls behind."""
    graph, schema, codes = random_world(100, 400, 7)
    split = np.split(np.random.default_rng(8).permutation(10_000), [5000, 5500])
    reference, target, strangers = ({n: column[part] for n, column in codes.items()} for part in split)
    errors = tuple(np.logspace(-3, -0.2, 12))
    plain = trace(plain_network(target, graph, schema), target, reference, strangers=strangers, errors=errors)
    base = powers_of(plain, "likelihood ratio")
    assert base[-1] > 0.99
    for strength in (1.0, 1000.0):
        published = plain_network(target, graph, schema, strength)
        found = trace(published, target, reference, strangers=strangers, errors=errors)
        recovered = powers_of(found, "recovery")
        assert np.abs(np.subtract(recovered, base)).max() <= 0.05
        unseen = powers_of(found, "recovery, unseen out")
        assert (np.array(unseen) >= np.array(base) - 0.01).all()
        assert unseen[0] > base[0] + 0.3  # at α = 1e-3 an IDM network says far more than the plain one
        weak = powers_of(found, "Definition 6")
        assert (np.array(weak) <= np.array(base) + 0.02).all()


def test_theorem_1_describes_the_plain_attack_where_parents_are_common() -> None:
    """20 nodes in a chain of pairs, a reference of 6000: measured power within 0.1 of the theorem."""
    graph, schema, codes = random_world(40, 40, 9)
    split = np.split(np.random.default_rng(10).permutation(10_000), [6000, 6400])
    reference, target, strangers = ({n: column[part] for n, column in codes.items()} for part in split)
    found = trace(
        plain_network(target, graph, schema), target, reference, strangers=strangers, errors=(0.05, 0.1, 0.3)
    )
    assert found.theory is not None
    measured = powers_of(found, "likelihood ratio")
    assert np.abs(np.subtract(measured, found.theory)).max() < 0.1


def test_private_releases_stay_under_the_ceiling() -> None:
    """Over 30 releases at ε = 1, every attack's pooled hits are within a band around or below the ceiling."""
    rng = np.random.default_rng(14)
    errors = (0.01, 0.05, 0.2)
    hits: dict[str, np.ndarray] = {}
    for _ in range(30):
        rows, reference, strangers = draw_people(60, rng), draw_people(400, rng), draw_people(1000, rng)
        found = trace(release(rows, rng), rows, reference, strangers=strangers, errors=errors)
        assert found.ceiling is not None
        for power in found.powers:
            counted = np.array([point.hits for point in power.points])
            hits[power.attack] = hits.get(power.attack, 0) + counted
    assert set(hits) == {"likelihood ratio", "noise-aware", "noise-aware, jointly"}
    for counted in hits.values():
        for hit, limit in zip(counted, found.ceiling, strict=True):
            assert stats.beta.ppf(0.001, hit, 1801 - hit) < limit if hit else True
    # The attack that reads the noise finds some of what is there: more than a coin.
    assert hits["noise-aware"][2] / 1800 > 0.2


def test_synthetic_rows_that_copy_people_are_exposed_and_others_are_not() -> None:
    network = examples.child()
    people = network.sample(900, rng=1).codes()
    members, reference = (
        {n: c[part] for n, c in people.items()} for part in (slice(0, 300), slice(300, 900))
    )
    copied = audit_codes(Published.of_rows(network.schema, members), members, reference)
    (nearest,) = (power for power in copied.tracing.powers if power.attack == "nearest row")
    assert copied.outcome is Outcome.EXPOSED and nearest.advantage > 0.4
    fresh = audit_codes(
        Published.of_rows(network.schema, network.sample(300, rng=2).codes(), dag=network.dag),
        members,
        reference,
    )
    assert fresh.outcome is Outcome.UNPROTECTED
    assert any("not a proof" in line for line in fresh.explain())


@pytest.mark.parametrize("epsilon", [0.0, 1.0, 3.0])
def test_guesses_are_judged_by_the_binomial(epsilon: float) -> None:
    q = 1 / (1 + math.exp(-epsilon))
    assert Guesses(70, 100).doubt(epsilon) == pytest.approx(stats.binom.sf(69, 100, q), rel=1e-9)
    assert tabulate_binomial(50, q) == pytest.approx(stats.binom.pmf(np.arange(51), 50, q), rel=1e-8)
    skewed = Guesses(30, 40, 0.2)
    odds = 0.2 * math.exp(epsilon) / (0.2 * math.exp(epsilon) + 0.8)
    assert skewed.doubt(epsilon) == pytest.approx(stats.binom.sf(29, 40, odds), rel=1e-9)


def test_guesses_with_delta_cost_what_theorem_5_2_says() -> None:
    """P(W ≥ v) + 2mδ·max_i P(v > W ≥ v − i)/i, term by term; at δ = 0 it is the plain tail."""
    found, delta, q = Guesses(80, 100, 0.5, 500), 1e-5, 1 / (1 + math.exp(-1.0))
    pmf = stats.binom.pmf(np.arange(101), 100, q)
    extra = max(pmf[80 - i : 80].sum() / i for i in range(1, 81))
    assert found.doubt(1.0, delta) == pytest.approx(pmf[80:].sum() + 2 * 500 * delta * extra, rel=1e-9)
    assert found.refutes(ApproxDP("1/2", "1e-9"), 0.01) and not found.refutes(ApproxDP(3, "1e-9"), 0.01)
    assert found.refutes(ZCDP("1/1000"), 0.01) and not found.refutes(ZCDP(2), 0.01)
    assert not found.refutes(Infinite(), 0.01)
    with pytest.raises(MechanismError, match="fair coins"):
        Guesses(5, 10, 0.3).doubt(1.0, 0.01)
    with pytest.raises(MechanismError, match="make no sense"):
        Guesses(11, 10)


def test_what_guesses_prove_is_seldom_more_than_the_truth() -> None:
    """Randomised response of ε = 1 uses all that ε allows: 200 audits at 0.9 may overstate it 20 times."""
    rng = np.random.default_rng(15)
    right = rng.binomial(200, 1 / (1 + math.exp(-1.0)), 200)
    proved = np.array([Guesses(int(v), 200).prove(0.9) for v in right])
    assert (proved > 1.0).sum() <= 34  # p = .001
    assert np.median(proved) > 0.6
    assert Guesses(0, 0).prove(0.9) == 0.0
    assert Guesses(200, 200).resolve(0.9) == pytest.approx(Guesses(200, 200).prove(0.9))
    assert Guesses(0, 300).detects(1.0, 2.0, 0.01) > 0.95 > Guesses(0, 20).detects(1.0, 1.2, 0.01)


def learn_margins(factor: float, rng: np.random.Generator) -> object:
    """A mechanism on two tables of 400 cells each, with its true noise and the label of ε = 1."""
    schema = Schema.of({"a": range(400), "b": range(400)})
    cost = json.dumps((PureDP(1) / 2).to_json())

    def learn(rows: Codes) -> Published:
        measured = [
            Measurement(
                Table((name,), np.bincount(rows[name], minlength=400) + draw_laplace(2.0 * factor, (400,), rng)),
                DiscreteLaplace(2), "add-remove", cost,
            )
            for name in ("a", "b")
        ]  # fmt: skip
        return Published(schema, measurements=tuple(measured), unit="add-remove", promise=CLAIM)

    return learn


def test_one_run_accuses_innocents_no_more_often_than_it_says_and_finds_the_guilty() -> None:
    """100 runs at confidence 0.9, with a background that shares cells with the canaries."""
    rng = np.random.default_rng(16)
    canaries = spread_canaries({"a": 400, "b": 400}, [("a",), ("b",)])
    background = {name: rng.integers(0, 400, 1000) for name in ("a", "b")}
    accused = {}
    for factor in (1.0, 0.5):
        runs = [
            audit_once(learn_margins(factor, rng), canaries, background=background, confidence=0.9, rng=rng)  # type: ignore[arg-type]
            for _ in range(100)
        ]
        accused[factor] = sum(run.refutes(CLAIM) for run in runs)
        assert np.mean([run.epsilon for run in runs]) > 0.4 / factor
    assert accused[1.0] <= 18 and accused[0.5] >= 90


def test_canaries_that_share_cells_are_told_by_the_law_of_the_others() -> None:
    """Two canaries in one cell: the other one is in with probability ½."""
    law = DiscreteLaplace(1)
    schema = Schema.of({"a": range(2)})
    table = Measurement(Table(("a",), np.array([2, 0])), law, Unit.ADD_REMOVE, PureDP(1))
    published = Published(schema, measurements=(table,))
    scores = score_canaries(published, {"a": np.array([0, 0, 1])}, None)

    def mix(y: int) -> float:
        return float((law.pmf(y) + law.pmf(y - 1)) / 2)

    assert scores[0] == scores[1] == pytest.approx(math.log(mix(1) / mix(2)))
    assert scores[2] == pytest.approx(float(law.log_pmf(-1) - law.log_pmf(0)))
    with pytest.raises(DataError, match="canaries"):
        audit_once(lambda rows: published, {"a": np.zeros(3, dtype=np.int64)}, rng=1)
    with pytest.raises(DataError, match="no tables"):
        score_canaries(Published(schema), {"a": np.array([0])}, None)


def test_canaries_are_told_from_a_network_without_noisy_tables_too() -> None:
    schema = Schema.of({"a": range(60)})
    graph = DAG.build({"a": []})

    def learn(rows: Codes) -> Published:
        return plain_network(rows, graph, schema)

    found = audit_once(learn, spread_canaries({"a": 60}, [("a",)]), confidence=0.95, rng=3)
    assert found.refutes(CLAIM) and found.epsilon == pytest.approx(found.resolution)


@pytest.mark.parametrize("law", [DiscreteLaplace(1), DiscreteLaplace(20), DiscreteGaussian(30)])
@pytest.mark.parametrize("cells", [3, 300])
def test_tests_of_noise_keep_their_level(law: DiscreteLaplace | DiscreteGaussian, cells: int) -> None:
    """Each p-value is below .05 in at most .05 of 150 cases of the stated law (15 has p = .01)."""
    rng = np.random.default_rng(17)
    low = [0, 0, 0]
    support = np.arange(-600, 601)
    chances = law.pmf(support)
    for _ in range(150):
        drawn = rng.choice(support, cells, p=chances / chances.sum())
        low[0] += min(fit_draws(drawn, law)) < 0.05 / len(fit_draws(drawn, law))
        for i, doubt in enumerate(fit_sum(drawn, law)):
            low[i + 1] += doubt < 0.05
    assert max(low) <= 15


def test_p_values_are_pooled_by_fisher() -> None:
    assert pool_p_values([0.1, 0.2, 0.3]) == pytest.approx(stats.combine_pvalues([0.1, 0.2, 0.3]).pvalue)
    assert pool_p_values([1.0, 1.0]) == 1.0
    assert combine(()) is None


def test_noise_is_checked_law_by_law_and_samples_are_left_alone() -> None:
    rng = np.random.default_rng(18)
    rows = draw_people(200, rng)
    sound = release(rows, rng)
    assert min(found.doubt for found in check_noise(sound.measurements, rows)) > 1e-4
    sampled = [replace(m, rate=Fraction(1, 2)) for m in sound.measurements]
    assert check_noise(sampled, rows) == ()


def test_what_does_not_add_up_is_named() -> None:
    rng = np.random.default_rng(19)
    rows = draw_people(200, rng)
    sound = release(rows, rng)
    assert check_costs(sound) == ()
    first, *rest = sound.measurements
    # Of a sample of a tenth, a table that gives away ε = 4/3 costs ln(1 + (e^(4/3) − 1)/10), less than 1/3.
    sampled = replace(first, rate=Fraction(1, 10), law=DiscreteLaplace("3/4"))
    assert check_costs(replace(sound, measurements=(sampled, *rest))) == ()
    short, strange = (Table((name,), np.zeros(2, dtype=np.int64)) for name in ("a", "z"))
    cases = {
        "together": replace(sound, promise=PureDP("1/2")),
        "of another kind": replace(sound, promise=ZCDP(1)),
        "too little noise": replace(sound, measurements=(replace(first, law=DiscreteLaplace(1)), *rest)),
        "protects replace-one": replace(sound, measurements=(replace(first, unit=Unit.REPLACE_ONE), *rest)),
        "read off the rows": replace(sound, measurements=(replace(first, noisy=short), *rest)),
        "does not declare": replace(sound, measurements=(replace(first, noisy=strange), *rest)),
        "the sample at rate 1/10": replace(sound, measurements=(replace(sampled, law=DiscreteLaplace("1/5")), *rest)),
        "pure ε only": replace(sound, measurements=(replace(sampled, law=DiscreteGaussian(9)), *rest)),
    }  # fmt: skip
    for words, published in cases.items():
        assert any(words in problem for problem in check_costs(published)), (words, check_costs(published))


def test_learners_are_audited_on_worst_neighbours() -> None:
    """A mechanism of ε = 1 is told to spend at least a good part of it, and at most 1; a leaking shape is seen."""
    rng = np.random.default_rng(20)
    schema = Schema.of({"a": range(3)})

    def learn(rows: Codes) -> Published:
        noisy = np.bincount(rows["a"], minlength=3) + draw_laplace(1.0, (3,), rng)
        return Published(
            schema,
            measurements=(Measurement(Table(("a",), noisy), DiscreteLaplace(1), Unit.ADD_REMOVE, PureDP(1)),),
        )

    def learn_seen(rows: Codes) -> Published:
        noisy = np.bincount(rows["a"]) + 0
        return Published(
            schema,
            measurements=(Measurement(Table(("a",), noisy), DiscreteLaplace(1), Unit.ADD_REMOVE, PureDP(1)),),
        )

    evidence = audit_learner(learn, make_neighbours(schema.sizes), trials=2000, confidence=0.99)
    assert 0.3 < evidence.epsilon <= 1.0
    assert audit_learner(learn_seen, make_neighbours(schema.sizes), trials=100).contradicts(1.0)
    replaced = make_neighbours(schema.sizes, unit="replace-one")
    assert (
        len(replaced[0]["a"]) == len(replaced[1]["a"]) and (replaced[0]["a"] != replaced[1]["a"]).sum() == 1
    )
    with pytest.raises(DataError):
        make_neighbours(schema.sizes, 1)


def test_audits_that_cannot_be_are_refused() -> None:
    rng = np.random.default_rng(21)
    rows = draw_people(100, rng)
    with pytest.raises(DataError, match="no noisy tables"):
        audit_codes(plain_network(rows, GRAPH, SCHEMA), rows, rows, complete=True)
    with pytest.raises(DataError, match="at least"):
        trace(plain_network(rows, GRAPH, SCHEMA), draw_people(5, rng), rows)
    with pytest.raises(DataError, match="nothing to attack"):
        trace(Published(SCHEMA), rows, rows)
