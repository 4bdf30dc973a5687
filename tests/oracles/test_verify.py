"""`discreet verify`: a sound release passes, and a document in which any one number was changed does not."""

from __future__ import annotations

import copy
import json
import random
import re
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import discreet as dc
from discreet.core.ledger import Ledger
from discreet.doors.release import release as make_release_of_rows
from discreet.entrance import open_ledger
from discreet.judge.verify import Verification, verify, verify_file
from discreet.networks.formats.release import RELEASE, Release, format_release, make_release, parse_release
from discreet.papers.parameters.independent import independent
from discreet.values.budget import ZCDP, ApproxDP, Finite, PureDP, allow
from discreet.values.errors import DiscreetError

ASIA = dc.examples.asia()
ROWS = ASIA.sample(800, rng=1).arrow()
CASES = [
    ("planned", PureDP(1), "add-remove"),
    ("planned", ZCDP("1/8"), "replace-one"),
    ("independent", PureDP(1), "add-remove"),
    ("independent", PureDP("1/3"), "replace-one"),
    ("dependent", PureDP(1), "add-remove"),
    ("dependent", PureDP(1), "replace-one"),
    ("independent", ApproxDP(1, "1e-6"), "add-remove"),
    ("independent", ZCDP("1/8"), "replace-one"),
]


def make(place: Path, learner: str, spend: Finite, unit: str) -> Release:
    return make_release_of_rows(
        ROWS, ASIA.schema, ASIA.dag, **spend.to_json(), ledger=place, account="clinic", unit=unit, learner=learner,
        create=True, budget=spend * 3,
    )  # fmt: skip


@pytest.mark.parametrize(("learner", "spend", "unit"), CASES)
def test_a_sound_release_passes_with_and_without_its_ledger(
    tmp_path: Path, learner: str, spend: Finite, unit: str
) -> None:
    release = make(tmp_path / "ledger", learner, spend, unit)
    alone = verify(parse_release(format_release(release)))
    assert alone.sound, alone.problems
    assert {check.name for check in alone.checks if check.holds is None} == {"ledger"}
    with open_ledger(tmp_path / "ledger") as ledger:
        held = verify(release, ledger)
        assert held.sound, held.problems
        assert all(check.holds for check in held.checks)
        ledger.debit("clinic", "later", allow(spend))  # the ledger goes on, and the release stands
        assert verify(release, ledger).sound


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
def test_a_graph_that_was_found_privately_is_found_again(tmp_path: Path, unit: str) -> None:
    """The choices are read off the published graph and order; another graph does not follow from the answers."""
    release = make_release_of_rows(
        ROWS, ASIA.schema, None, epsilon=1, ledger=tmp_path / "ledger", account="clinic", unit=unit,
        learner="privbayes", create=True, options={"k": 2},
    )  # fmt: skip
    with open_ledger(tmp_path / "ledger") as ledger:
        found = verify(parse_release(format_release(release)), ledger)
    assert found.sound and all(check.holds for check in found.checks), found.checks
    document = json.loads(format_release(release))
    document["provenance"]["details"]["structure"]["order"].reverse()
    assert not judge(document).sound


def test_options_are_part_of_what_is_run_again() -> None:
    airlock = dc.open_airlock(ROWS, ASIA.schema, budget="1")
    network = independent(airlock, ASIA.dag, spend="1/2", prior={"lung": [1.0, 2.0], "smoke": 3.0})
    text = format_release(make_release(network))
    assert verify(parse_release(text)).sound
    document = json.loads(text)
    document["provenance"]["details"]["options"]["prior"]["smoke"] = 30.0
    assert any("numbers" in problem for problem in judge(document).problems)


