"""PostgreSQL with least privilege: a role that may debit can do nothing else, not even with a console of its own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from discreet.core.chain import Anchor, Event, digest, follow
from discreet.doors.cli import main
from discreet.entrance import open_ledger, salvage_ledger
from discreet.stores.salvage import LOST
from discreet.values.budget import ZCDP, ApproxDP, Finite, PureDP
from discreet.values.errors import DiscreetError, LedgerError
from discreet.values.unit import Unit

psycopg = pytest.importorskip("psycopg")
DOCUMENT = (Path(__file__).parents[2] / "docs" / "ledger.md").read_text("utf-8")


@pytest.fixture
def team(postgres_schema: Callable[[], str], postgres_server: str) -> dict[str, str]:
    """A ledger set up as the documents say, and the addresses of its owner and of two analysts."""
    place = postgres_schema()
    schema = place.rpartition("%3D")[2]
    with open_ledger(place, create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")
    statements = next(
        block for block in re.findall(r"```sql\n(.*?)```", DOCUMENT, re.S) if "analyst" in block
    )
    with psycopg.connect(place, autocommit=True) as connection:
        for role in ("analyst", "colleague"):
            for statement in (
                statements.replace("privacy", schema).replace("analyst", role).strip().split(";")
            ):
                with suppress(psycopg.errors.DuplicateObject):  # a role is of the whole server
                    connection.execute(statement or "SELECT 1")
    return {
        "owner": place,
        "analyst": place.replace("postgres:@", "analyst:@"),
        "colleague": place.replace("postgres:@", "colleague:@"),
    }


def insert(address: str, event: Event, payload: bytes | None = None) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "INSERT INTO discreet_event (seq, body, hash, payload) VALUES (%s, %s, %s, %s)",
            (event.seq, event.body, event.hash, payload),
        )


def head(address: str) -> Anchor:
    with open_ledger(address) as ledger:
        return ledger.head()


def test_a_role_that_may_debit_debits_and_no_more(team: dict[str, str]) -> None:
    with open_ledger(team["analyst"]) as ledger:
        assert ledger.answer(ledger.debit("clinic", "mine", PureDP("1/8"), {"a": 1}), b"x") == b"x"
        assert ledger.verify().sound, ledger.verify().problems
        with pytest.raises(LedgerError, match="only the owner of the ledger may open an account"):
            ledger.open_account("another", PureDP(9), "add-remove")
        assert ledger.remaining("clinic") == PureDP("7/8")
    for statement in (
        "DELETE FROM discreet_event", "UPDATE discreet_event SET body = ''", "TRUNCATE discreet_event",
        "DROP TABLE discreet_event", "ALTER TABLE discreet_event DISABLE TRIGGER ALL",
        "CREATE TABLE mine (x int)", "SELECT setval('discreet_event_anchor', 1000)",
        "SELECT nextval('discreet_event_anchor')", "DROP FUNCTION discreet_event_check() CASCADE",
        "CREATE OR REPLACE FUNCTION discreet_event_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END'",
        "INSERT INTO discreet_event (seq, body, hash, writer) VALUES (99, '', '', 'colleague')",
    ):  # fmt: skip
        with (
            psycopg.connect(team["analyst"], autocommit=True) as connection,
            pytest.raises(psycopg.Error) as told,
        ):
            connection.execute(statement)
        assert isinstance(told.value, psycopg.errors.InsufficientPrivilege), statement
    with open_ledger(team["owner"]) as ledger:
        assert ledger.verify().sound
        assert ledger.open_account("another", PureDP(9), "add-remove").budget == PureDP(9)


def test_nobody_answers_the_debit_of_another(team: dict[str, str]) -> None:
    with open_ledger(team["analyst"]) as ledger:
        entry = ledger.debit("clinic", "mine", PureDP("1/8"))
    with (
        open_ledger(team["colleague"]) as ledger,
        pytest.raises(LedgerError, match="only who has paid for a request may answer it"),
    ):
        ledger.answer(entry, b"forged")
    with open_ledger(team["analyst"]) as ledger:
        assert ledger.answer(entry, b"true") == b"true"


def spoil(before: Anchor, **fields: Any) -> Event:
    kind = fields.pop("kind", "debit")
    said: dict[str, Any] = {
        "account": "clinic",
        "request": "r",
        "cost": {"epsilon": "1/8"},
        "description": {},
    }
    return follow(before, kind, {**said, **fields})


def respell(event: Event, old: str, new: str) -> Event:
    assert old in event.body
    body = event.body.replace(old, new)
    return Event(event.seq, body, digest(body.encode()))


GARBAGE: dict[str, Callable[[Anchor], Event]] = {
    "no JSON": lambda at: Event(at.count + 1, "garbage", digest(b"garbage")),
    "no object": lambda at: Event(at.count + 1, "[]", digest(b"[]")),
    "a hash that is not its own": lambda at: Event(at.count + 1, spoil(at).body, "0" * 64),
    "far away": lambda at: spoil(Anchor(at.count + 5, at.hash)),
    "in the past": lambda at: spoil(Anchor(1, at.hash)),
    "not chained": lambda at: spoil(Anchor(at.count, "f" * 64)),
    "an unknown kind": lambda at: spoil(at, kind="gift"),
    "a second opening": lambda at: spoil(at, kind="ledger", format=1, id="x"),
    "an account": lambda at: spoil(
        at, kind="open", account="new", unit="add-remove", budget={"epsilon": "99"}
    ),
    "a negative cost": lambda at: spoil(at, cost={"epsilon": "-1"}),
    "a cost that is none": lambda at: spoil(at, cost={"epsilon": [1]}),
    "a cost of another name": lambda at: spoil(at, cost={"gamma": "1"}),
    "a division by zero": lambda at: spoil(at, cost={"epsilon": "1/0"}),
    "no cost": lambda at: spoil(at, cost=None),
    "no description": lambda at: spoil(at, description="x"),
    "no such account": lambda at: spoil(at, account="nobody's"),
    "more than there is": lambda at: spoil(at, cost={"epsilon": "5"}),
    "a little more than there is": lambda at: spoil(at, cost={"epsilon": f"{10**30 + 1}/{10**30}"}),
    "nothing": lambda at: spoil(at, cost={"epsilon": "0.00"}),
    "another kind of cost": lambda at: spoil(at, cost={"rho": "1/8"}),
    "two kinds of cost": lambda at: spoil(at, cost={"epsilon": "1/8", "delta": "0"}),
    "a number that is no text": lambda at: spoil(at, cost={"epsilon": 0.125}),
    "a fraction with an exponent": lambda at: spoil(at, cost={"epsilon": "1/3e1"}),
    "a fraction of 400 digits": lambda at: spoil(at, cost={"epsilon": "1/1" + "0" * 400}),
    "a δ that nobody has": lambda at: spoil(at, description={"delta": "1/1000"}),
    "a δ that is none": lambda at: spoil(at, description={"delta": True}),
    "a request that is no text": lambda at: spoil(at, request=7),
    "an account that is no text": lambda at: spoil(at, account=["clinic"]),
    "a place that is no number": lambda at: respell(
        spoil(at), f'"seq":{at.count + 1}', f'"seq":"{at.count + 1}"'
    ),
    "a number of 5,000 digits": lambda at: respell(
        spoil(at), '"description":{}', f'"description":{{"x":{"9" * 5000}}}'
    ),
    "brackets in brackets": lambda at: respell(
        spoil(at), '"description":{}', f'"description":{{"x":{"[" * 3000}{"]" * 3000}}}'
    ),
    "marks that are none": lambda at: spoil(at, kind="source", marks=7),
    "a unit that was fixed": lambda at: spoil(at, kind="fix", **{"at most": 4}),
    "a reveal without a reason": lambda at: spoil(at, kind="reveal"),
    "an answer to nothing": lambda at: spoil(at, kind="answer", payload="0" * 64),
}


def test_a_garbage_row_does_not_end_the_ledger(team: dict[str, str]) -> None:
    for name, make in GARBAGE.items():
        before = head(team["owner"])
        with pytest.raises(psycopg.Error):
            insert(team["analyst"], make(before))
        assert head(team["owner"]) == before, name
    with open_ledger(team["analyst"]) as ledger:
        entry = ledger.debit("clinic", "honest", PureDP("1/8"))
        assert ledger.verify().sound
    twice = {
        "a request debited twice": lambda at: spoil(at, request="honest"),
        "all that there was": lambda at: spoil(at, cost={"epsilon": "1"}),
        "an answer with another digest": lambda at: spoil(
            at, kind="answer", request="honest", payload="0" * 64
        ),
    }
    for name, make in twice.items():
        before = head(team["owner"])
        with pytest.raises(psycopg.Error):
            insert(team["analyst"], make(before), b"x")
        assert head(team["owner"]) == before, name
    with open_ledger(team["analyst"]) as ledger:
        assert ledger.answer(entry, b"x") == b"x"
        assert ledger.debit("clinic", "honest", PureDP("1/8")).answer == b"x"
    with pytest.raises(psycopg.Error, match="answered once"):
        insert(
            team["analyst"],
            spoil(head(team["owner"]), kind="answer", request="honest", payload=digest(b"y")),
            b"y",
        )


@pytest.mark.parametrize(
    ("budget", "costs", "more"),
    [
        (PureDP("1/3"), ["1/7", "1/21", "1/7"], "1e-30"),
        (PureDP("0.3"), ["0.1", "1e-1", "1/10"], "1/1000000000000"),
        (ZCDP("1/8"), ["1/16", "0.0625"], "1e-9"),
        (PureDP(1), ["999999/1000000", "1/1000001"], "1/1000000"),
    ],
)
def test_the_database_counts_as_the_ledger_does(
    team: dict[str, str], budget: Finite, costs: list[str], more: str
) -> None:
    """Exactly to the end of an account, in fractions and decimals; what is left is spent, and not a trace more."""
    kind = type(budget)
    with open_ledger(team["owner"]) as ledger:
        ledger.open_account("other", budget, "add-remove")
    with open_ledger(team["analyst"]) as ledger:
        for number, cost in enumerate(costs):
            ledger.debit("other", f"r{number}", kind(cost))
        if not ledger.remaining("other").is_zero:
            ledger.debit("other", "rest", ledger.remaining("other"))
        assert ledger.remaining("other").is_zero
    name = "rho" if kind is ZCDP else "epsilon"
    with pytest.raises(psycopg.Error, match="cannot pay"):
        insert(team["analyst"], spoil(head(team["owner"]), account="other", cost={name: more}))
    with open_ledger(team["analyst"]) as ledger:
        assert ledger.verify().sound


def test_a_role_that_may_debit_may_have_the_unit_chosen(team: dict[str, str]) -> None:
    with open_ledger(team["owner"]) as ledger:
        ledger.open_account("people", PureDP(1), Unit.read('person "id", at most auto'))
    with open_ledger(team["analyst"]) as ledger:
        ledger.answer(ledger.debit("people", "bound", PureDP("1/20")), b"[4]")
        at = head(team["owner"])
        for wrong in (5, 0, 4.0, None):
            with pytest.raises(psycopg.Error, match="fixed once"):
                insert(
                    team["analyst"],
                    spoil(at, kind="fix", account="people", request="bound", **{"at most": wrong}),
                )
        assert ledger.fix_unit("people", "bound", 4).unit.at_most == 4
        with pytest.raises(psycopg.Error, match="fixed once"):
            insert(
                team["analyst"],
                spoil(head(team["owner"]), kind="fix", account="people", request="bound", **{"at most": 4}),
            )
        assert ledger.verify().sound


def test_an_account_of_two_numbers_pays_what_the_database_lets_through(team: dict[str, str]) -> None:
    """One of (ε, δ) is spent in ρ, and keeps a hundredth of its δ for values that nobody declared."""
    with open_ledger(team["owner"]) as ledger:
        account = ledger.open_account("other", ApproxDP(1, "1e-6"), "add-remove")
    assert isinstance(account.allowance, ZCDP)
    with open_ledger(team["analyst"]) as ledger:
        ledger.debit("other", "a", ZCDP(account.allowance.rho / 2), {"delta": "1/200000000"})
        with pytest.raises(psycopg.Error, match="cannot pay"):
            insert(
                team["analyst"],
                spoil(
                    head(team["owner"]),
                    account="other",
                    cost={"rho": "1/1000"},
                    description={"delta": "1/199999999"},
                ),
            )
        ledger.debit("other", "b", ledger.remaining("other"), {"delta": "1/200000000"})
        assert ledger.remaining("other").is_zero and ledger.verify().sound


def test_what_an_owner_spoils_is_salvaged(team: dict[str, str], tmp_path: Path) -> None:
    with open_ledger(team["analyst"]) as ledger:
        ledger.answer(ledger.debit("clinic", "good", PureDP("1/8")), b"[]")
        ledger.debit("clinic", "waiting", PureDP("1/8"))
        anchor = ledger.head()
    insert(team["owner"], spoil(head(team["owner"]), cost={"epsilon": "5"}))  # only an owner can do that
    with open_ledger(team["analyst"]) as ledger, pytest.raises(LedgerError):
        ledger.debit("clinic", "next", PureDP("1/8"))
    with psycopg.connect(team["owner"]) as connection:
        last = Anchor(
            *connection.execute("SELECT seq, hash FROM discreet_event ORDER BY seq DESC LIMIT 1").fetchone()
        )
    insert(team["owner"], spoil(last, request="later"))
    for new in (str(tmp_path / "new.ledger"),):
        found = salvage_ledger(team["owner"], new)
        assert (found.copied, found.debited, found.lost) == (anchor.count, ("later",), ("waiting", "later"))
        assert len(found.dropped) == 1 and "cannot pay" in found.dropped[0]
        with open_ledger(new) as ledger:
            assert ledger.verify(anchor).sound
            assert ledger.remaining("clinic") == PureDP("5/8")
            assert ledger.debit("clinic", "good", PureDP("1/8")).answer == b"[]"
            assert ledger.debit("clinic", "waiting", PureDP("1/8")).answer == LOST
    assert json.loads(LOST)[0].startswith("this answer was lost")


def test_a_spoilt_file_is_salvaged_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    old, new = tmp_path / "old.ledger", tmp_path / "new.ledger"
    with open_ledger(old, create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")
        ledger.answer(ledger.debit("clinic", "one", PureDP("1/8")), b"first")
        ledger.answer(ledger.debit("clinic", "two", PureDP("1/8")), b"second")
    connection = sqlite3.connect(old, isolation_level=None)
    connection.execute("DROP TRIGGER event_never_changed")
    connection.execute("UPDATE event SET payload = 'forged' WHERE seq = 4")
    connection.close()
    assert main(["budget", "salvage", str(old), str(new)]) == 0
    assert "3 events are sound" in capsys.readouterr().out
    with open_ledger(new) as ledger:
        assert ledger.verify().sound and ledger.remaining("clinic") == PureDP("3/4")
        assert ledger.debit("clinic", "one", PureDP("1/8")).answer == LOST
    assert main(["budget", "salvage", str(old), str(new)]) == 2
    assert main(["budget", "salvage", str(tmp_path / "none"), str(new)]) == 2
    assert "already exists" in capsys.readouterr().err


def count(connection: Any) -> int:
    return int(connection.execute("SELECT count(*) FROM discreet_event").fetchone()[0])


REPLACED = [
    "CREATE OR REPLACE FUNCTION discreet_event_refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    "CREATE OR REPLACE FUNCTION discreet_event_check() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
    "DROP TRIGGER discreet_event_never_changed ON discreet_event",
    "ALTER TABLE discreet_event DISABLE TRIGGER discreet_event_in_order",
    "CREATE TRIGGER mine BEFORE INSERT ON discreet_event FOR EACH ROW EXECUTE FUNCTION discreet_event_refuse()",
    "CREATE RULE quiet AS ON INSERT TO discreet_event DO INSTEAD NOTHING",
    "ALTER TABLE discreet_event ENABLE ROW LEVEL SECURITY",
    "DROP TRIGGER discreet_event_in_order ON discreet_event; CREATE TRIGGER discreet_event_in_order BEFORE UPDATE ON "
    "discreet_event FOR EACH ROW EXECUTE FUNCTION discreet_event_check()",
]


@pytest.mark.parametrize("statement", REPLACED)
def test_a_replaced_part_is_noticed_before_anything_is_paid_and_mended_by_the_owner(
    team: dict[str, str], statement: str
) -> None:
    with open_ledger(team["analyst"]) as ledger:
        ledger.debit("clinic", "r", PureDP("1/8"))
        with psycopg.connect(team["owner"], autocommit=True) as connection:
            before = count(connection)
            connection.execute(statement)
            with pytest.raises(LedgerError, match="pays for nothing"):
                ledger.debit("clinic", "next", PureDP("1/8"))
            assert not ledger.verify().sound and count(connection) == before
    if "RULE" in statement or "mine" in statement or "ROW LEVEL" in statement:
        return  # whoever added a part of their own takes it away by hand
    open_ledger(team["owner"], create=True).close()
    with open_ledger(team["analyst"]) as ledger:
        ledger.debit("clinic", "next", PureDP("1/8"))
        assert ledger.verify().sound


def test_a_table_that_is_shorter_than_the_sequence_was_rolled_back(team: dict[str, str]) -> None:
    with open_ledger(team["owner"]) as ledger:
        for name in "abc":
            ledger.debit("clinic", name, PureDP("1/8"))
    with psycopg.connect(team["owner"], autocommit=True) as connection:
        connection.execute("ALTER TABLE discreet_event DISABLE TRIGGER USER")
        connection.execute("DELETE FROM discreet_event WHERE seq > 4")
        connection.execute("ALTER TABLE discreet_event ENABLE TRIGGER USER")
    with open_ledger(team["owner"]) as ledger:
        assert "it was rolled back: 5 events were committed, only 4 are left" in ledger.verify().problems
        with pytest.raises(DiscreetError, match="was rolled back: 5 events"):
            ledger.debit("clinic", "d", PureDP("1/8"))


def test_an_older_layout_is_brought_up_to_date_by_its_owner(postgres_schema: Callable[[], str]) -> None:
    place = postgres_schema()
    with open_ledger(place, create=True) as ledger:
        ledger.open_account("clinic", PureDP(1), "add-remove")
        anchor = ledger.head()
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("DROP TRIGGER discreet_event_in_order ON discreet_event")
        connection.execute("DROP FUNCTION discreet_event_check(); DROP FUNCTION discreet_event_note()")
        connection.execute(
            "DROP SEQUENCE discreet_event_anchor; ALTER TABLE discreet_event DROP COLUMN writer"
        )
    with open_ledger(place) as ledger, pytest.raises(LedgerError, match="budget init"):
        ledger.debit("clinic", "d", PureDP("1/8"))
    with open_ledger(place, create=True) as ledger:
        ledger.debit("clinic", "d", PureDP("1/8"))
        assert ledger.verify(anchor).sound
