"""Questions that cannot be answered: one clear refusal that names the thing, the value and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from discreet.networks import examples
from discreet.networks.network import Network
from discreet.values.errors import DataError, DiscreetError, ImpossibleEvidence, QueryError
from discreet.values.schema import Schema

ASIA = examples.asia()
NODES = "'asia', 'tub', 'smoke', 'lung', 'bronc', 'either', 'xray', 'dysp'"
CONTRADICTION = {"either": "no", "lung": "yes"}

ASKING: dict[str, Callable[..., Any]] = {
    "query": lambda **evidence: ASIA.query("dysp", **evidence),
    "query of two": lambda **evidence: ASIA.query(["dysp", "xray"], **evidence),
    "posteriors": lambda **evidence: ASIA.posteriors(**evidence),
    "probability": lambda **evidence: ASIA.probability({"dysp": "yes"}, **evidence),
    "most probable": lambda **evidence: ASIA.most_probable(**evidence),
    "most probable of one": lambda **evidence: ASIA.most_probable(targets=["dysp"], **evidence),
    "sample": lambda **evidence: ASIA.sample(5, rng=1, **evidence),
}


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({"smokes": "yes"}, f"unknown attribute 'smokes'; the network has {NODES}"),
        ({5: "yes"}, f"unknown attribute 5; the network has {NODES}"),
        ({"smoke": "maybe"}, "evidence 'smoke' = 'maybe': no such level; allowed are 'yes', 'no'"),
        ({"smoke": "Yes"}, "evidence 'smoke' = 'Yes': no such level; allowed are 'yes', 'no'"),
        ({"smoke": ""}, "evidence 'smoke' = '': no such level; allowed are 'yes', 'no'"),
        ({"smoke": 1}, "evidence 'smoke' = 1: no such level; allowed are 'yes', 'no'"),
        ({"smoke": None}, "evidence 'smoke' = None: no such level; allowed are 'yes', 'no'"),
        ({"smoke": float("nan")}, "evidence 'smoke' = nan: no such level; allowed are 'yes', 'no'"),
        ({"smoke": ["maybe"]}, r"evidence 'smoke' = 'maybe': no such level; allowed are 'yes', 'no'"),
        ({"smoke": []}, r"evidence 'smoke' allows no level; name one or several"),
        ({"smoke": {"yes": 1}}, r"evidence 'smoke' = \{'yes': 1\}: no such level"),
        ({"smoke": "y" * 10_000}, "evidence 'smoke' = 'yyyy.*…': no such level"),
        (["smoke"], r"evidence is \['smoke'\], a list; map attributes to their levels"),
        ("smoke", "evidence is 'smoke', a str; map attributes to their levels"),
        ([("smoke", "yes")], r"evidence is \[\('smoke', 'yes'\)\], a list; map attributes"),
    ],
)
def test_evidence_that_makes_no_sense(ask: Callable[..., Any], evidence: Any, message: str) -> None:
    with pytest.raises(QueryError, match=f"^{message}") as refusal:
        ask(given=evidence)
    assert_plain(refusal.value)


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ({"smokes": [1, 1]}, f"unknown attribute 'smokes'; the network has {NODES}"),
        ({"smoke": [1]}, r"likelihood of 'smoke' has shape \(1,\); it needs 2 weights"),
        ({"smoke": [1, 2, 3]}, r"likelihood of 'smoke' has shape \(3,\); it needs 2 weights"),
        ({"smoke": 1}, r"likelihood of 'smoke' has shape \(\); it needs 2 weights"),
        ({"smoke": np.ones((2, 2))}, r"likelihood of 'smoke' has shape \(2, 2\); it needs 2 weights"),
        ({"smoke": [1, -1]}, r"likelihood of 'smoke' is \[1\.0, -1\.0\]; weights are finite, not negative"),
        ({"smoke": [1, np.nan]}, r"likelihood of 'smoke' is \[1\.0, nan\]; weights are finite"),
        ({"smoke": [1, np.inf]}, r"likelihood of 'smoke' is \[1\.0, inf\]; weights are finite"),
        ({"smoke": [0, 0]}, r"likelihood of 'smoke' is \[0\.0, 0\.0\]; .*not all 0"),
        ({"smoke": ["yes", "no"]}, r"likelihood of 'smoke' is \['yes', 'no'\]; it needs 2 numbers"),
        ({"smoke": "yes"}, "likelihood of 'smoke' is 'yes'; it needs 2 numbers"),
        ({"smoke": [[1], [1, 2]]}, "likelihood of 'smoke' is .*; it needs 2 numbers"),
        ({"smoke": object()}, "likelihood of 'smoke' is .*; it needs 2 numbers"),
        ({"smoke": {"maybe": 1}}, "likelihood of 'smoke': 'maybe' is not a level; allowed are 'yes', 'no'"),
        ({"smoke": {"yes": "much"}}, "likelihood of 'smoke' is .*'much'.*; it needs 2 numbers"),
        ({"smoke": {}}, r"likelihood of 'smoke' is \[0\.0, 0\.0\]"),
        (["smoke"], r"likelihood is \['smoke'\], a list; map attributes to weights of their levels"),
    ],
)
def test_likelihoods_that_make_no_sense(ask: Callable[..., Any], weights: Any, message: str) -> None:
    with pytest.raises(QueryError, match=f"^{message}") as refusal:
        ask(likelihood=weights)
    assert_plain(refusal.value)


@pytest.mark.parametrize("ask", ASKING.values(), ids=ASKING)
def test_evidence_that_cannot_happen(ask: Callable[..., Any]) -> None:
    said = r"^the evidence \(either=no, lung=yes\) has probability zero in this network$"
    with pytest.raises(ImpossibleEvidence, match=said):
        ask(given=CONTRADICTION)
    with pytest.raises(
        ImpossibleEvidence, match=r"^the evidence \(either=no, lung by likelihood\) has probability zero"
    ):
        ask(given={"either": "no"}, likelihood={"lung": {"yes": 0.3}})
    with pytest.raises(ImpossibleEvidence, match="has probability zero"):
        ask(given={"lung": "no"}, likelihood={"lung": [1.0, 0.0]})


TARGETS: list[tuple[Any, str]] = [
    ("lungs", f"unknown attribute 'lungs'; the network has {NODES}"),
    (["lung", "lungs"], f"unknown attribute 'lungs'; the network has {NODES}"),
    ("", "unknown attribute ''; the network has"),
    ([], r"targets are \[\]; name at least one attribute, each once"),
    (["lung", "lung"], r"targets are \['lung', 'lung'\]; name at least one attribute, each once"),
    (5, "target 5 is a int; name an attribute or a list of them"),
    ([5], "unknown attribute 5; the network has"),
    ([["lung"]], r"unknown attribute \['lung'\]; the network has"),
]


@pytest.mark.parametrize(("target", "message"), TARGETS)
def test_targets_that_do_not_exist(target: Any, message: str) -> None:
    for ask in (ASIA.query, lambda found: ASIA.most_probable(targets=found)):
        with pytest.raises(QueryError, match=f"^{message}") as refusal:
            ask(target)
        assert_plain(refusal.value)


def test_no_target_at_all_is_a_question_only_for_the_best_explanation() -> None:
    with pytest.raises(QueryError, match="target None is a NoneType; name an attribute or a list of them"):
        ASIA.query(None)  # type: ignore[arg-type]
    assert set(ASIA.most_probable(targets=None).levels) == set(ASIA.nodes)


def test_what_is_asked_may_be_observed_or_contradict_what_is_given() -> None:
    assert dict(ASIA.query("lung", {"lung": "yes"})) == {"yes": 1.0, "no": 0.0}
    assert ASIA.probability({"lung": "yes"}, {"lung": "no"}) == 0.0
    assert ASIA.probability({"lung": "yes"}, {"lung": "yes"}) == 1.0
    assert ASIA.probability(CONTRADICTION) == 0.0
    assert ASIA.probability({}) == 1.0
    assert ASIA.most_probable({"lung": "yes"}, targets=["lung"]).levels == {}
    everything = dict.fromkeys(ASIA.nodes, "yes")
    assert ASIA.most_probable(everything).probability == pytest.approx(1)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"lungs": "yes"}, "unknown attribute 'lungs'"),
        ({"lung": "maybe"}, "evidence 'lung' = 'maybe': no such level; allowed are 'yes', 'no'"),
        ("lung", "evidence is 'lung', a str"),
    ],
)
def test_events_that_make_no_sense(event: Any, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        ASIA.probability(event)


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        ({"lungs": ["yes"]}, QueryError, "unknown attribute 'lungs'; the network has"),
        ({}, QueryError, f"the table of evidence has no columns; name some of {NODES}"),
        ({"lung": ["yes", "maybe"]}, DataError, "attribute 'lung', row 2: 'maybe' is not a declared level"),
        (
            {"lung": ["yes"], "tub": ["no", "no"]},
            DataError,
            "column 'tub' has 2 rows but column 'lung' has 1",
        ),
        ([1, 2], DataError, "the table is a list; allowed are mappings"),
        ({"lung": "yes"}, DataError, "lung.* is a str"),
        (
            {"lung": [None, "no", "yes"], "either": ["no", None, "no"]},
            ImpossibleEvidence,
            r"^row 3: the evidence \(lung=yes, either=no\) has probability zero in this network$",
        ),
    ],
)
def test_tables_of_evidence(rows: Any, kind: type[DiscreetError], message: str) -> None:
    with pytest.raises(kind, match=message) as refusal:
        ASIA.posteriors_of_rows(rows)
    assert_plain(refusal.value)


def test_a_table_without_rows_has_no_answers() -> None:
    found, log_probability = ASIA.posteriors_of_rows({"lung": []})
    assert found.shape == (0, 16)
    assert log_probability.shape == (0,)


def test_log_likelihood_needs_complete_rows() -> None:
    row = {name: ["yes"] for name in ASIA.nodes}
    assert np.isfinite(ASIA.log_likelihood(row)).all()
    assert ASIA.log_likelihood({**row, "either": ["no"]})[0] == -np.inf
    with pytest.raises(DataError, match="the table has no column 'asia'"):
        ASIA.log_likelihood({"lung": ["yes"]})
    with pytest.raises(DataError, match="attribute 'lung', row 1: the value is missing"):
        ASIA.log_likelihood({**row, "lung": [None]})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": -1, "rng": 1}, "number of rows -1: it must be 0 or more and at most 10,000,000,000,000"),
        ({"n": 1.5, "rng": 1}, "number of rows 1.5 is a float; it must be a whole number"),
        ({"n": True, "rng": 1}, "number of rows True is a bool"),
        ({"n": "5", "rng": 1}, "number of rows '5' is a str"),
        ({"n": 5, "rng": None}, "rng None is a NoneType; give a whole number, a SeedSequence or a Generator"),
        ({"n": 5, "rng": "seed"}, "rng 'seed' is a str"),
    ],
)
@pytest.mark.parametrize("given", [None, {"smoke": "yes"}])
def test_samples_that_cannot_be_drawn(
    arguments: dict[str, Any], message: str, given: dict[str, str] | None
) -> None:
    with pytest.raises(DataError, match=message) as refusal:
        ASIA.sample(given=given, **arguments)
    assert_plain(refusal.value)


def test_levels_that_an_answer_does_not_have() -> None:
    answer, pair = ASIA.query("lung"), ASIA.query(["lung", "tub"])
    for level in ("maybe", 0, None, ["yes"], ("yes", "no")):
        with pytest.raises(QueryError, match=r"is not a level of 'lung'|names 2 of 1 levels"):
            answer[level]
    for level in ("yes", 3, ("yes", "maybe"), ("yes", "no", "no")):
        with pytest.raises(QueryError, match=r"is not a level of 'tub'|names \d of 2 levels"):
            pair[level]
    with pytest.raises(QueryError, match="'lungs' is not explained; explained are 'asia', 'tub'"):
        ASIA.most_probable()["lungs"]
    with pytest.raises(KeyError):
        ASIA.posteriors()["lungs"]


@pytest.mark.parametrize("path", ["numpy", "numba", "auto"])
def test_codes_beyond_the_levels_are_refused_and_never_read(path: Any) -> None:
    """The engine takes codes from fast callers; a wrong one must not reach into foreign memory."""
    engine = ASIA.engine
    engine.posteriors({}, path="numba")
    for code in (2, 7, 10**6, 2**40, -1, -9):
        with pytest.raises(QueryError, match=f"code {code} of 'smoke'; allowed are 0 to 1"):
            engine.posteriors({"smoke": code}, path=path)
        with pytest.raises(QueryError, match=f"code {code} of 'smoke'"):
            engine.marginal("lung", {"smoke": code})
        with pytest.raises(QueryError, match=f"code {code} of 'smoke'"):
            engine.joint(["lung", "tub"], {"smoke": code})
        for targets in (None, ["lung"]):
            with pytest.raises(QueryError, match=f"code {code} of 'smoke'"):
                engine.most_probable({"smoke": code}, targets=targets)
        with pytest.raises(QueryError, match=f"code {code} of 'smoke'"):
            engine.decompose({"smoke": code})
    with pytest.raises(QueryError, match="likelihood of 'smoke' has 1 weights; it needs 2"):
        engine.posteriors({}, {"smoke": np.array([0.5])}, path)


@pytest.mark.parametrize(
    "rows", [np.full((2, 8), 2), np.full((2, 8), -2), np.zeros((2, 3), dtype=int), np.zeros(8, dtype=int)]
)
def test_rows_of_codes_that_do_not_fit(rows: Any) -> None:
    with pytest.raises(
        QueryError, match=r"evidence of shape \(.*\) must be rows of 8 codes, each -1 or below"
    ):
        ASIA.engine.posteriors_of_rows(rows)


def test_a_refusal_leaves_the_network_as_it_was() -> None:
    network = examples.asia()
    before = np.concatenate([*network.posteriors({"smoke": "yes"}).values()])
    for _ in range(5):
        with pytest.raises(ImpossibleEvidence):
            network.posteriors(CONTRADICTION)
    np.testing.assert_array_equal(np.concatenate([*network.posteriors({"smoke": "yes"}).values()]), before)


def test_names_that_look_like_code_are_only_names() -> None:
    odd = "x{0}%s\N{SNOWMAN} 'y'"
    network = Network.build({odd: ["{a}", "%d"]}, {odd: []}, {odd: [1.0, 0.0]})
    assert network.query(odd)["{a}"] == 1.0
    with pytest.raises(ImpossibleEvidence, match="probability zero"):
        network.query(odd, {odd: "%d"})
    with pytest.raises(QueryError, match="no such level"):
        network.query(odd, {odd: "%s"})


def assert_plain(error: Exception) -> None:
    """One short line, with no trace of an inner error."""
    assert "\n" not in str(error)
    assert len(str(error)) < 300
    assert error.__cause__ is None


def test_what_is_nearly_spelt_right_is_named_first() -> None:
    """Of many attributes only some are listed, and the one that was meant is among them."""
    schema = Schema.of({**{f"c{i:02}": ["no", "yes"] for i in range(30)}, "Smoker": ["no", "yes"]})
    network = Network.build(
        schema, dict.fromkeys(schema.names, ()), {name: [0.5, 0.5] for name in schema.names}
    )
    with pytest.raises(QueryError, match="unknown attribute 'smoker'; the network has 'Smoker', "):
        network.query("smoker")
