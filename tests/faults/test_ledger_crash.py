"""kill -9 and power cuts at every step of a spend, through a shim between SQLite and its files.

A killed process leaves to its successor everything it had handed to the operating system; a power cut leaves
only what was synced. The shim stands in SQLite's file layer (its VFS), counts every write, truncation, sync
and deletion, can kill the process before any of them, and rebuilds what a disk would hold after a power cut.
"""

from __future__ import annotations

import ctypes
import os
import random
import re
import signal
import sqlite3
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from discreet.core.ledger import Ledger
from discreet.entrance import open_ledger
from discreet.stores.sqlite import SqliteStore
from discreet.values.budget import PureDP
from discreet.values.errors import LedgerError, Overspent

COST = PureDP("2/3")
FIRST_DRAW, SECOND_DRAW = b"first draw " * 1000, b"second draw"  # the first spills over several pages

POINTER = ctypes.c_void_p
OPEN = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, POINTER, ctypes.c_int, POINTER)
DELETE = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_char_p, ctypes.c_int)
CLOSE = ctypes.CFUNCTYPE(ctypes.c_int, POINTER)
WRITE = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, POINTER, ctypes.c_int, ctypes.c_int64)
TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int64)
SYNC = ctypes.CFUNCTYPE(ctypes.c_int, POINTER, ctypes.c_int)
KEPT: list[Any] = []  # SQLite calls back for as long as the process lives
IS_JOURNAL = 0x800 | 0x80000  # SQLITE_OPEN_MAIN_JOURNAL or SQLITE_OPEN_WAL


