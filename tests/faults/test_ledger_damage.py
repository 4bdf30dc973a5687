"""Ledgers that were flipped, cut, replaced, locked or left without room: found, or refused in one line."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from discreet.core.chain import Anchor
from discreet.core.ledger import Ledger
from discreet.entrance import open_ledger
from discreet.stores.sqlite import SCHEMA
from discreet.values.budget import PureDP
from discreet.values.errors import LedgerError


def fill(place: str) -> Anchor:
    """A ledger with three answered debits and one that was left unanswered; returns its anchor."""
    with open_ledger(place, create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")
        for i in range(3):
            ledger.answer(ledger.debit("clinic", f"r{i}", PureDP("1/8"), {"i": i}), b"noisy %d " % i * 400)
        ledger.debit("clinic", "crashed", PureDP("1/8"))
        return ledger.head()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.ledger"


def refusal(work: Callable[[], object]) -> str:
    """The one line with which something is refused."""
    with pytest.raises(LedgerError) as refused:
        work()
    assert "\n" not in str(refused.value)
    return str(refused.value)


def unlock(path: Path) -> sqlite3.Connection:
    """A connection to a ledger whose triggers somebody has taken away."""
    connection = sqlite3.connect(path, isolation_level=None)
    for name in list(SCHEMA)[1:]:
        connection.execute(f"DROP TRIGGER {name}")
    return connection


def put_back(connection: sqlite3.Connection) -> None:
    for statement in list(SCHEMA.values())[1:]:
        connection.execute(statement.strip())
    connection.close()


def everything(ledger: Ledger) -> object:
    answers = [ledger.debit("clinic", f"r{i}", PureDP("1/8"), {"i": i}).answer for i in range(3)]
    return ledger.head(), ledger.accounts(), ledger.entries("clinic"), answers


def test_a_flipped_bit_is_found_or_harms_nothing(path: Path) -> None:
    anchor = fill(str(path))
    with open_ledger(path) as ledger:
        original = everything(ledger)
    sound = path.read_bytes()
    rng = random.Random(11)
    found = harmless = 0
    for _ in range(250):
        at, bit = rng.randrange(len(sound)), rng.randrange(8)
        path.write_bytes(sound[:at] + bytes([sound[at] ^ (1 << bit)]) + sound[at + 1 :])
        try:
            with open_ledger(path) as ledger:
                verdict = ledger.verify(anchor)
                if verdict.sound:  # the bit lay in a part of the file that holds nothing
                    harmless += everything(ledger) == original
                else:
                    found += 1
        except LedgerError as problem:
            found += "\n" not in str(problem)
    assert found + harmless == 250
    assert found > 100


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ("UPDATE event SET body = replace(body, '1/8', '1/9') WHERE seq = 3", "event 3 was altered"),
        ("UPDATE event SET payload = x'00' WHERE seq = 4", "event 4: the stored answer was altered"),
        ("UPDATE event SET payload = NULL WHERE seq = 4", "event 4: the stored answer was altered"),
        ("DELETE FROM event WHERE seq = 5", "event 5 is missing"),
        ("DELETE FROM event WHERE seq IN (5, 6)", "events 5 to 6 are missing"),
        ("UPDATE event SET hash = 'x' WHERE seq = 9", "event 9 was altered"),
        ("UPDATE event SET body = x'ff' WHERE seq = 3", "wrong type"),
        ("UPDATE event SET body = 'no json' WHERE seq = 3", "event 3 is not readable"),
        ("DELETE FROM event", "the ledger is empty"),
        ("CREATE TABLE other (x)", "'other' does not belong"),
    ],
)
def test_what_is_done_to_a_row_is_named(path: Path, change: str, found: str) -> None:
    fill(str(path))
    connection = unlock(path)
    connection.execute(change)
    put_back(connection)
    with open_ledger(path) as ledger:
        problems = ledger.verify().problems
    assert any(found in problem for problem in problems), problems


def test_a_truncated_file_is_sound_by_itself_and_caught_by_the_anchor(path: Path) -> None:
    anchor = fill(str(path))
    connection = unlock(path)
    connection.execute("DELETE FROM event WHERE seq > 4")
    put_back(connection)
    with open_ledger(path) as ledger:
        assert ledger.verify().sound
        assert ledger.verify(anchor).problems == ("the anchor was taken at 9 events, only 4 are left",)


def test_an_old_copy_put_back_is_caught_by_the_anchor_even_after_it_grew_again(path: Path) -> None:
    fill(str(path))
    shutil.copy(path, path.with_suffix(".old"))
    with open_ledger(path) as ledger:
        ledger.debit("clinic", "late", PureDP("1/2"))
        anchor = ledger.head()
    path.with_suffix(".old").replace(path)
    with open_ledger(path) as ledger:
        ledger.debit("clinic", "again", PureDP("1/2"))
        assert ledger.verify().sound
        assert not ledger.verify(anchor).sound


def test_triggers_stop_accidents(path: Path) -> None:
    fill(str(path))
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in (
        "UPDATE event SET body = '' WHERE seq = 2",
        "DELETE FROM event WHERE seq = 9",
        "INSERT OR REPLACE INTO event VALUES (9, '', '', NULL)",
        "INSERT INTO event VALUES (11, '', '', NULL)",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="ledger"):
            connection.execute(statement)
    connection.execute("DROP TRIGGER event_never_deleted")
    connection.close()
    with open_ledger(path) as ledger:
        assert "'event_never_deleted'" in ledger.verify().problems[0]


def test_postgres_rows_cannot_be_changed_by_accident_and_are_found_if_they_are(
    postgres_schema: Callable[[], str],
) -> None:
    psycopg = pytest.importorskip("psycopg")
    place = postgres_schema()
    anchor = fill(place)
    with psycopg.connect(place, autocommit=True) as connection, open_ledger(place) as ledger:
        for statement in (
            "UPDATE discreet_event SET body = ''",
            "DELETE FROM discreet_event",
            "TRUNCATE discreet_event",
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="nothing is changed"):
                connection.execute(statement)
        connection.execute("ALTER TABLE discreet_event DISABLE TRIGGER USER")
        assert "switched off" in ledger.verify().problems[0]
        connection.execute("UPDATE discreet_event SET payload = 'forged' WHERE seq = 4")
        assert "event 4: the stored answer was altered" in ledger.verify().problems
        assert "was removed or switched off" in refusal(lambda: ledger.debit("clinic", "new", PureDP("1/8")))
        connection.execute("DELETE FROM discreet_event WHERE seq > 4")
        assert "only 4 are left" in " ".join(ledger.verify(anchor).problems)
        connection.execute("UPDATE discreet_event SET body = replace(body, '1/8', '1/9') WHERE seq = 3")
        assert any("event 3 was altered" in problem for problem in ledger.verify().problems)


def test_postgres_needs_only_the_rights_to_read_and_append(postgres_schema: Callable[[], str]) -> None:
    psycopg = pytest.importorskip("psycopg")
    place = postgres_schema()
    fill(place)
    schema = place.rpartition("%3D")[2]
    with psycopg.connect(place, autocommit=True) as connection:
        with suppress(psycopg.errors.DuplicateObject):
            connection.execute("CREATE ROLE spender LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO spender")
        connection.execute("GRANT SELECT ON discreet_event, discreet_event_anchor TO spender")
        connection.execute("GRANT INSERT (seq, body, hash, payload) ON discreet_event TO spender")
        connection.execute("GRANT EXECUTE ON FUNCTION discreet_event_note() TO spender")
    limited = place.replace("postgres:@", "spender:@")
    with open_ledger(limited) as ledger:
        ledger.answer(ledger.debit("clinic", "limited", PureDP("1/8")), b"x")
        assert ledger.verify().sound
    with (
        psycopg.connect(limited, autocommit=True) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute("DELETE FROM discreet_event")


def test_postgres_that_is_not_there_or_not_safe(postgres_schema: Callable[[], str]) -> None:
    psycopg = pytest.importorskip("psycopg")
    place = postgres_schema()
    assert "no ledger at" in refusal(lambda: open_ledger(place))
    nowhere = "postgresql://me:secret@127.0.0.1:1/none"
    assert "secret" not in refusal(lambda: open_ledger(nowhere, patience=2))
    assert "secret" not in refusal(lambda: open_ledger("postgresql://me:secret@/x?secret=1"))
    fill(place)
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("ALTER TABLE discreet_event SET UNLOGGED")
    assert "would not survive a crash" in refusal(lambda: open_ledger(place))


def test_postgres_comes_back_after_a_lost_connection(postgres_schema: Callable[[], str]) -> None:
    psycopg = pytest.importorskip("psycopg")
    place = postgres_schema()
    fill(place)
    with open_ledger(place) as ledger, psycopg.connect(place, autocommit=True) as other:
        before = ledger.head()
        own = ledger._store._connection.info.backend_pid  # type: ignore[attr-defined]
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (own,))
        refusal(lambda: ledger.debit("clinic", "lost", PureDP("1/8")))
        assert ledger.head() == before
        ledger.debit("clinic", "lost", PureDP("1/8"))
        assert ledger.verify().sound


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_ledger_held_too_long_by_another(request: pytest.FixtureRequest, path: Path, kind: str) -> None:
    place = str(path) if kind == "sqlite" else request.getfixturevalue("postgres_schema")()
    fill(place)
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with open_ledger(place) as other, other._store.writing():
            held.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    try:
        with open_ledger(place, patience=0.2) as ledger:
            line = refusal(lambda: ledger.debit("clinic", "waits", PureDP("1/8")))
            assert "for 0.2 s; try again later" in line
            assert len(ledger.entries("clinic")) == 4
    finally:
        done.set()
        thread.join()


def test_what_is_no_ledger_is_left_alone(tmp_path: Path) -> None:
    missing = tmp_path / "missing.ledger"
    assert "no ledger at" in refusal(lambda: open_ledger(missing))
    assert not missing.exists()
    assert "no such folder" in refusal(lambda: open_ledger(tmp_path / "no" / "a.ledger", create=True))
    assert "cannot open" in refusal(lambda: open_ledger(tmp_path))
    text = tmp_path / "notes.txt"
    text.write_text("rows\n" * 1000)
    empty = tmp_path / "empty.ledger"
    empty.touch()
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE people (name)")
    connection.close()
    for path in (text, empty, other):
        before = path.read_bytes()
        assert "is not a discreet ledger" in refusal(lambda path=path: open_ledger(path))
        assert path.read_bytes() == before
    for path in (text, other):
        before = path.read_bytes()
        assert "is not a discreet ledger" in refusal(lambda path=path: open_ledger(path, create=True))
        assert path.read_bytes() == before


def test_a_newer_format_is_refused(path: Path) -> None:
    fill(str(path))
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA user_version = 2")
    connection.close()
    assert "format 2; this version of discreet reads up to 1" in refusal(lambda: open_ledger(path))


def test_a_newer_event_is_refused(path: Path) -> None:
    fill(str(path))
    connection = unlock(path)
    connection.execute("""UPDATE event SET body = replace(body, '"format":1', '"format":2') WHERE seq = 1""")
    put_back(connection)
    with open_ledger(path) as ledger:
        assert any("reads up to 1" in problem for problem in ledger.verify().problems)
        refusal(ledger.head)


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_swapped_or_removed_under_an_open_ledger(path: Path, replaced: bool) -> None:
    fill(str(path))
    copied = path.with_suffix(".copy")
    shutil.copy(path, copied)
    with open_ledger(path) as ledger:
        if replaced:
            copied.replace(path)
        else:
            path.unlink()
        line = refusal(lambda: ledger.debit("clinic", "into the void", PureDP("1/8")))
    assert ("replaced by another file" if replaced else "was removed") in line


def test_a_read_only_file_can_be_shown_and_verified_but_not_spent_from() -> None:
    with tempfile.TemporaryDirectory(prefix="discreet-") as folder:  # one that another user may enter
        place = Path(folder) / "a.ledger"
        anchor = fill(str(place))
        os.chmod(folder, 0o555)
        place.chmod(0o444)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            if os.geteuid() == 0:
                os.setuid(65534)  # root may write anything
            said = {}
            try:
                with open_ledger(place) as ledger:
                    said["sound"] = ledger.verify(anchor).sound
                    said["left"] = str(ledger.remaining("clinic"))
                    said["refused"] = refusal(lambda: ledger.debit("clinic", "more", PureDP("1/8")))
            except BaseException as problem:
                said["failed"] = repr(problem)
            os.write(writing, json.dumps(said).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as pipe:
            said = json.loads(pipe.read())
        os.waitpid(child, 0)
        os.chmod(folder, 0o755)
    assert said == {
        "sound": True,
        "left": "ε = 0.5",
        "refused": f"the ledger {place} is read-only; ask for the right to write to it",
    }


FILL_UP = """
import json, sys
from discreet.values.budget import PureDP
from discreet.entrance import open_ledger
from discreet.values.errors import LedgerError
place, limit = sys.argv[1], int(sys.argv[2])
with open_ledger(place, create=True) as ledger:
    ledger.open_account("clinic", PureDP(1), "add-remove")
    if limit:
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for i in range(1000):
        before = ledger.head()
        try:
            entry = ledger.debit("clinic", f"r{i}", PureDP("1/1000"))
            before = ledger.head()
            ledger.answer(entry, b"x" * 3000)
        except LedgerError as problem:
            said = {"refused": str(problem), "unchanged": ledger.head() == before, "i": i}
            break
    said["sound"] = ledger.verify().sound
    debits = len(ledger.entries("clinic"))
    said["exact"] = debits > 5 and ledger.account("clinic").spent == PureDP("1/1000") * debits
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        entry = ledger.debit("clinic", f"r{i}", PureDP("1/1000"))
        said["later"] = ledger.answer(entry, b"y").decode()
    print(json.dumps(said))
"""


def test_a_file_that_may_not_grow_gives_a_clear_error_and_goes_on_later(path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", FILL_UP, str(path), "100000"], capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert "disk failed or is full" in said["refused"]
    assert said["unchanged"]
    assert said["sound"]
    assert said["exact"]
    assert said["later"] == "y"
    with open_ledger(path) as ledger:
        assert ledger.verify().sound
        assert len(ledger.entries("clinic")) == said["i"] + 1


def test_a_full_disk_gives_a_clear_error(tmp_path: Path) -> None:
    """On a real file system of 128 KiB, mounted where only the child sees it."""
    (tmp_path / "small").mkdir()
    small = tmp_path / "small"
    script = 'mount -t tmpfs -o size=128k none "$0" && exec "$1" -c "$2" "$0/a.ledger" 0'
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if shutil.which("unshare") is None or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this machine does not allow a mount that only the child sees")
    command = [*unshare, "sh", "-c", script, str(small), sys.executable, FILL_UP]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    said = json.loads(ran.stdout)
    assert said["refused"].startswith(
        f"the disk is full, so nothing was written to the ledger {small}/a.ledger;"
    )
    assert said["unchanged"]
    assert said["sound"]
    assert said["exact"]
