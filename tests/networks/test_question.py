"""Questions in text: what they mean, and one clear line for those that mean nothing."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

import discreet as dc
from discreet.networks.question import Question
from discreet.values.errors import QueryError
from discreet.values.schema.formats.document import parse_document

ASIA = dc.examples.asia()


def test_each_form_asks_what_it_says() -> None:
    assert Question.parse("P(lung)").ask(ASIA)["yes"] == pytest.approx(0.055)
    assert Question.parse(" p ( lung | smoke = yes ) ").ask(ASIA)["yes"] == pytest.approx(0.1)
    assert Question.parse("P(lung=yes, bronc=no | smoke=yes)").ask(ASIA).probability == pytest.approx(0.04)
    joint = Question.parse("P(lung, bronc | dysp=yes)").ask(ASIA)
    assert joint[("yes", "no")] == pytest.approx(
        ASIA.query(["lung", "bronc"], {"dysp": "yes"})[("yes", "no")]
    )
    assert Question.parse("MPE(dysp=yes)").ask(ASIA).levels == ASIA.most_probable({"dysp": "yes"}).levels
    assert Question.parse("MPE()").ask(ASIA).levels == ASIA.most_probable().levels
    assert Question.parse("MAP(lung, bronc | dysp=yes)").ask(ASIA).levels == {"lung": "no", "bronc": "yes"}


def test_names_and_levels_may_hold_anything_in_quotes() -> None:
    network = dc.Network.build(
        {"age, years": ["<5", "5 = more"], "it's": ["a|b", "c"]},
        {"age, years": [], "it's": ["age, years"]},
        {"age, years": [0.5, 0.5], "it's": [[0.9, 0.1], [0.2, 0.8]]},
    )
    asked = Question.parse("""P("it's" = 'a|b' | 'age, years'="5 = more")""")
    assert asked.given == {"age, years": "5 = more"}
    assert asked.ask(network).probability == pytest.approx(0.2)
    assert Question.parse("P('|', '=' | ')'=',')") == Question("P", ("|", "="), {}, {")": ","})
    assert Question.parse("P('it\\'s')").targets == ("it's",)


def test_a_number_is_the_one_level_that_writes_it() -> None:
    ids = ["20000000000000000001.0", "20000000000000000002.0", "7", "7.0"]
    network = dc.Network.build(
        {"rate": ["1.0", "2.0", "2.5", "none"], "id": ids},
        {"rate": [], "id": []},
        {"rate": [0.4, 0.3, 0.2, 0.1], "id": [0.1, 0.2, 0.3, 0.4]},
    )
    for text, probability in [
        ("P(rate=1)", 0.4), ("P(rate=2.50)", 0.2), ("P(rate!=1)", 0.6), ("P(rate in {1, 2})", 0.7),
        ("P(id=20000000000000000002)", 0.2), ("P(id=7)", 0.3),
    ]:  # fmt: skip
        assert Question.parse(text).ask(network).probability == pytest.approx(probability)
    assert network.probability({"rate": "2.0"}, {"rate": 2}) == 1
    for text in ("P(rate=3)", "P(rate=1e0.0)", "P(rate=true)", "P(id=7.00)"):  # the last could be two
        with pytest.raises(QueryError, match="allowed are"):
            Question.parse(text).ask(network)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "for example"),
        ("lung", "for example"),
        ("Q(lung)", "for example"),
        ("P(lung", "for example"),
        ("P()", "at least one"),
        ("P(lung, lung)", "each once"),
        ("P(lung=yes, bronc)", "all targets or to none"),
        ("MAP(lung=yes)", "MAP finds the levels"),
        ("MPE(lung | dysp=yes)", "evidence only"),
        ("P(lung | smoke)", "smoke=level"),
        ("P(lung | smoke=yes, smoke=no)", "twice"),
        ("P(lung | a | b)", "one bar"),
        ("P(lung = = yes)", "name=level"),
        ("P('lung)", "a quote is not closed"),
        ("P(lungs)", "unknown attribute"),
        ("P(lung | smoke=maybe)", "no such level"),
        ("P(lung | either=no, lung=yes)", "probability zero"),
    ],
)
def test_a_question_that_means_nothing_is_refused_in_one_line(text: str, says: str) -> None:
    with pytest.raises(QueryError, match=says) as refused:
        Question.parse(text).ask(ASIA)
    assert "\n" not in str(refused.value)


def parse_schema(text: str) -> dc.Schema:
    return parse_document(tomllib.loads(text))


def make_clinic() -> dc.Network:
    """Ages in bins, an ordered stage, a sex."""
    schema = parse_schema(
        """