class Vfs(ctypes.Structure):
    """The head of `sqlite3_vfs`."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", POINTER),
        ("name", ctypes.c_char_p),
        ("data", POINTER),
        ("open", POINTER),
        ("delete", POINTER),
    )


class Methods(ctypes.Structure):
    """`sqlite3_io_methods`: five that change files, and thirteen that are passed through."""

    _fields_ = (
        ("version", ctypes.c_int),
        ("close", POINTER),
        ("read", POINTER),
        ("write", POINTER),
        ("truncate", POINTER),
        ("sync", POINTER),
        ("others", POINTER * 13),
    )


def find_sqlite() -> str | None:
    with suppress(OSError):
        found = re.search(r"\S*libsqlite3\S*", Path("/proc/self/maps").read_text())
        return found.group() if found else None
    return None


needs_shim = pytest.mark.skipif(
    find_sqlite() is None,
    reason="SQLite is not a shared library of this process, so there is no place for the shim",
)


class Disk:
    """What is in the files, and what of it a power cut would leave: content by inode, names by directory."""

    def __init__(self, step: Callable[[str], None]) -> None:
        self.step = step
        self.content: dict[int, bytearray] = {}
        self.synced: dict[int, bytes] = {}
        self.names: dict[str, int] = {}
        self.synced_names: dict[str, int] = {}
        self._files: dict[int, tuple[int, bool]] = {}

    def install(self) -> None:
        """Stand between SQLite and its default VFS for the rest of this process: only in a forked child."""
        library = ctypes.CDLL(find_sqlite())
        library.sqlite3_vfs_find.restype = ctypes.POINTER(Vfs)
        vfs = library.sqlite3_vfs_find(None).contents
        real_open, real_delete = OPEN(vfs.open), DELETE(vfs.delete)

        def open_file(own: int, name: int, file: int, flags: int, out: int) -> int:
            path = os.fsdecode(ctypes.string_at(name)) if name else ""
            new = bool(path) and not os.path.exists(path)
            if path and path not in self.names:
                inode = self.names[path] = len(self.content)
                self.content[inode] = bytearray(b"" if new else Path(path).read_bytes())
                if not new:  # it was there before the story begins
                    self.synced[inode], self.synced_names[path] = bytes(self.content[inode]), inode
            status: int = real_open(own, name, file, flags, out)
            if status == 0 and path:
                self._files[file] = (self.names[path], new and bool(flags & IS_JOURNAL))
                self._wrap(file)
            return status

        def delete_file(own: int, name: bytes, sync_directory: int) -> int:
            self.step("delete")
            status: int = real_delete(own, name, sync_directory)
            if status == 0:
                self.names.pop(os.fsdecode(name), None)
                if sync_directory:
                    self.synced_names = dict(self.names)
            return status

        hooks = OPEN(open_file), DELETE(delete_file)
        KEPT.extend([library, real_open, real_delete, hooks])
        vfs.open, vfs.delete = (ctypes.cast(hook, POINTER).value for hook in hooks)

    def _wrap(self, file: int) -> None:
        slot = ctypes.cast(file, ctypes.POINTER(ctypes.POINTER(Methods)))
        real = slot.contents.contents
        mine = Methods.from_buffer_copy(real)
        real_close, real_sync = CLOSE(real.close), SYNC(real.sync)
        real_write, real_truncate = WRITE(real.write), TRUNCATE(real.truncate)

        def close(own: int) -> int:
            self._files.pop(own, None)
            return real_close(own)  # type: ignore[no-any-return]

        def write(own: int, data: int, size: int, at: int) -> int:
            self.step("write")
            content = self.content[self._files[own][0]]
            content.extend(bytes(max(0, at + size - len(content))))
            content[at : at + size] = ctypes.string_at(data, size)
            return real_write(own, data, size, at)  # type: ignore[no-any-return]

        def truncate(own: int, size: int) -> int:
            self.step("truncate")
            del self.content[self._files[own][0]][size:]
            return real_truncate(own, size)  # type: ignore[no-any-return]

        def sync(own: int, flags: int) -> int:
            self.step("sync")
            inode, new_journal = self._files[own]
            self.synced[inode] = bytes(self.content[inode])
            if new_journal:  # SQLite syncs the directory with the first sync of a journal that it made
                self.synced_names = dict(self.names)
                self._files[own] = (inode, False)
            return real_sync(own, flags)  # type: ignore[no-any-return]

        hooks = CLOSE(close), WRITE(write), TRUNCATE(truncate), SYNC(sync)
        mine.close, mine.write, mine.truncate, mine.sync = (
            ctypes.cast(hook, POINTER).value for hook in hooks
        )
        KEPT.extend([mine, real_close, real_sync, real_write, real_truncate, hooks])
        slot[0] = ctypes.pointer(mine)

    def rebuild(self, folder: Path) -> None:
        """Write into `folder` what is left after a power cut at this moment."""
        folder.mkdir()
        for name, inode in self.synced_names.items():
            (folder / Path(name).name).write_bytes(self.synced.get(inode, b""))


def in_child(
    work: Callable[[Callable[[bytes], None]], None], kill_after: float | None = None
) -> tuple[list[bytes], int]:
    """Run `work` in a forked child; return the lines that got out, and its exit code or minus the signal."""
    reading, writing = os.pipe()

    def tell(line: bytes) -> None:
        os.write(writing, line + b"\n")

    child = os.fork()
    if child == 0:
        status = 99
        try:
            os.close(reading)
            work(tell)
            status = 0
        except BaseException:
            tell(traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writing)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    with os.fdopen(reading, "rb") as pipe:
        lines = pipe.read().splitlines()
    return lines, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


class Killer:
    """Counts steps and kills its own process with SIGKILL before the one that it was given."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.count = 0

    def __call__(self, name: str) -> None:
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


def spend(ledger: Ledger, draw: bytes, tell: Callable[[bytes], None], step: Callable[[str], None]) -> bytes:
    """One spend as the airlock does it, telling the outside world at each acknowledgement."""
    step("before")
    entry = ledger.debit("clinic", "the request", COST, {"table": ["a"]})
    tell(b"debited")
    step("draw")
    out = entry.answer if entry.answer is not None else ledger.answer(entry, draw)
    step("answered")
    tell(b"out " + out)
    return out


def check_aftermath(place: str, lines: list[bytes]) -> None:
    """No acknowledged debit is lost, one debit has one answer, and nothing is overspent."""
    with open_ledger(place) as ledger:
        assert ledger.verify().sound, ledger.verify().problems
        entries = ledger.entries("clinic")
        if b"debited" in lines:
            assert [entry.request for entry in entries] == ["the request"]
        let_out = {line[4:] for line in lines if line.startswith(b"out ")}
        if let_out:
            assert entries[0].answered
        told: list[bytes] = []
        let_out.add(spend(ledger, SECOND_DRAW, told.append, lambda name: None))
        let_out.add(spend(ledger, b"third draw", told.append, lambda name: None))
        assert len(let_out) == 1
        assert ledger.remaining("clinic") == PureDP("1/3")
        with pytest.raises(Overspent):
            ledger.debit("clinic", "more", PureDP("1/2"))
        assert ledger.verify(ledger.head()).sound


