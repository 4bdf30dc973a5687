"""An account belongs to its data: a ledger remembers tables under a key of its own, and tells of a second account."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.entrance import open_airlock, open_ledger
from discreet.stores.fingerprint import mark_source
from discreet.values.errors import PromiseWarning
from discreet.values.schema import Schema

SCHEMA = Schema.of({"x": ["a", "b"]})
ROWS = {"x": ["a", "b", "b"]}


def open_table(data: Any, place: Path, account: str) -> list[str]:
    """What is told when a table is opened under an account."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        open_airlock(data, SCHEMA, budget="1", ledger=place, account=account, create=True).close()
    return [str(found.message) for found in told if found.category is PromiseWarning]


def write(path: Path, rows: dict[str, list[str]] = ROWS) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_a_second_account_on_the_same_table_is_told(tmp_path: Path) -> None:
    data, place = write(tmp_path / "rows.csv"), tmp_path / "my.ledger"
    assert not open_table(data, place, "clinic")
    assert not open_table(data, place, "clinic")
    (told,) = open_table(data, place, "clinlc")
    assert "opened before under the account 'clinic'" in told and "together with 'clinlc'" in told
    copied = Path(shutil.copy(data, tmp_path / "copy.csv"))
    assert open_table(copied, place, "third")  # by what is in it
    write(data, {"x": ["a"]})
    assert open_table(data, place, "fourth")  # by where it is
    assert not open_table(write(tmp_path / "other.csv", {"x": ["b"] * 7}), place, "fifth")


def test_a_new_ledger_beside_an_old_one_is_told(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.csv")
    assert not open_table(data, tmp_path / "my.ledger", "clinic")
    (tmp_path / "notes.txt").write_text("no ledger")
    (told,) = open_table(data, tmp_path / "new.ledger", "clinic")
    assert "'clinic' of my.ledger" in told and "together with 'clinic' of new.ledger" in told
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert not open_table(data, elsewhere / "new.ledger", "clinic")


@pytest.mark.parametrize("make", [dict, pd.DataFrame, pa.table], ids=["mapping", "pandas", "arrow"])
def test_tables_in_memory_are_known_by_their_values(make: Any, tmp_path: Path) -> None:
    place = tmp_path / "my.ledger"
    assert not open_table(make(ROWS), place, "one")
    assert open_table(make(ROWS), place, "two")
    assert not open_table(make({"x": ["b"]}), place, "three")


def test_a_mark_confirms_no_guess_without_the_key_and_is_never_published(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.csv")
    keys = []
    for name in ("one", "two"):
        with open_ledger(tmp_path / f"{name}.ledger", create=True) as ledger:
            keys.append(ledger.key)
    assert keys[0] != keys[1]
    marks = [mark_source(data, key) for key in keys]
    assert len(marks[0]) == 2 and not set(marks[0]) & set(marks[1])
    schema = tmp_path / "schema.toml"
    SCHEMA.write(schema)
    command = [
        "release",
        str(data),
        "--schema",
        str(schema),
        "--epsilon",
        "1",
        "--ledger",
        str(tmp_path / "one.ledger"),
    ]
    assert main([*command, "--create-ledger", "--account", "a", "--out", str(tmp_path / "out.json")]) == 0
    published = (tmp_path / "out.json").read_text()
    assert not any(mark in published for mark in marks[0]) and keys[0].hex() not in published
    assert "source" not in json.loads(published)["provenance"]["statement"]


def count_events(changed: bool, folder: Path) -> int:
    """How many events a release tells of, if the table changed, or not, since the one before."""
    folder.mkdir()
    data, place = write(folder / "rows.csv"), folder / "my.ledger"
    options = {"ledger": place, "account": "a", "budget": "2", "create": True, "epsilon": 1}
    dc.release(data, SCHEMA, {"x": []}, request="one", **options)  # type: ignore[arg-type]
    if changed:
        write(data, {"x": ["a", "b", "b", "b"]})
    said = dc.release(data, SCHEMA, {"x": []}, request="two", **options).provenance.statement  # type: ignore[arg-type]
    assert said is not None
    return said.events


def test_the_number_of_events_does_not_tell_whether_a_table_has_changed(tmp_path: Path) -> None:
    assert count_events(False, tmp_path / "same") == count_events(True, tmp_path / "changed")


def test_the_command_warns_and_still_does_what_was_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, schema = write(tmp_path / "rows.csv"), tmp_path / "schema.toml"
    SCHEMA.write(schema)
    for account in ("clinic", "clinlc"):
        assert main(
            ["release", str(data), "--schema", str(schema), "--epsilon", "1", "--ledger", str(tmp_path / "l"),
             "--create-ledger", "--account", account, "--out", str(tmp_path / f"{account}.json")]
        ) == 0  # fmt: skip
    assert "warning: this table was opened before under the account 'clinic'" in capsys.readouterr().err


def test_a_release_without_a_ledger_says_so_aloud_and_in_the_document(tmp_path: Path) -> None:
    with pytest.warns(PromiseWarning, match="no ledger remembers"):
        made = dc.release(ROWS, SCHEMA, {"x": []}, epsilon=1)
    assert made.promise.endswith("nobody adds it up.")
    assert dc.verify(made).sound
    kept = dc.release(ROWS, SCHEMA, {"x": []}, epsilon=1, ledger=tmp_path / "l", account="a", create=True)
    assert "simulation" not in kept.promise
