"""Questions in text: what they mean, and one clear line for those that mean nothing."""

from __future__ import annotations

import pytest

import discreet as dc
from discreet.networks.question import Question
from discreet.values.errors import QueryError

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