def make_ledger(place: str) -> None:
    with open_ledger(place, create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")


def kill_at_every_step(
    run: Callable[[Killer, Callable[[bytes], None]], None], check: Callable[[int, list[bytes]], None]
) -> int:
    """Kill a run before step 0, 1, 2 … until it gets through; return how many steps it has."""
    for at in range(1000):
        killer = Killer(at)
        lines, status = in_child(lambda tell, killer=killer: run(killer, tell))
        assert status in (0, -signal.SIGKILL), lines
        check(at, lines)
        if status == 0:
            return at
    raise AssertionError("the run never ended")


@needs_shim
def test_kill_at_every_file_operation_of_a_spend(tmp_path: Path) -> None:
    def run(killer: Killer, tell: Callable[[bytes], None]) -> None:
        place = str(tmp_path / f"{killer.at}.ledger")
        make_ledger(place)
        Disk(killer).install()
        with open_ledger(place) as ledger:
            spend(ledger, FIRST_DRAW, tell, killer)

    steps = kill_at_every_step(run, lambda at, lines: check_aftermath(str(tmp_path / f"{at}.ledger"), lines))
    assert steps > 15  # two transactions of several writes, syncs and a deletion each


@needs_shim
def test_the_kills_catch_an_answer_that_leaves_before_it_is_stored(tmp_path: Path) -> None:
    def run(killer: Killer, tell: Callable[[bytes], None]) -> None:
        place = str(tmp_path / f"{killer.at}.ledger")
        make_ledger(place)
        Disk(killer).install()
        with open_ledger(place) as ledger:
            entry = ledger.debit("clinic", "the request", COST, {"table": ["a"]})
            tell(b"out " + FIRST_DRAW)
            ledger.answer(entry, FIRST_DRAW)

    with pytest.raises(AssertionError, match="answered"):
        kill_at_every_step(run, lambda at, lines: check_aftermath(str(tmp_path / f"{at}.ledger"), lines))


@needs_shim
def test_kill_at_every_file_operation_of_making_a_ledger(tmp_path: Path) -> None:
    def run(killer: Killer, tell: Callable[[bytes], None]) -> None:
        Disk(killer).install()
        make_ledger(str(tmp_path / f"{killer.at}.ledger"))

    def check(at: int, lines: list[bytes]) -> None:
        place = str(tmp_path / f"{at}.ledger")
        with suppress(LedgerError), open_ledger(place) as left:  # refused as no ledger, or sound: never half
            assert left.verify().sound
        make_ledger(place)
        check_aftermath(place, [])

    assert kill_at_every_step(run, check) > 8


def test_kill_at_every_statement_of_a_spend_in_postgres(postgres_schema: Callable[[], str]) -> None:
    psycopg = pytest.importorskip("psycopg")
    places: dict[int, str] = {}

    def place_of(at: int) -> str:
        if at not in places:
            places[at] = postgres_schema()
            make_ledger(places[at])
        return places[at]

    def run(killer: Killer, tell: Callable[[bytes], None]) -> None:
        with open_ledger(places[killer.at]) as ledger:
            for owner, name in ((psycopg.Connection, "execute"), (psycopg.Transaction, "__exit__")):
                real = getattr(owner, name)

                def stepping(*given: Any, _real: Any = real, **named: Any) -> Any:
                    killer("before")
                    found = _real(*given, **named)
                    killer("after")
                    return found

                setattr(owner, name, stepping)
            spend(ledger, FIRST_DRAW, tell, killer)

    place_of(0)

    def check(at: int, lines: list[bytes]) -> None:
        check_aftermath(places[at], lines)
        place_of(at + 1)

    assert kill_at_every_step(run, check) > 15


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_kill_from_outside_at_random_moments(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    place = str(tmp_path / "a.ledger") if kind == "sqlite" else request.getfixturevalue("postgres_schema")()
    with open_ledger(place, create=True) as made:
        made.open_account("clinic", PureDP(1), "add-remove")
    rng = random.Random(7)
    debited: set[str] = set()
    let_out: dict[str, set[bytes]] = {}

    def work(tell: Callable[[bytes], None]) -> None:
        with open_ledger(place) as ledger:
            for number in range(10**6):
                # Few ids, so that the next life of the process meets what the last one left behind.
                name = f"r{number % 40}"
                entry = ledger.debit("clinic", name, PureDP("1/64"))
                tell(f"debited {name}".encode())
                out = entry.answer or ledger.answer(entry, os.urandom(8).hex().encode())
                tell(f"out {name} ".encode() + out)

    for i in range(60):
        if i >= 8 and len(debited) > 5:  # on a busy machine a server answers seldom in a quarter of a second
            break
        lines, status = in_child(work, kill_after=rng.uniform(0.02, 0.25) * (1 + i / 8))
        assert status == -signal.SIGKILL, lines
        for word, name, *rest in (line.decode().split() for line in lines):
            if word == "debited":
                debited.add(name)
            else:
                let_out.setdefault(name, set()).add(rest[0].encode())
    with open_ledger(place) as ledger:
        assert ledger.verify().sound
        entries = {entry.request: entry for entry in ledger.entries("clinic")}
        assert debited <= set(entries)
        assert len(entries) <= 40
        assert all(len(answers) == 1 for answers in let_out.values())
        assert all(ledger.debit("clinic", name, PureDP("1/64")).answer in let_out[name] for name in let_out)
        assert len(debited) > 5


class Careless(SqliteStore):
    """A twin of the store that runs with other settings than ours."""

    journal = "DELETE"
    synchronous = "EXTRA"

    def _connect(self, mode: str, new: bool = False) -> sqlite3.Connection:
        connection = super()._connect(mode, new)
        if not new:
            connection.execute(f"PRAGMA journal_mode = {self.journal}")
            connection.execute(f"PRAGMA synchronous = {self.synchronous}")
        return connection


@needs_shim
@pytest.mark.parametrize(
    ("journal", "synchronous", "survives"),
    [
        ("DELETE", "EXTRA", True),  # ours
        ("WAL", "FULL", True),
        (
            "DELETE",
            "FULL",
            False,
        ),  # the journal comes back with its directory entry, and rolls the debit back
        ("DELETE", "NORMAL", False),
        ("DELETE", "OFF", False),
        ("WAL", "NORMAL", False),
    ],
)
def test_only_synced_settings_keep_an_acknowledged_debit_through_a_power_cut(
    tmp_path: Path, journal: str, synchronous: str, survives: bool
) -> None:
    place, after = tmp_path / "a.ledger", tmp_path / "after"
    make_ledger(str(place))

    def work(tell: Callable[[bytes], None]) -> None:
        disk = Disk(lambda name: None)
        disk.install()
        Careless.journal, Careless.synchronous = journal, synchronous
        ledger = Ledger(Careless(place))
        ledger.debit("clinic", "the request", COST)
        disk.rebuild(after)
        tell(b"debited")

    lines, status = in_child(work)
    assert (lines, status) == ([b"debited"], 0)
    with open_ledger(after / "a.ledger") as ledger:
        kept = [entry.request for entry in ledger.entries("clinic")] == ["the request"]
        assert ledger.verify().sound
    assert kept == survives


def test_the_store_itself_runs_with_the_settings_that_survive(tmp_path: Path) -> None:
    make_ledger(str(tmp_path / "a.ledger"))
    store = SqliteStore(tmp_path / "a.ledger")
    assert store._connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert store._connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["a.ledger"]


@needs_shim
@pytest.mark.parametrize("verb", ["debit", "answer"])
def test_power_cut_right_after_each_acknowledgement(tmp_path: Path, verb: str) -> None:
    place, after = tmp_path / "a.ledger", tmp_path / "after"
    make_ledger(str(place))

    def work(tell: Callable[[bytes], None]) -> None:
        disk = Disk(lambda name: None)
        disk.install()
        ledger = open_ledger(place)
        entry = ledger.debit("clinic", "the request", COST, {"table": ["a"]})
        tell(b"debited")
        if verb == "answer":
            tell(b"out " + ledger.answer(entry, FIRST_DRAW))
        disk.rebuild(after)

    lines, status = in_child(work)
    assert status == 0
    check_aftermath(str(after / "a.ledger"), lines)
