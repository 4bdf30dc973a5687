"""Whoever rewrites a release cannot make `verify` look away: what is not checked never adds up."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.doors.release import release as make_release_of_rows
from discreet.entrance import open_ledger
from discreet.judge.replay import replay
from discreet.judge.report import make_page
from discreet.judge.verify import ALONE, Verification, verify, verify_file
from discreet.learning.adaptive import adaptive
from discreet.learning.learner import write_option
from discreet.learning.privbayes import privbayes
from discreet.learning.searching.prices import Rates
from discreet.networks.formats.digits import round_network
from discreet.networks.formats.release import RELEASE, format_release, make_release, parse_release
from discreet.networks.network import Network
from discreet.papers.parameters.independent import independent
from discreet.papers.posterior import fourier, laplace, maximum, sample
from discreet.values.budget import PureDP
from discreet.values.errors import FormatError, LedgerError
from discreet.values.graph import DAG
from discreet.values.schema import Schema

SCHEMA = Schema.of({name: ["0", "1"] for name in "abcd"})
CHANCE = np.random.default_rng(1)
FIRST = CHANCE.integers(0, 2, 400)
ROWS = {
    name: [str(bit) for bit in np.where(CHANCE.random(400) < 0.8, FIRST, 1 - FIRST)] for name in SCHEMA.names
}
CHAIN = DAG.build({"a": (), "b": ("a",), "c": ("b",), "d": ("c",)})
Change = Callable[[Any], object]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clinic") / "ledger"


@pytest.fixture(scope="module")
def document(place: Path) -> Any:
    made = make_release_of_rows(
        ROWS, SCHEMA, CHAIN, epsilon=1, ledger=place, account="clinic", learner="independent", create=True,
        options={"prior": 0.5},
    )  # fmt: skip
    return json.loads(format_release(made))


def judge(document: Any, place: Path | None = None) -> Verification:
    release = parse_release(json.dumps(document))
    if place is None:
        return verify(release)
    with open_ledger(place) as ledger:
        return verify(release, ledger)


def spoil(document: Any, change: Change) -> Any:
    spoilt = copy.deepcopy(document)
    change(spoilt["provenance"])
    return spoilt


def publish_exact_tables(document: Any) -> None:
    """The tables without noise in place of the published ones."""
    counts = [np.array([[1, 1]], dtype=float) for _ in SCHEMA.names]
    for i, name in enumerate(SCHEMA.names):
        codes = np.array([int(level) for level in ROWS[name]])
        given = np.zeros(400, dtype=int) if i == 0 else np.array([int(x) for x in ROWS[SCHEMA.names[i - 1]]])
        counts[i] = np.array([np.bincount(codes[given == row], minlength=2) for row in range(1 + (i > 0))])
    document["network"]["cpts"] = [
        (found / found.sum(axis=1, keepdims=True)).ravel().tolist() for found in counts
    ]


@pytest.mark.parametrize(
    ("change", "outcome", "unchecked"),
    [
        (lambda known: known.update(learner="independent-v2"), "not all checked", ["numbers"]),
        (lambda known: known["details"].pop("options"), "does not add up", []),
        (
            lambda known: known["details"].update(options={"prior": {"no exact form": "Prior"}}),
            "not all checked",
            ["numbers"],
        ),
        (
            lambda known: known.update(statement={}, details={}),
            "does not add up",
            ["answers", "account", "schema"],
        ),
    ],
)
def test_exact_tables_do_not_pass_as_something_that_cannot_be_run_again(
    document: Any, tmp_path: Path, change: Change, outcome: str, unchecked: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    spoilt = spoil(document, change)
    publish_exact_tables(spoilt)
    (tmp_path / "release.json").write_text(RELEASE.format_text(spoilt))
    assert main(["verify", str(tmp_path / "release.json"), "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["outcome"], told["sound"]) == (outcome, False)
    assert told["not checked"] == [*unchecked, "ledger"]
    assert main(["verify", str(tmp_path / "release.json")]) == 1
    last = capsys.readouterr().out.splitlines()[-1]
    assert "it adds up" not in last and (outcome == "does not add up" or "not checked: numbers" in last)


def test_a_report_promises_nothing_without_a_statement(document: Any) -> None:
    spoilt = spoil(document, lambda known: known.update(statement={}))
    with pytest.raises(FormatError, match="nothing can be promised"):
        make_page(parse_release(json.dumps(spoilt)))


def test_only_the_ledger_may_be_left_out_and_that_is_said(
    document: Any, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "release.json").write_text(RELEASE.format_text(document))
    assert main(["verify", str(tmp_path / "release.json")]) == 0
    assert capsys.readouterr().out.endswith(f"{ALONE}\n")
    assert main(["verify", str(tmp_path / "release.json"), "--ledger", str(place)]) == 0
    assert capsys.readouterr().out.endswith("\nit adds up\n")
    assert main(["verify", str(tmp_path / "release.json"), "--ledger", str(place), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not checked"] == []


def test_exact_tables_cannot_be_smuggled_in_as_a_prior(document: Any, place: Path) -> None:
    """The debits are marked with learner, options and graph; a mark that is rewritten, too, is not the ledger's."""
    rest = copy.deepcopy(document)
    publish_exact_tables(rest)
    exact = {
        name: (1e9 * np.array(flat).reshape((2,) * (1 + (name != "a")))).tolist()
        for name, flat in zip(SCHEMA.names, rest["network"]["cpts"], strict=True)
    }
    spoilt = spoil(document, lambda known: known["details"].update(options={"prior": exact}))
    known = spoilt["provenance"]
    alone = spoil(spoilt, lambda known: known["statement"].update(spends=[]))
    again = replay(parse_release(json.dumps(alone)).network)
    spoilt["network"] = round_network(again).to_json()
    published = np.concatenate(spoilt["network"]["cpts"])
    assert np.abs(published - np.concatenate(rest["network"]["cpts"])).max() < 1e-6
    told = judge(spoilt).problems
    assert told == ("numbers: the learner, its options or its graph are not those that were paid for",)
    from discreet.learning.learner import digest_call

    known["statement"]["purpose"] = digest_call("independent", {"prior": exact}, CHAIN)
    assert judge(spoilt).sound  # without the ledger, nothing tells when the options were chosen
    assert any("the ledger says otherwise: purpose" in told for told in judge(spoilt, place).problems)


