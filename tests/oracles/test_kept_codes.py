"""Codes that are kept give the tables that the rows give, are private, and never outlive the rows they were made of."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.doors.release import release
from discreet.entrance import open_counter
from discreet.rows.engines import kept_codes
from discreet.rows.engines.coded import CodedCounter
from discreet.values.errors import DataError
from discreet.values.schema import Schema
from discreet.values.unit import Unit

SCHEMA = Schema.of({"a": ["x", "y"], "b": [f"l{i}" for i in range(300)], "c": ["p", "q", "r"]})
SETS = [("a", "c"), ("b",), ("c", "b", "a"), ()]
STREAMED = 1
"""A memory limit of one byte: no codes are held."""


def write(path: Path, rows: int, seed: int = 0) -> Path:
    """A Parquet file of such rows, with a weight and a person each."""
    rng = np.random.default_rng(seed)
    columns = {
        name: np.array(SCHEMA[name].levels)[rng.integers(0, SCHEMA[name].size, rows)] for name in SCHEMA.names
    }
    columns["w"] = rng.integers(0, 4, rows)
    columns["who"] = rng.integers(0, max(rows // 3, 1), rows)
    pq.write_table(pa.table(columns), path)
    return path


def count(path: Any, folder: Path | None, **options: Any) -> list[np.ndarray]:
    """The tables of a file."""
    counter = open_counter(path, SCHEMA, codes=folder, **options)
    try:
        return [table.values for table in counter.count(SETS)]
    finally:
        counter.close()


@pytest.mark.parametrize(
    "options", [{}, {"weight": "w"}, {"unit": Unit("add-remove", weight="w", at_most=2)}]
)
@pytest.mark.parametrize("memory", [None, STREAMED])
def test_kept_codes_count_like_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], memory: int | None
) -> None:
    """Made, found again, held or read block by block, with weights or without."""
    monkeypatch.setattr(kept_codes, "BLOCK_ROWS", 1 << 8)
    path = write(tmp_path / "t.parquet", 1000)
    if "unit" in options:
        options = {**options, "weight": "w"}
    wanted = count(path, None, **options)
    for _ in range(2):
        for found, table in zip(count(path, tmp_path / "k", memory=memory, **options), wanted, strict=True):
            np.testing.assert_array_equal(found, table)
    (kept,) = (tmp_path / "k").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600


def test_the_second_opening_decodes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A CSV file is not even looked into, but for its digest."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\n" + "x,l1,p\ny,l299,r\n" * 5)
    wanted = count(path, tmp_path / "k")
    monkeypatch.setattr(
        "discreet.rows.engines.coded.open_reader", lambda *given: pytest.fail("decoded again")
    )
    for memory in (None, STREAMED):
        for found, table in zip(count(path, tmp_path / "k", memory=memory), wanted, strict=True):
            np.testing.assert_array_equal(found, table)


def test_other_content_is_not_mistaken(tmp_path: Path) -> None:
    """Of the same size and time of modification: one level is written over, the codes are made again."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\nx,l1,p\ny,l2,r\n")
    before = path.stat()
    count(path, tmp_path / "k")
    path.write_text("a,b,c\ny,l1,p\ny,l2,r\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.warns(UserWarning, match="the data has changed; the codes are made again"):
        found = count(path, tmp_path / "k")
    np.testing.assert_array_equal(found[0].sum(axis=1), [0, 2])
    assert len(list((tmp_path / "k").iterdir())) == 1, "codes of rows that are gone must not stay"


def test_each_schema_and_unit_has_its_own_codes(tmp_path: Path) -> None:
    """Another order of levels, or fewer rows of a person, are other codes."""
    path = write(tmp_path / "t.parquet", 300)
    turned = Schema.of({"a": ["y", "x"], "b": list(SCHEMA["b"].levels), "c": ["p", "q", "r"]})
    one = open_counter(path, SCHEMA, codes=tmp_path / "k").count([("a",)])[0].values
    two = open_counter(path, turned, codes=tmp_path / "k").count([("a",)])[0].values
    np.testing.assert_array_equal(one, two[::-1])
    for memory in (None, STREAMED):
        for _ in range(2):
            person = Unit("add-remove", "who", 1)
            found = open_counter(path, SCHEMA, codes=tmp_path / "k", unit=person, memory=memory)
            people = len(set(pq.read_table(path)["who"].to_pylist()))
            assert found.rows == found.count([("a",)])[0].values.sum() == people


@pytest.mark.parametrize("damage", ["cut", "head", "mode"])
def test_damaged_codes_are_made_again(tmp_path: Path, damage: str) -> None:
    """Cut off, overwritten, or open to others: never used."""
    path = write(tmp_path / "t.parquet", 500)
    wanted = count(path, tmp_path / "k")
    (kept,) = (tmp_path / "k").iterdir()
    if damage == "mode":
        kept.chmod(0o640)
    else:
        with kept.open("r+b") as file:
            file.truncate(5000) if damage == "cut" else file.write(b"something else {")
    with pytest.warns(UserWarning, match="the codes are made again"):
        found = count(path, tmp_path / "k")
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other)
    assert (tmp_path / "k").iterdir().__next__().stat().st_mode & 0o777 == 0o600


