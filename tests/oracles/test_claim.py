"""The claim of a release: every point that SP 800-226 asks for is there or asked for, and follows the numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.claim import LEARNERS, Claim, state_claim
from discreet.learning.learner import HOMES
from discreet.values.about import About

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # releases from memory say that they are simulations

ASKED = {
    "variant and parameters": "Variant and parameters",
    "(ε, δ) for comparison": "For comparison",
    "unit and contribution bounds": "What is protected",
    "total budget over all releases": "Whole budget of the account",
    "what was spent": "Spent when this was released",
    "other releases": "Other releases",
    "looks without privacy": "Looks without privacy",
    "algorithms": "Algorithm",
    "noise": "Noise",
    "versions": "Software",
    "utility": "Expected error",
    "known bias": "Known bias",
    "query model": "Who may ask what",
    "threat model and trust": "Against whom",
    "side channels": "Side channels",
    "access": "Access and licence",
    "collection": "How the data were collected",
    "population": "Whom it is about",
    "period": "Which time it covers",
    "contact": "Contact",
    "description": "What it is",
    "use": "What it is for",
}
MENTIONED = {
    "Known bias": ("Clamping", "Shrinkage", "graph leaves out"),
    "Side channels": ("Floating point", "Timing", "Engine errors"),
    "Against whom": ("trusted",),
    "Software": ("discreet", "opendp", "numpy"),
    "For comparison": ("δ = 10⁻⁵",),
}
"""What the words under a heading must speak to."""
WORDS = About(
    "Lungs",
    "A made-up clinic.",
    "visitors",
    "2024",
    "by the textbook",
    "board@clinic.example",
    "CC0",
    use="teaching",
)


def publish(**more: object) -> dc.Release:
    clinic = dc.examples.asia()
    rows = clinic.sample(500, rng=1).arrow()
    return dc.release(rows, clinic.schema, clinic.dag, **{"epsilon": 1, "account": "clinic", **more})


def read(claim: Claim, heading: str) -> str:
    return next(point.words for point in claim.points if point.heading == heading)


@pytest.mark.parametrize("what", ASKED)
def test_every_point_is_there(what: str) -> None:
    claim = state_claim(publish(about=WORDS))
    assert read(claim, ASKED[what])
    assert not claim.open and claim.title == "Lungs"


@pytest.mark.parametrize("heading", MENTIONED)
def test_a_point_speaks_to_all_that_is_asked_of_it(heading: str) -> None:
    words = read(state_claim(publish()), heading)
    assert all(mentioned in words for mentioned in MENTIONED[heading])


def test_people_who_are_bounded_are_a_bias() -> None:
    clinic = dc.examples.asia()
    rows = clinic.sample(60, rng=1).arrow().append_column("who", [[i % 30 for i in range(60)]])
    made = dc.release(rows, clinic.schema, clinic.dag, epsilon=1, person="who", at_most=2)
    claim = state_claim(made)
    assert "by who" in read(claim, "Known bias") and "at most 2 rows" in read(claim, "What is protected")


def test_words_said_since_come_first() -> None:
    claim = state_claim(publish(about=WORDS), About(title="Lungs, again"))
    assert claim.title == "Lungs, again" and read(claim, "Contact") == "board@clinic.example"


def test_what_nobody_said_is_asked_for_and_never_filled_in() -> None:
    claim = state_claim(publish())
    assert {point.ask for point in claim.open} == {
        "description", "population", "period", "collection", "use", "licence", "contact"
    }  # fmt: skip
    assert "not stated by the custodian" in claim.explain() and "--about" in claim.explain()
    assert all(
        point["words"] is None
        for point in claim.to_json()["points"]
        if point["point"] in claim.to_json()["open"]
    )


@pytest.mark.parametrize(
    ("amounts", "variant", "compared"),
    [
        ({"epsilon": 1}, "pure ε", "ε ≤ 1 at"),
        ({"epsilon": None, "rho": "1/8"}, "ρ-zero-concentrated", "ε ≤ 2.17 at"),
        ({"epsilon": 1, "delta": "1e-6"}, "(ε, δ)", "so at δ = 10⁻⁵ too"),
        ({"epsilon": 1, "delta": "1e-3"}, "(ε, δ)", "no ε to compare"),
    ],
)
def test_the_variant_is_the_account_s(amounts: dict[str, object], variant: str, compared: str) -> None:
    claim = state_claim(publish(**amounts))
    assert read(claim, "Variant and parameters").startswith(variant)
    assert compared in read(claim, "For comparison")


def test_other_answers_and_looks_without_privacy_are_told(tmp_path: Path) -> None:
    clinic = dc.examples.asia()
    place = {"ledger": str(tmp_path / "l"), "account": "clinic"}
    publish(**place, budget="epsilon=3", create=True)
    second = publish(**place, request="again")
    claim = state_claim(second)
    assert "more than this release: ε = 1 of the ε = 2 went to other" in read(claim, "Other releases")
    assert read(claim, "Whole budget of the account").startswith("ε = 3")
    with dc.open_airlock(clinic.sample(500, rng=1).arrow(), clinic.schema, **place) as airlock:
        airlock.reveal([("lung",)], reason="a test")
    third = state_claim(publish(**place, request="third"))
    assert "without noise" in read(third, "Looks without privacy") and "infinite" in read(
        third, "Variant and parameters"
    )


def test_what_is_independent_is_named_as_a_bias() -> None:
    schema = dc.Schema.of({"a": ["x", "y"], "b": ["x", "y"]})
    made = dc.release({"a": ["x"] * 50, "b": ["y"] * 50}, schema, dc.DAG.build({"a": (), "b": ()}), epsilon=1)
    assert "independent of everything else: a, b" in read(state_claim(made), "Known bias")


def test_every_learner_is_described() -> None:
    assert set(LEARNERS) - {"combined"} <= set(HOMES) and {"planned", "adaptive", "privbayes"} <= set(
        LEARNERS
    )


def test_the_command_prints_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish(about=WORDS).write(tmp_path / "out.json")
    assert main(["statement", str(tmp_path / "out.json")]) == 0
    assert capsys.readouterr().out.startswith("Lungs\n=====\n")
    assert main(["statement", str(tmp_path / "out.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["open"] == []
    dc.examples.asia().write(tmp_path / "asia.json")
    assert main(["statement", str(tmp_path / "asia.json")]) == 2
