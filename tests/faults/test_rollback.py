"""An old copy of the ledger put back, a second name of its file, a full disk: noticed before anything is paid."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.core.chain import Anchor
from discreet.doors.cli import main
from discreet.entrance import open_ledger
from discreet.judge.trust.witness import Witness, find_conflict, note_anchor, read_witnesses
from discreet.stores import sqlite
from discreet.values.budget import PureDP
from discreet.values.errors import DiscreetError, LedgerError

SCHEMA = dc.Schema.of({"a": ["0", "1"], "b": ["0", "1"]})
ROWS = {
    name: [str(code) for code in np.random.default_rng(i).integers(0, 2, 90)] for i, name in enumerate("ab")
}
GRAPH = {"a": (), "b": ("a",)}


def publish(ledger: Path, request: str, **options: Any) -> dc.Release:
    common: dict[str, Any] = {"ledger": ledger, "account": "clinic", "budget": 9, "create": True}
    return dc.release(ROWS, SCHEMA, GRAPH, epsilon=1, request=request, **common, **options)


@pytest.fixture
def rolled_back(tmp_path: Path) -> Path:
    """A ledger that was put back to what it was before the second release, which lies in its folder."""
    ledger = tmp_path / "clinic.ledger"
    publish(ledger, "one").write(tmp_path / "one.json")
    shutil.copy(ledger, tmp_path / "copy")
    publish(ledger, "two", witness=tmp_path / "notes.txt").write(tmp_path / "two.json")
    shutil.copy(tmp_path / "copy", ledger)
    return tmp_path


@pytest.mark.parametrize("where", ["witness", "beside"])
@pytest.mark.parametrize("what", ["two.json", "notes.txt", "folder"])
def test_a_ledger_that_was_rolled_back_pays_for_nothing(rolled_back: Path, where: str, what: str) -> None:
    ledger, seen = rolled_back / "clinic.ledger", rolled_back / what
    if what == "folder":
        seen.mkdir()
        shutil.copy(rolled_back / "two.json", seen)
    before = ledger.read_bytes()
    with pytest.raises(LedgerError, match=r"was rolled back or rewritten: .* nothing was spent"):
        publish(ledger, "three", **{where: seen})
    assert ledger.read_bytes() == before
    publish(ledger, "three", **{where: rolled_back / "one.json"})  # an earlier anchor is still in the chain


def test_the_command_does_not_write_over_a_later_release(
    rolled_back: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rolled_back / "rows.csv").write_text("a,b\n" + "0,1\n1,0\n" * 9)
    (rolled_back / "s.toml").write_text('[attributes]\na.levels = ["0", "1"]\nb.levels = ["0", "1"]\n')
    kept = (rolled_back / "two.json").read_bytes()
    common = [
        "release", str(rolled_back / "rows.csv"), "--schema", str(rolled_back / "s.toml"), "--epsilon", "1",
        "--ledger", str(rolled_back / "clinic.ledger"), "--account", "clinic",
    ]  # fmt: skip
    assert main([*common, "--out", str(rolled_back / "two.json")]) == 2
    assert "was rolled back or rewritten" in capsys.readouterr().err
    assert (rolled_back / "two.json").read_bytes() == kept
    assert (
        main([*common, "--out", str(rolled_back / "new.json"), "--witness", str(rolled_back / "notes.txt")])
        == 2
    )
    assert not (rolled_back / "new.json").exists()
    assert (
        main([*common, "--out", str(rolled_back / "new.json"), "--witness", str(rolled_back / "no" / "x")])
        == 2
    )
    assert "anchors cannot be written there" in capsys.readouterr().err
    assert (
        main([*common, "--out", str(rolled_back / "new.json"), "--witness", str(rolled_back / "mine.txt")])
        == 0
    )
    assert len(read_witnesses(rolled_back / "mine.txt")) == 1


def test_budget_verify_takes_any_number_of_releases(
    rolled_back: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger, one, two = (str(rolled_back / name) for name in ("clinic.ledger", "one.json", "two.json"))
    assert main(["budget", "verify", ledger, one, one]) == 0
    assert "all 2 anchors match" in capsys.readouterr().out
    assert main(["budget", "verify", ledger, one, two]) == 1
    assert "only" in capsys.readouterr().out
    assert main(["budget", "verify", ledger, str(rolled_back)]) == 1
    publish(rolled_back / "other.ledger", "x").write(rolled_back / "other.json")
    assert main(["budget", "verify", ledger, str(rolled_back / "other.json")]) == 1
    assert "was paid for from ledger" in capsys.readouterr().out
    assert main(["budget", "verify", ledger, str(rolled_back / "none.json")]) == 2
    (rolled_back / "bad.txt").write_text("12:00\n")
    assert main(["budget", "verify", ledger, str(rolled_back / "bad.txt")]) == 2
    assert "is no anchor" in capsys.readouterr().err


def make(path: Path) -> Path:
    with open_ledger(path, create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")
    return path


def test_a_second_name_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, other = make(tmp_path / "a.ledger"), tmp_path / "b.ledger"
    monkeypatch.setattr(sqlite.time, "sleep", lambda seconds: None)
    with open_ledger(place) as ledger:
        os.link(place, other)
        with pytest.raises(LedgerError, match=r"has 2 names \(hard links\)"):
            ledger.debit("clinic", "r", PureDP("1/2"))
    for name in (place, other):
        with pytest.raises(LedgerError, match=r"has 2 names \(hard links\)"):
            open_ledger(name)
    other.unlink()
    (tmp_path / "link.ledger").symlink_to(place)  # leads to the one name, and to its journal
    with open_ledger(tmp_path / "link.ledger") as ledger:
        assert ledger.place == str(place)
        ledger.debit("clinic", "r", PureDP("1/2"))


JOURNAL = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("PRAGMA synchronous = EXTRA")
connection.execute("BEGIN IMMEDIATE")
connection.execute("DROP TRIGGER event_never_changed")
for i in range(200):
    connection.execute("CREATE TABLE IF NOT EXISTS t%d (x)" % i)
connection.execute("INSERT INTO t1 VALUES (zeroblob(200000))")
os.kill(os.getpid(), 9)
"""