def judge(document: Any, ledger: Ledger | None = None) -> Verification:
    """What `verify` says of a document in a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "release.json"
        path.write_text(RELEASE.format_text(document), "utf-8")
        return verify_file(path, ledger)


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all numbers in a document, those written as text included."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path
    elif isinstance(value, str):
        try:
            Fraction(value)
        except (ValueError, ZeroDivisionError):
            return
        yield path


def tamper(document: Any, path: tuple[Any, ...], chance: random.Random) -> Any:
    """A copy in which one number is another one."""
    changed = copy.deepcopy(document)
    inner = changed
    for key in path[:-1]:
        inner = inner[key]
    old = inner[path[-1]]
    if isinstance(old, str):
        inner[path[-1]] = str(
            Fraction(old) * chance.choice([Fraction(1, 2), Fraction(9, 10), Fraction(11, 10), 2]) or 1
        )
    elif isinstance(old, int):
        inner[path[-1]] = old + chance.choice([-2, -1, 1, 7])
    else:
        inner[path[-1]] = old + chance.choice([-1, 1]) * chance.choice([1e-7, 1e-3, 0.2])
    return changed


@pytest.mark.parametrize(("learner", "spend", "unit"), [CASES[0], CASES[2], CASES[5]])
def test_one_changed_number_is_found(tmp_path: Path, learner: str, spend: Finite, unit: str) -> None:
    """With the ledger nothing but the list of software can be changed; without it, what only the ledger knows."""
    place = tmp_path / "ledger"
    document = json.loads(format_release(make(place, learner, spend, unit)))
    chance = random.Random(7)
    paths = list(leaves({key: value for key, value in document.items() if key != "software"}))
    kinds: dict[str, list[tuple[Any, ...]]] = {}
    for path in paths:
        kinds.setdefault("/".join(str(key) for key in path[:4] if not isinstance(key, int)), []).append(path)
    picked = [chance.choice(found) for found in kinds.values()] + chance.sample(paths, 12)
    missed = []
    with open_ledger(place) as ledger:
        for path in picked:
            changed = tamper(document, path, chance)
            if changed == document:
                continue
            only_ledger = path[:2] == ("provenance", "statement") and path[2] in ("ledger", "budget")
            try:
                if judge(changed, ledger).sound or (not only_ledger and judge(changed).sound):
                    missed.append((path, changed))
            except DiscreetError:
                continue
    assert [path for path, _ in missed] == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda d: d["measurements"][0]["law"].update(scale="1"), "too little noise"),
        (lambda d: d["measurements"][0].update(law={"law": "exact"}), "has no noise"),
        (lambda d: d["measurements"][0].update(cost={"epsilon": "1/2"}), "cost"),
        (lambda d: d["measurements"][0].update(unit="replace-one"), "protects replace-one"),
        (lambda d: d["statement"].update(spent={"epsilon": "5"}), "of a budget of"),
        (lambda d: d["statement"].update(spent={"epsilon": "1/2"}), "only ε = 0.5 was spent"),
        (lambda d: d["statement"].update(loss={"epsilon": "1/2"}), "the loss is stated"),
        (lambda d: d["statement"].update(unit="replace-one"), "the account protects"),
        (lambda d: d["statement"].update(spends=[]), "spends|costs|answers|ledger"),
        (lambda d: d["statement"].update(account="other"), "ledger"),
        (lambda d: d["statement"]["ledger"].update(id="0"), "paid for from ledger '0'"),
        (lambda d: d["statement"]["ledger"].update(head="0" * 64), "is not the one that the anchor"),
        (lambda d: d["statement"]["ledger"].update(events=99), "only 5 are left"),
        (lambda d: d["statement"].update(spends=3), "spends of a statement must be a list"),
        (lambda d: d.update(statement={"spends": [1]}), "lacks the key 'account'"),
        (lambda d: d["details"].update(options=[]), "malformed"),
        (lambda d: d["details"].update(options={"nonsense": 1}), "has no option 'nonsense'"),
        (lambda d: d["measurements"].pop(), "tables"),
        (lambda d: d["measurements"].append(d["measurements"][0]), "tables"),
        (lambda d: d.update(learner="dependent"), "numbers"),
    ],
)
def test_what_does_not_add_up_is_said_in_words(tmp_path: Path, change: Any, told: str) -> None:
    document = json.loads(format_release(make(tmp_path / "ledger", *CASES[2])))
    change(document["provenance"])
    with open_ledger(tmp_path / "ledger") as ledger:
        found = judge(document, ledger)
    assert not found.sound
    assert re.search(told, "\n".join(found.problems)), found.problems


def test_the_words_must_fit_the_numbers(tmp_path: Path) -> None:
    document = json.loads(format_release(make(tmp_path / "ledger", *CASES[2])))
    document["promise"] = document["promise"].replace("times as likely", "% more likely")
    assert "should be: This release hides" in judge(document).problems[0]


def test_a_cut_back_ledger_is_found(tmp_path: Path) -> None:
    """An older copy of the ledger, restored after the release: the head in the release is no longer in it."""
    place = tmp_path / "ledger"
    make(place, *CASES[2])
    old = place.read_bytes()
    release = make(place, "dependent", PureDP(1), "add-remove")
    place.write_bytes(old)
    with open_ledger(place) as ledger:
        assert any("are left" in problem for problem in verify(release, ledger).problems)


def test_a_table_that_is_no_table_is_a_problem_and_another_file_is_refused(tmp_path: Path) -> None:
    document = json.loads(format_release(make(tmp_path / "ledger", *CASES[2])))
    document["network"]["cpts"][0][0] += 0.25
    (tmp_path / "a.json").write_text(RELEASE.format_text(document))
    assert "form" in verify_file(tmp_path / "a.json").problems[0]
    for text in ("no", "{}", '{"format": "discreet-release", "version": 2}'):
        (tmp_path / "b.json").write_text(text)
        with pytest.raises(DiscreetError):
            verify_file(tmp_path / "b.json")


def test_a_network_of_another_version_is_sent_to_that_version(tmp_path: Path) -> None:
    """Estimates get better between versions, and a custodian's honest release of last year is no forgery."""
    release = make(tmp_path / "ledger", "planned", PureDP(1), "add-remove")
    document = json.loads(format_release(release))
    document["software"]["discreet"] = "0.0.1"
    assert judge(document).sound, "a version alone is no fault"
    document["network"]["cpts"][0] = document["network"]["cpts"][0][::-1]
    (problem,) = judge(document).problems
    assert "does not follow from the measurements" in problem
    assert "names discreet '0.0.1' as its maker" in problem and "verify it with that version" in problem
    document["software"]["discreet"] = dc.__version__
    assert all("maker" not in problem for problem in judge(document).problems)