def test_the_same_request_with_another_learner_or_other_options_is_refused() -> None:
    with dc.open_airlock(ROWS, SCHEMA, budget="9") as airlock:
        first = independent(airlock, CHAIN, spend="1", prior=1.0, request="r")
        again = independent(airlock, CHAIN, spend="1", prior=1.0, request="r")
        assert first.close_to(again, 0.0) and airlock.account.spent == PureDP(1)
        with pytest.raises(LedgerError, match="another question"):
            independent(airlock, CHAIN, spend="1", prior=2.0, request="r")
        with pytest.raises(LedgerError, match="another question"):
            airlock.measure(
                [table.axes for table in first.provenance.measurements], spend="1", request="r"  # type: ignore[union-attr]
            )  # fmt: skip
        assert airlock.account.spent == PureDP(1)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["software"].update(note="row 17 has it"),
        lambda d: d["software"].update(numpy="row 17 has it"),
        lambda d: d["provenance"]["statement"].update(rows=400),
        lambda d: d["provenance"]["statement"].update(note="row 17"),
        lambda d: d["provenance"]["statement"]["ledger"].update(note="row 17"),
        lambda d: d["provenance"]["statement"]["spends"][0].update(note="row 17"),
    ],
)
def test_nothing_can_be_written_beside_what_is_checked(document: Any, tmp_path: Path, change: Change) -> None:
    spoilt = copy.deepcopy(document)
    change(spoilt)
    with pytest.raises(FormatError, match=r"has the unknown key|software must|rows is private"):
        parse_release(json.dumps(spoilt))
    (tmp_path / "release.json").write_text(RELEASE.format_text(spoilt))
    assert verify_file(tmp_path / "release.json").outcome == "does not add up"