def test_a_journal_left_behind_is_used_under_the_one_name_that_is_allowed(tmp_path: Path) -> None:
    """A crash leaves a journal, somebody spends by another name, the journal comes back."""
    place, other = make(tmp_path / "a.ledger"), tmp_path / "b.ledger"
    died = subprocess.run([sys.executable, "-c", JOURNAL, str(place)], check=False)
    assert died.returncode == -signal.SIGKILL and (tmp_path / "a.ledger-journal").stat().st_size > 0
    os.link(place, other)
    with pytest.raises(LedgerError, match="hard links"):
        open_ledger(other)
    other.unlink()
    with open_ledger(place) as ledger:
        ledger.debit("clinic", "r", PureDP("1/2"))
        assert ledger.verify().sound
    assert not (tmp_path / "a.ledger-journal").exists()
    with open_ledger(place) as ledger:
        assert [entry.request for entry in ledger.entries("clinic")] == ["r"]


def test_a_file_that_is_mounted_by_itself_is_refused(tmp_path: Path) -> None:
    """By a real bind mount where that is permitted; the reading of the list of mounts is tested either way."""
    place, other = make(tmp_path / "a.ledger"), tmp_path / "b ledger"
    other.touch()
    mounted = subprocess.run(["mount", "--bind", str(place), str(other)], capture_output=True, check=False)
    if mounted.returncode == 0:
        try:
            with pytest.raises(LedgerError, match="is mounted by itself"):
                open_ledger(other)
        finally:
            subprocess.run(["umount", str(other)], check=True)
    assert "/" in sqlite.list_mounts()


def test_an_empty_file_is_recognised(tmp_path: Path) -> None:
    empty = tmp_path / "empty.ledger"
    empty.touch()
    for create in (False, True):
        with pytest.raises(LedgerError, match=r"it is empty.*the disk was full, remove it"):
            open_ledger(empty, create=create)
    assert empty.read_bytes() == b""


FULL = """
import resource, sys
from pathlib import Path
from discreet.entrance import open_ledger
from discreet.values.errors import LedgerError
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
try:
    open_ledger(sys.argv[1], create=True)
except LedgerError as problem:
    print(problem)
"""


@pytest.mark.parametrize("room", [0, 600, 5000])
def test_a_full_disk_leaves_no_half_ledger(tmp_path: Path, room: int) -> None:
    place = tmp_path / "new.ledger"
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(place), str(room)], capture_output=True, text=True, check=True
    )
    assert "disk" in ran.stdout and ran.stdout.count("\n") == 1
    assert os.listdir(tmp_path) == []
    make(place)