[attributes.sex]
levels = ["F", "M", "X"]
[attributes.age]
edges = [0, 60, 70, 75, 90]
missing = "unknown"
[attributes.stage]
levels = ["I", "II", "III"]
ordered = true
"""
    )
    return dc.Network.build(
        schema,
        {"sex": [], "age": ["sex"], "stage": ["age"]},
        {
            "sex": [0.5, 0.4, 0.1],
            "age": [[0.1, 0.2, 0.3, 0.3, 0.1], [0.4, 0.3, 0.1, 0.1, 0.1], [0.2, 0.2, 0.2, 0.2, 0.2]],
            "stage": [[0.8, 0.1, 0.1], [0.6, 0.2, 0.2], [0.4, 0.3, 0.3], [0.2, 0.4, 0.4], [0.5, 0.3, 0.2]],
        },
    )


@pytest.mark.parametrize(
    ("text", "event", "given"),
    [
        ("P(age=[70, 75))", {"age": "[70, 75)"}, {}),
        ("P(age=[70,75) | sex = F)", {"age": "[70, 75)"}, {"sex": "F"}),
        ("P(age>=70 | sex=F)", {"age": ["[70, 75)", "[75, 90]"]}, {"sex": "F"}),
        ("P(age < 60)", {"age": "[0, 60)"}, {}),
        ("P(stage=II | age between 60 and 70)", {"stage": "II"}, {"age": "[60, 70)"}),
        (
            "P(stage>=II | age between 60 and 75, sex!=M)",
            {"stage": ["II", "III"]},
            {"age": ["[60, 70)", "[70, 75)"], "sex": ["F", "X"]},
        ),
        ("P(stage=I | sex in {F, X})", {"stage": "I"}, {"sex": ["F", "X"]}),
        ("P(stage=I | sex not in {F})", {"stage": "I"}, {"sex": ["M", "X"]}),
        ("P(sex in {F, M})", {"sex": ["F", "M"]}, {}),
        ("P(stage!=I | age=72)", {"stage": ["II", "III"]}, {"age": "[70, 75)"}),
        ("P(stage=I | age>=60, age<75)", {"stage": "I"}, {"age": ["[60, 70)", "[70, 75)"]}),
    ],
)  # fmt: skip
def test_comparisons_mean_the_levels_that_they_cover(
    text: str, event: dict[str, Any], given: dict[str, Any]
) -> None:
    clinic = make_clinic()
    joint = clinic.query(["sex", "age", "stage"])
    names = ("sex", "age", "stage")

    def holds(levels: tuple[str, ...], said: dict[str, Any]) -> bool:
        return all(level in said[name] if isinstance(said.get(name), list) else said.get(name, level) == level
                   for name, level in zip(names, levels, strict=True))  # fmt: skip

    known = sum(p for levels, p in joint.items() if holds(levels, given))
    both = sum(p for levels, p in joint.items() if holds(levels, given) and holds(levels, event))
    assert Question.parse(text).ask(clinic).probability == pytest.approx(both / known)


def test_a_comparison_that_cuts_a_bin_is_refused() -> None:
    clinic = make_clinic()
    for text, says in [
        ("P(age>=72)", r"cuts the level '\[70, 75\)' in two; write age >= 70 or age >= 75, or add an edge$"),
        ("P(age>=old)", "no such value"),
        ("P(sex>=F)", "no such value or order"),
        ("P(stage | age>90)", "no level of 'age' is left"),
        ("P(stage | sex in {})", "name=level"),
        ("P(stage | sex in {F, Q})", "no such level"),
        ("P(stage | age=[70, 76))", "no such level"),
    ]:
        with pytest.raises(QueryError, match=says):
            Question.parse(text).ask(clinic)


def test_figures_take_the_same_evidence() -> None:
    from discreet.networks.written import parse

    clinic = make_clinic()
    assert (
        parse("mean(age | sex=F)").ask(clinic).value > parse("mean(age | sex not in {F})").ask(clinic).value
    )
    risk = parse("P(stage=III | age>=70) - P(stage=III | age<70)").ask(clinic).value
    high, low = (
        Question.parse(f"P(stage=III | age{side})").ask(clinic).probability for side in (">=70", "<70")
    )
    assert risk == pytest.approx(high - low)


def test_ordered_levels_are_printed_in_their_order() -> None:
    edges = list(range(31))
    schema = parse_schema(f"[attributes.days]\nedges = {edges}\n")
    network = dc.Network.build(schema, {"days": []}, {"days": [1 / 30] * 30})
    lines = str(network.query("days")).splitlines()[1:31]
    assert [line.split("  ")[1] for line in lines] == list(schema["days"].levels)