def learn_graph(**options: Any) -> Any:
    with dc.open_airlock(ROWS, SCHEMA, budget="10") as airlock:
        return json.loads(format_release(make_release(privbayes(airlock, spend="1", **options))))


def test_a_choice_is_held_against_its_digest() -> None:
    """With one parent each, because a number of rows that noise made small, once in 400 times, allows none."""
    found = learn_graph(request="r", k=1)
    assert judge(found).sound
    for spend in found["provenance"]["statement"]["spends"]:
        if spend["verb"] == "select":
            spend["digest"] = "0" * 64
            break
    assert "is not the one that was drawn and stored" in judge(found).problems[0]


@pytest.mark.parametrize(
    "change",
    [
        lambda spends: spends.reverse(),
        lambda spends: spends[-1].update(verb="draw"),
        lambda spends: spends[0].update(request="another"),
        lambda spends: spends.append({**spends[-1], "tables": 0, "cost": {"epsilon": "0"}}),
    ],
)
def test_spends_are_those_of_the_questions(change: Change) -> None:
    found = learn_graph(request="r", k=1)  # else noise may leave no choice, and fewer questions
    change(found["provenance"]["statement"]["spends"])
    assert any(problem.startswith("numbers: ") for problem in judge(found).problems), judge(found).checks


def test_a_search_without_a_request_id_is_found_again_every_time() -> None:
    """The first attribute was drawn by the operating system; a second run takes it from the published order."""
    for _ in range(3):
        found = learn_graph()
        assert all(judge(found).sound for _ in range(4))
    learned = learn_graph(encoding="binary", k=1)
    assert judge(learned).sound


@pytest.mark.parametrize(
    "options",
    [
        {"rng": np.random.default_rng(3)},
        {"rng": 3},
        {"start": DAG.build({"b": (), "c": ("b",)})},
        {"required": {("a", "b"), ("b", "c")}, "forbidden": frozenset({("d", "a")})},
    ],
)
def test_honest_options_can_be_run_again(options: dict[str, Any]) -> None:
    found = judge(learn_graph(request="r", **options))
    assert found.sound, found.checks


def test_the_greedy_part_of_another_search_is_found_again() -> None:
    """Under replace-one, where no noise on the number of rows decides whether there is a greedy part."""
    few = {name: levels[:40] for name, levels in ROWS.items()}
    with dc.open_airlock(few, SCHEMA, budget="10", unit="replace-one") as airlock:
        network = adaptive(airlock, spend="1/10")
    assert network.provenance is not None and "structure" in network.provenance.details
    found = json.loads(format_release(make_release(network)))
    for _ in range(5):
        assert judge(found).sound, judge(found).checks


def test_an_option_without_an_exact_form_is_not_checked_in_words() -> None:
    with dc.open_airlock(ROWS, SCHEMA, budget="10") as airlock:
        found = judge(json.loads(format_release(make_release(adaptive(airlock, spend="1", rates=Rates())))))
    assert found.outcome == "not all checked" and found.unchecked == ("numbers", "ledger")
    words = next(check.words for check in found.checks if check.name == "numbers")
    assert words.startswith("the option 'rates' has no exact form")
    assert write_option(object()) == {
        "no exact form": "object"
    }  # no address, so a retry is the same question


@pytest.mark.parametrize("learner", [laplace, fourier, maximum])
def test_a_posterior_is_run_again(learner: Any) -> None:
    with dc.open_airlock(ROWS, SCHEMA, budget="10") as airlock:
        learned = learner(airlock, CHAIN, spend="8")
        network = learned if isinstance(learned, Network) else learned.network()
    found = judge(json.loads(format_release(make_release(network))))
    assert found.outcome == "adds up" and found.unchecked == ("ledger",), found.checks


def test_one_of_several_samples_is_not_called_checked() -> None:
    """What it follows from stands in the others, too."""
    with dc.open_airlock(ROWS, SCHEMA, budget="10") as airlock:
        network, _ = sample(airlock, CHAIN, spend="8", samples=2)
    found = judge(json.loads(format_release(make_release(network))))
    assert found.outcome == "not all checked" and "numbers" in found.unchecked, found.checks
