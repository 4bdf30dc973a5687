"""Rows in damaged files, cells that readers disagree about, and runs that pay at the same time."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import discreet as dc
from discreet.entrance import open_counter, open_ledger
from discreet.rows.limits import read_memory
from discreet.rows.readers.arrow_check import require_sound
from discreet.values.budget import PureDP
from discreet.values.errors import DataError, DiscreetError

SCHEMA = dc.Schema.of({"a": ["x", "yy", "zzz"], "b": ["0", "1"]})


def write_arrow(path: Path, compression: str | None = None) -> bytes:
    table = pa.table({"a": ["x", "yy", "zzz"] * 60, "b": pa.array(["0", "1"] * 90).dictionary_encode()})
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return path.read_bytes()


def test_an_arrow_file_whose_offsets_lead_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.arrow"
    data = write_arrow(path)
    counter = open_counter(path, SCHEMA, threads=1)
    assert counter.rows == 180
    counter.close()
    offsets = b"".join(
        number.to_bytes(4, "little") for number in (0, 1, 3, 6, 7)
    )  # of the texts x, yy, zzz, x
    at = data.index(offsets)
    path.write_bytes(data[: at + 4] + (2**31 - 9).to_bytes(4, "little") + data[at + 8 :])
    with pytest.raises(DataError, match=r"rows\.arrow: the Arrow file is damaged"):
        open_counter(path, SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("compression", [None, "lz4"])
def test_no_flipped_bit_ends_the_process(tmp_path: Path, compression: str | None) -> None:
    path = tmp_path / "rows.arrow"
    data = write_arrow(path, compression)
    chance = random.Random(5)
    for _ in range(60):
        at, changed = chance.randrange(8 * len(data)), bytearray(data)
        changed[at // 8] ^= 1 << at % 8
        path.write_bytes(changed)
        try:
            require_sound("rows.arrow", path)
            open_counter(path, SCHEMA, threads=1).count([("a", "b")])
        except DiscreetError:
            continue


FLIP = """
import random, sys
from pathlib import Path
import discreet as dc
from discreet.entrance import open_counter
from discreet.values.errors import DiscreetError
path, chance = Path(sys.argv[1]), random.Random(6)
data, schema = path.read_bytes(), dc.Schema.of({"a": ["x", "yy", "zzz"], "b": ["0", "1"]})
for turn in range(40):
    at, changed = chance.randrange(8 * len(data)), bytearray(data)
    changed[at // 8] ^= 1 << at % 8
    path.write_bytes(changed[: at // 8] if turn % 5 == 4 else changed)
    try:
        open_counter(str(path), schema, threads=1)
    except DiscreetError:
        continue
print("done")
"""


@pytest.mark.slow
@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_no_flipped_bit_of_a_parquet_file_ends_the_process(tmp_path: Path, compression: str) -> None:
    """DuckDB checks what it reads, so Parquet needs no process of its own as Arrow does."""
    table = pa.table({"a": ["x", "yy", "zzz", "x"] * 50, "b": ["0", "1"] * 100})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet", compression=compression)
    ran = subprocess.run(
        [sys.executable, "-c", FLIP, str(tmp_path / "rows.parquet")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, "done\n"), ran.stderr[-2000:]


@pytest.mark.parametrize("cell", [' ""', ' "x"', ' "" ', '  "'])
def test_a_blank_before_a_quote_has_no_one_meaning(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"b,a\n0,x\n1,{cell}\n")
    with pytest.raises(DataError, match="line 3: a blank before a quote"):
        open_counter(path, SCHEMA)


def test_blanks_elsewhere_are_what_they_were(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    schema = dc.Schema.of({"a": ["x", " x", 'x "y"', " "], "b": ["0", "1"]})
    path.write_text('b,a\n0, x\n1,x\n0,"x ""y"""\n1, \n')
    assert open_counter(path, schema).count([("a",)])[0].values.tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("text", ["9" * 400, "9" * 400 + "GB", "-1", "1e9", "", "1 000", "٣GB"])
def test_a_memory_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(DiscreetError, match="is not a size"):
        read_memory(text)


def test_a_run_that_was_overtaken_has_paid_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process pays for the same request between the look at the account and the debit."""
    rows = {"a": ["x", "yy", "zzz"] * 9, "b": ["0", "1", "0"] * 9}
    common: dict[str, Any] = {
        "ledger": tmp_path / "l",
        "account": "c",
        "budget": 3,
        "create": True,
        "request": "r",
    }
    first = dc.release(rows, SCHEMA, {"a": (), "b": ("a",)}, epsilon=1, **common)
    assert first.receipt is not None and first.receipt.paid and first.receipt.amount == PureDP(1)
    from discreet.core.airlock import Airlock

    # What the others see who began before it was paid for: their account still had everything.
    monkeypatch.setattr(Airlock, "remaining", PureDP(3))
    again = dc.release(rows, SCHEMA, {"a": (), "b": ("a",)}, epsilon=1, **common)
    assert again.receipt is not None and not again.receipt.paid and again.receipt.amount is None


@pytest.mark.slow
def test_of_six_runs_at_once_one_pays_and_five_say_so(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a,b\n" + "x,0\nyy,1\nzzz,0\n" * 30)
    (tmp_path / "s.toml").write_text('[attributes]\na.levels = ["x", "yy", "zzz"]\nb.levels = ["0", "1"]\n')
    (tmp_path / "g.txt").write_text("a -> b\n")
    with open_ledger(tmp_path / "l", create=True) as ledger:
        ledger.open_account("c", PureDP(3), "add-remove")
    command = [
        sys.executable, "-m", "discreet", "release", "rows.csv", "--schema", "s.toml", "--graph", "g.txt", "--epsilon",
        "1", "--ledger", "l", "--account", "c",
    ]  # fmt: skip
    runs = [
        subprocess.Popen([*command, "--out", f"{i}.json"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
        for i in range(6)
    ]
    said = [run.communicate(timeout=280)[0] for run in runs]
    assert [run.returncode for run in runs] == [0] * 6
    assert sum("paid ε = 1" in text for text in said) == 1
    assert sum("nothing was paid" in text for text in said) == 5
    with open_ledger(tmp_path / "l") as ledger:
        assert ledger.account("c").spent == PureDP(1)