def trace(code: str, *arguments: str, out: Path) -> list[str]:
    """The system calls of a program on files and folders, in order."""
    if shutil.which("strace") is None:
        pytest.fail("strace is needed to see what is synced: install it (Debian: apt-get install strace)")
    calls = "openat,open,rename,renameat,renameat2,link,linkat,unlink,unlinkat,fsync,fdatasync,close"
    command = [
        "strace",
        "-f",
        "-y",
        "-e",
        f"trace={calls}",
        "-o",
        str(out),
        sys.executable,
        "-c",
        code,
        *arguments,
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    return out.read_text("utf-8", "replace").splitlines()


def is_synced_after(lines: list[str], moment: Callable[[str], bool], folder: Path) -> bool:
    """Whether the folder itself is synced after the last call of a kind."""
    at = max(i for i, line in enumerate(lines) if moment(line))
    return any("sync(" in line and f"<{folder}>" in line for line in lines[at:])


@pytest.mark.slow
def test_folders_are_synced_after_files_get_their_names(tmp_path: Path) -> None:
    folder = (tmp_path / "f").resolve()
    folder.mkdir()
    write = "import sys; from discreet.values.files import write_text; write_text(sys.argv[1], 'x')"
    lines = trace(write, str(folder / "a.json"), out=tmp_path / "1")
    assert is_synced_after(lines, lambda line: "rename" in line and "a.json" in line, folder)
    spend = (
        "import sys; from discreet.entrance import open_ledger; from discreet.values.budget import PureDP\n"
        "with open_ledger(sys.argv[1], create=True) as book:\n"
        "    book.open_account('c', PureDP(1), 'add-remove'); book.debit('c', 'r', PureDP('1/2'))\n"
    )
    lines = trace(spend, str(folder / "l.ledger"), out=tmp_path / "2")
    assert is_synced_after(lines, lambda line: " link" in line and "l.ledger" in line, folder)
    assert is_synced_after(lines, lambda line: "unlink" in line and "l.ledger-journal" in line, folder)


def test_every_rename_is_followed_by_a_sync_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same through a layer of our own, which runs everywhere and can fail: nothing is left if a sync fails."""
    from discreet.values import files

    seen: list[str] = []
    real_sync, real_replace = os.fsync, Path.replace

    def sync(handle: int) -> None:
        name = os.readlink(f"/proc/self/fd/{handle}")
        seen.append(f"sync {'folder' if os.path.isdir(name) else 'file'}")
        real_sync(handle)

    def replace(self: Path, target: Path) -> Path:
        seen.append("rename")
        return real_replace(self, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(Path, "replace", replace)
    files.write_text(tmp_path / "a", "text")
    assert seen == ["sync file", "rename", "sync folder"]

    def fail(handle: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(DiscreetError, match="Input/output error"):
        files.write_text(tmp_path / "b", "text")
    assert os.listdir(tmp_path) == ["a"]


def test_anchors_are_added_line_by_line(tmp_path: Path) -> None:
    made = publish(tmp_path / "l", "one")
    said = made.provenance.statement
    assert said is not None
    for _ in range(2):
        note_anchor(tmp_path / "n.txt", said)
    found = read_witnesses(tmp_path / "n.txt")
    assert [witness.anchor for witness in found] == [Anchor(said.events, said.head)] * 2
    assert {witness.ledger for witness in found} == {said.ledger}


def test_an_anchor_behind_a_line_that_was_not_ended_is_a_line_of_its_own(tmp_path: Path) -> None:
    said = publish(tmp_path / "l", "one").provenance.statement
    assert said is not None
    (tmp_path / "n.txt").write_text("# kept on another disk")
    note_anchor(tmp_path / "n.txt", said)
    assert [witness.anchor for witness in read_witnesses(tmp_path / "n.txt")] == [
        Anchor(said.events, said.head)
    ]


def test_many_witnesses_take_one_look_at_the_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_ledger(make(tmp_path / "l")) as ledger:
        for number in range(20):
            ledger.debit("clinic", f"r{number}", PureDP("1/100"))
        head, looks = ledger.head(), 0
        real = type(ledger).verify

        def look(self: Any, *anchors: Anchor) -> Any:
            nonlocal looks
            looks += 1
            return real(self, *anchors)

        monkeypatch.setattr(type(ledger), "verify", look)
        seen = [Witness("", head, f"note {number}") for number in range(500)]
        assert find_conflict(ledger, seen) is None and looks == 1
        seen[321] = Witness("", Anchor(head.count, "0" * 64), "note 321")
        told = find_conflict(ledger, seen)
        assert (
            told is not None and told.endswith("the one that the anchor names, says note 321") and looks < 15
        )


def test_a_release_that_cannot_be_read_is_not_written_over(tmp_path: Path) -> None:
    """It may be the one that would have told that the ledger was rolled back."""
    publish(tmp_path / "l", "one").write(tmp_path / "out")
    with open(tmp_path / "out" / "release.json", "r+b") as file:
        file.truncate(100)
    before = (tmp_path / "out" / "release.json").read_bytes()
    with pytest.raises(DiscreetError, match=r"release\.json"):
        read_witnesses(tmp_path / "out")
    (tmp_path / "s.toml").write_text('[attributes]\na.levels = ["0", "1"]\nb.levels = ["0", "1"]\n')
    (tmp_path / "rows.csv").write_text("a,b\n" + "0,1\n1,1\n" * 20)
    command = f"release {tmp_path}/rows.csv --schema {tmp_path}/s.toml --epsilon 1 --ledger {tmp_path}/l"
    assert main([*command.split(), "--account", "clinic", "--out", str(tmp_path / "out")]) == 2
    assert (tmp_path / "out" / "release.json").read_bytes() == before