def test_codes_that_change_under_a_counter_are_noticed(tmp_path: Path) -> None:
    """Blocks are read again for each request: what is no longer there is refused."""
    path = write(tmp_path / "t.parquet", 500)
    counter = open_counter(path, SCHEMA, codes=tmp_path / "k", memory=STREAMED)
    assert isinstance(counter, CodedCounter) and not counter.in_memory
    (kept,) = (tmp_path / "k").iterdir()
    kept.write_bytes(kept.read_bytes()[:-1])
    with pytest.raises(DataError, match="changed"):
        counter.count([("a",)])


def test_a_folder_of_files_is_one_table(tmp_path: Path) -> None:
    """A file more, or one that is called differently, is other content."""
    folder = tmp_path / "rows"
    folder.mkdir()
    write(folder / "1.parquet", 100, 1)
    assert count(folder, tmp_path / "k")[3] == 100
    shutil.copy(folder / "1.parquet", folder / "2.parquet")
    with pytest.warns(UserWarning, match="the data has changed"):
        assert count(folder, tmp_path / "k")[3] == 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert count(folder, tmp_path / "k")[3] == 200


def test_bad_rows_leave_no_codes(tmp_path: Path) -> None:
    """A table that is refused is not kept."""
    path = tmp_path / "t.csv"
    path.write_text("a,b,c\nx,l1,nonsense\n")
    with pytest.raises(DataError, match="nonsense"):
        count(path, tmp_path / "k")
    assert list((tmp_path / "k").iterdir()) == []


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    """A half-written file of rows goes when codes are made again, unless somebody may still be writing it."""
    path, folder = write(tmp_path / "t.parquet", 10), tmp_path / "codes"
    count(path, folder)
    (made,) = folder.iterdir()
    made.unlink()
    old, new = (folder / f".{made.name}.{name}.part" for name in ("old", "new"))
    for left in (old, new):
        left.write_bytes(b"rows")
    os.utime(old, (0, 0))
    count(path, folder)
    assert sorted(folder.iterdir()) == sorted([made, new])


def test_codes_are_refused_where_they_cannot_be_kept(tmp_path: Path) -> None:
    """Of frames, engines and numbers; the message says what to leave out."""
    with pytest.raises(DataError, match=r"only of files.*leave out --codes"):
        open_counter({"a": ["x"], "b": ["l1"], "c": ["p"]}, SCHEMA, codes=tmp_path / "k")
    for place in ("postgresql://nowhere/db::t", tmp_path / "clinic.duckdb::visits"):
        with pytest.raises(DataError, match=r"only of files.*leave out --codes"):
            open_counter(place, SCHEMA, codes=tmp_path / "k")
    with pytest.raises(DataError, match=r"no numbers.*leave out --codes"):
        open_counter(write(tmp_path / "t.parquet", 9), SCHEMA, codes=tmp_path / "k", numbers=["w"])


def test_a_release_says_nothing_of_kept_codes(tmp_path: Path) -> None:
    """The same request with kept codes is answered by the ledger, byte for byte."""
    path = write(tmp_path / "t.parquet", 200)
    terms: dict[str, Any] = {
        "epsilon": 1,
        "graph": [("a", "c")],
        "ledger": tmp_path / "l",
        "account": "t",
        "create": True,
    }
    one = release(path, SCHEMA, **terms, codes=tmp_path / "k")
    other = release(path, SCHEMA, **terms, codes=tmp_path / "k")
    one.write(tmp_path / "one")
    other.write(tmp_path / "other")
    assert (tmp_path / "one" / "release.json").read_bytes() == (
        tmp_path / "other" / "release.json"
    ).read_bytes()
