"""Nothing can hide in a release that adds up: every byte of it is derived, or is somebody's declared word."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.doors.release import release as make_release_of_rows
from discreet.entrance import open_ledger
from discreet.judge.verify import Verification, verify_file
from discreet.learning.learner import digest_call
from discreet.networks.formats.digits import DIGITS, SLACK, find_strange, is_published, round_number
from discreet.networks.formats.release import RELEASE, format_release
from discreet.values.files import write_text
from discreet.values.schema import Schema

SCHEMA = Schema.of({"smoke": ["no", "yes"], "ward": ["a", "b", "c"], "ill": ["no", "mild", "severe"]})
CHANCE = np.random.default_rng(4)
ROWS = {found.name: [found.levels[i] for i in CHANCE.integers(0, found.size, 300)] for found in SCHEMA}
GRAPH = {"smoke": (), "ward": ("smoke",), "ill": ("smoke", "ward")}
CASES: dict[str, dict[str, Any]] = {
    "planned": {"graph": GRAPH, "unit": "replace-one"},
    "privbayes": {"options": {"encoding": "binary", "k": 1}},
}


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger and the two releases that it paid for."""
    folder = tmp_path_factory.mktemp("clinic")
    for name, options in CASES.items():
        made = make_release_of_rows(
            ROWS, SCHEMA, ledger=folder / "ledger", account=name, learner=name, epsilon=2, create=True,
            **{"graph": None, **options},
        )  # fmt: skip
        write_text(folder / f"{name}.json", format_release(made))
    return folder


def judge(clinic: Path, file: Path) -> Verification:
    with open_ledger(clinic / "ledger") as ledger:
        return verify_file(file, ledger)


@pytest.mark.parametrize("name", CASES)
def test_an_honest_release_is_its_own_canonical_form(clinic: Path, tmp_path: Path, name: str) -> None:
    assert all(check.holds for check in judge(clinic, clinic / f"{name}.json").checks)
    text = (clinic / f"{name}.json").read_text("utf-8")
    write_text(tmp_path / "packed.json.gz", text)
    assert judge(clinic, tmp_path / "packed.json.gz").sound


@pytest.mark.parametrize(
    "respell",
    [
        lambda data: data + b" ",
        lambda data: data + b"\n" * 3,
        lambda data: b"\xef\xbb\xbf" + data,
        lambda data: data.replace(b", ", b",  ", 1),
        lambda data: data.replace(b", ", b",\t", 1),
        lambda data: data.replace(b"\n", b"\r\n"),
        lambda data: data.replace(b'"smoke"', b'"\\u0073moke"', 1),
        lambda data: json.dumps(json.loads(data)).encode(),
        lambda data: json.dumps(json.loads(data), sort_keys=True).encode(),
        lambda data: RELEASE.format_text(
            {**json.loads(data), "software": dict(reversed(json.loads(data)["software"].items()))}
        ).encode(),
    ],
)  # fmt: skip
def test_a_respelled_document_is_another_document(
    clinic: Path, tmp_path: Path, respell: Callable[[bytes], bytes]
) -> None:
    data = (clinic / "planned.json").read_bytes()
    changed = respell(data)
    assert changed != data
    (tmp_path / "r.json").write_bytes(changed)
    told = judge(clinic, tmp_path / "r.json").problems[0]
    assert told.startswith("form: not the same document: line ")
    (tmp_path / "r.json.gz").write_bytes(gzip.compress(changed, mtime=0))
    assert not judge(clinic, tmp_path / "r.json.gz").sound


def test_a_number_spelled_otherwise_is_another_document(clinic: Path, tmp_path: Path) -> None:
    text = (clinic / "planned.json").read_text("utf-8")
    first = repr(json.loads(text)["network"]["cpts"][0][0])
    for other in (f"{first}0", f"{first}e0", f"{first}000000000000000001"):
        assert float(other) == float(first)
        (tmp_path / "r.json").write_text(text.replace(first, other, 1), "utf-8")
        assert not judge(clinic, tmp_path / "r.json").sound


@pytest.mark.parametrize("where", ["name", "time", "after", "member"])
def test_the_wrapping_holds_nothing(clinic: Path, tmp_path: Path, where: str) -> None:
    data, file = (clinic / "planned.json").read_bytes(), tmp_path / "r.json.gz"
    if where == "name":
        with file.open("wb") as raw, gzip.GzipFile("row 17 has it", "wb", fileobj=raw, mtime=0) as packed:
            packed.write(data)
    else:
        extra = {"time": b"", "after": b"\0" * 17, "member": gzip.compress(b"", mtime=0)}[where]
        file.write_bytes(gzip.compress(data, mtime=17 if where == "time" else 0) + extra)
    assert judge(clinic, file).problems == (
        "form: the gzip file holds more than the document; unpack it, and check that",
    )


def change_labels(document: Any) -> None:
    """The levels of a derived attribute as a sentence."""
    added = document["provenance"]["details"]["auxiliary"][0]
    attribute = next(found for found in document["network"]["schema"]["attributes"] if found["name"] == added)
    attribute["levels"] = ["patient 17 is ill", "or not"]


def nudge(path: tuple[Any, ...]) -> Callable[[Any], None]:
    """One more digit, far below what a tolerance would see."""

    def change(document: Any) -> None:
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        last = path[-1] if path[-1] is not None else next(iter(inner))
        inner[last] = float(np.nextafter(inner[last], 1.0))

    return change


def reverse(path: tuple[str, ...]) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = dict(reversed(inner[path[-1]].items()))

    return change


@pytest.mark.parametrize(
    ("name", "change", "told"),
    [
        ("privbayes", change_labels, "schema|numbers"),
        ("planned", nudge(("network", "cpts", 2, 4)), "does not follow"),
        ("planned", nudge(("provenance", "predicted error", None)), "predicted errors"),
        ("planned", reverse(("provenance", "predicted error")), "another order"),
        ("planned", reverse(("provenance", "details")), "another order"),
        ("privbayes", reverse(("provenance", "details", "options")), "another order"),
        ("planned", lambda d: d["provenance"]["statement"].update(rows=299), "not those that were paid for"),
        ("planned", lambda d: d["software"].update(numpy="row.17.has.it"), "short version"),
        ("planned", lambda d: d["software"].update(numpy="1.2+row17"), "short version"),
        ("planned", lambda d: d["software"].update(numpy="17.20261117123456"), "short version"),
        ("planned", lambda d: d["software"].pop("opendp"), "lacks the key 'opendp'"),
    ],
)
def test_what_once_passed_with_the_ledger_at_hand_does_not(
    clinic: Path, tmp_path: Path, name: str, change: Callable[[Any], Any], told: str
) -> None:
    document = json.loads((clinic / f"{name}.json").read_text("utf-8"))
    spoilt = copy.deepcopy(document)
    change(spoilt)
    (tmp_path / "r.json").write_text(RELEASE.format_text(document), "utf-8")
    assert judge(clinic, tmp_path / "r.json").sound
    (tmp_path / "r.json").write_text(RELEASE.format_text(spoilt), "utf-8")
    problems = judge(clinic, tmp_path / "r.json").problems
    assert any(any(part in problem for part in told.split("|")) for problem in problems), problems


def test_mended_rows_are_not_what_the_ledger_marked(clinic: Path, tmp_path: Path) -> None:
    from discreet.values.graph import DAG

    document = json.loads((clinic / "planned.json").read_text("utf-8"))
    said, dag = document["provenance"]["statement"], DAG.build(GRAPH)
    options = document["provenance"]["details"]["options"]
    assert said["purpose"] == digest_call("planned", options, dag, 300)
    said.update(rows=299, purpose=digest_call("planned", options, dag, 299))
    (tmp_path / "r.json").write_text(RELEASE.format_text(document), "utf-8")
    assert any(
        "ledger says otherwise: purpose" in told for told in judge(clinic, tmp_path / "r.json").problems
    )


def test_either_rounding_is_right_only_in_the_middle() -> None:
    middle = 0.12345678905  # between 0.1234567890 and 0.1234567891
    assert is_published(0.123456789, middle) and is_published(0.1234567891, middle)
    assert not is_published(0.1234567892, middle)
    away = middle * (1 + 3 * SLACK)
    assert is_published(0.1234567891, away) and not is_published(0.123456789, away)
    assert not is_published(-0.0, 0.0) and is_published(0.0, -0.0)


def test_rounding_is_idempotent_and_nearly_every_cell_has_one_form() -> None:
    values = np.exp(CHANCE.uniform(-300, 0, 20_000))
    rounded = np.array([round_number(value) for value in values.tolist()])
    assert (np.abs(rounded / values - 1) <= 0.5 * 10.0 ** (1 - DIGITS)).all()
    assert [round_number(value) for value in rounded.tolist()] == rounded.tolist()
    assert find_strange(rounded, values) is None
    assert find_strange(rounded, values * (1 + 5e-15)) is None  # as far as two processors were seen apart
    off = np.array([float(f"{value:.{DIGITS - 1}e}") for value in (rounded * (1 + 3e-9)).tolist()])
    assert not any(is_published(float(one), float(two)) for one, two in zip(off, values, strict=True))
    free = sum(round_number(v * (1 - SLACK)) != round_number(v * (1 + SLACK)) for v in values.tolist())
    assert free < 0.02 * len(values)
