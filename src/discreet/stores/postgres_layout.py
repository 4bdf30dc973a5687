"""The layout of a ledger in PostgreSQL: one table, the functions that guard it, and whether they were replaced.

What an event says is checked by the ledger. What the database checks as well, so that somebody with the right to debit
and a console of their own cannot spoil it for the others: an event comes at the end and is chained to the one before,
is JSON of a known kind, opens no account unless its writer owns the table, answers no debit of another writer, and
spends no more than is left: amounts are added up exactly, as fractions.
"""

from __future__ import annotations

from typing import Any

from discreet.values.unit import MOST_AVERAGED, MOST_ROWS_OF_A_PERSON

TABLE = "discreet_event"


def _read(body: str) -> str:
    """A text as JSON; NUL and halves of surrogate pairs, which jsonb does not take, become texts about them."""
    odd = r"(\\\\)|\\(u0000|ud[89a-f][0-9a-f]{2})"
    return rf"regexp_replace({body}, '{odd}', '\1/\2', 'gi')::jsonb"


_AMOUNT = "^[0-9]{1,255}([.][0-9]{1,255})?(e-?[0-9]{1,3})?$|^[0-9]{1,255}/[0-9]*[1-9][0-9]*$"
_LONG = "[0-9]{255}"
"""Digits that neither an amount nor anything else of an event needs; Python reads no number of thousands."""


def _find(what: str, kind: str) -> str:
    """What the events hold that are of this kind, and of the account and request that are spoken of."""
    said = f"'kind', '{kind}', 'account', said->>'account'" + (
        ", 'request', said->>'request'" if kind in ("debit", "answer") else ""
    )
    return f"SELECT {what} FROM {TABLE} WHERE {_read('body')} @> jsonb_build_object({said})"


_CHECK = f"""
DECLARE
    said jsonb;
    opened jsonb;
    allowed jsonb;
    part text;
    last {TABLE}%ROWTYPE;
    payer text;
    owner oid := (SELECT relowner FROM pg_class WHERE oid = TG_RELID);
BEGIN
    SELECT * INTO last FROM {TABLE} ORDER BY seq DESC LIMIT 1;
    IF NEW.seq IS DISTINCT FROM coalesce(last.seq, 0) + 1 THEN
        RAISE unique_violation USING MESSAGE = 'the ledger only grows at its end';
    END IF;
    IF NEW.hash IS DISTINCT FROM encode(sha256(convert_to(NEW.body, 'UTF8')), 'hex') THEN
        RAISE EXCEPTION 'the event does not have the hash that it comes with';
    END IF;
    BEGIN
        said := {_read("NEW.body")};
    EXCEPTION WHEN OTHERS THEN
        RAISE EXCEPTION 'the event is not JSON';
    END;
    IF jsonb_typeof(said) <> 'object' OR said->'seq' IS DISTINCT FROM to_jsonb(NEW.seq)
        OR said->>'previous' IS DISTINCT FROM coalesce(last.hash, repeat('0', 64))
        OR jsonb_typeof(said->'time') IS DISTINCT FROM 'string' THEN
        RAISE EXCEPTION 'the event does not follow from the one before it';
    END IF;
    IF said->>'kind' = 'answer' THEN
        {_find("writer INTO payer", "debit")} ORDER BY seq DESC LIMIT 1;
        IF payer IS NULL OR (payer <> session_user AND NOT pg_has_role(session_user, owner, 'MEMBER')) THEN
            RAISE insufficient_privilege USING MESSAGE = 'only who has paid for a request may answer it';
        END IF;
    END IF;
    NEW.writer := session_user;
    IF pg_has_role(session_user, owner, 'MEMBER') THEN
        RETURN NEW;
    END IF;
    IF coalesce(said->>'kind', '') NOT IN ('debit', 'answer', 'source', 'fix', 'reveal') THEN
        RAISE insufficient_privilege USING MESSAGE = 'only the owner of the ledger may open an account';
    END IF;
    IF NEW.body ~ '{_LONG}' OR jsonb_path_exists(said, 'lax $.**{{50}}') THEN
        RAISE EXCEPTION 'the event has numbers that are too long, or is nested too deeply';
    END IF;
    {_find(_read("body") + " INTO opened", "open")} LIMIT 1;
    IF opened IS NULL OR jsonb_typeof(said->'account') <> 'string' THEN
        RAISE EXCEPTION 'there is no such account in the ledger';
    END IF;
    IF said->>'kind' IN ('debit', 'answer', 'fix') AND jsonb_typeof(said->'request') IS DISTINCT FROM 'string' THEN
        RAISE EXCEPTION 'a request must be a text';
    END IF;
    IF said->>'kind' = 'debit' THEN
        allowed := coalesce(opened->'allowance', opened->'budget');
        IF jsonb_typeof(said->'cost') IS DISTINCT FROM 'object'
            OR jsonb_typeof(said->'description') IS DISTINCT FROM 'object'
            OR EXISTS (SELECT 1 FROM jsonb_each(said->'cost') AS found WHERE jsonb_typeof(found.value) <> 'string'
                OR found.value #>> '{{}}' !~ '{_AMOUNT}')
            OR (said->'description' ? 'delta' AND (jsonb_typeof(said->'description'->'delta') <> 'string'
                OR said->'description'->>'delta' !~ '{_AMOUNT}')) THEN
            RAISE EXCEPTION 'the cost of a debit must be a number, 0 or more';
        END IF;
        IF (SELECT array_agg(name ORDER BY name) FROM jsonb_object_keys(said->'cost') AS name)
            IS DISTINCT FROM (SELECT array_agg(name ORDER BY name) FROM jsonb_object_keys(allowed) AS name)
            OR NOT EXISTS (SELECT 1 FROM jsonb_each_text(said->'cost') AS found WHERE found.value ~ '^[^e/]*[1-9]') THEN
            RAISE EXCEPTION 'the cost of a debit is of the kind of the account, and above 0';
        END IF;
        IF EXISTS ({_find("1", "debit")}) THEN
            RAISE EXCEPTION 'the request is debited already';
        END IF;
        FOR part IN SELECT jsonb_object_keys(allowed) LOOP
            IF NOT {TABLE}_within(said->>'account', ARRAY['cost', part], said->'cost'->>part, allowed->>part, 1) THEN
                RAISE EXCEPTION 'the account cannot pay that much';
            END IF;
        END LOOP;
        IF said->'description' ? 'delta' AND NOT {TABLE}_within(said->>'account', ARRAY['description', 'delta'],
            said->'description'->>'delta', coalesce(opened->'budget'->>'delta', '0'), 100) THEN
            RAISE EXCEPTION 'the account cannot pay that much';
        END IF;
    ELSIF said->>'kind' = 'answer' THEN
        IF NEW.payload IS NULL OR said->>'payload' IS DISTINCT FROM encode(sha256(NEW.payload), 'hex')
            OR EXISTS ({_find("1", "answer")}) THEN
            RAISE EXCEPTION 'a request is answered once, with what its digest says';
        END IF;
    ELSIF said->>'kind' = 'source' THEN
        IF jsonb_typeof(said->'marks') IS DISTINCT FROM 'array' THEN
            RAISE EXCEPTION 'a source has a list of marks';
        END IF;
    ELSIF said->>'kind' = 'fix' THEN
        IF coalesce(said->>'at most', '') !~ '^[1-9][0-9]{{0,3}}$'
            OR (said->>'at most')::int > {MOST_ROWS_OF_A_PERSON}
            OR (opened->>'unit' LIKE '%, averaged' AND (said->>'at most')::int > {MOST_AVERAGED})
            OR opened->>'unit' !~ ', at most auto(, averaged)?$'
            OR EXISTS ({_find("1", "fix")})
            OR NOT EXISTS ({_find("1", "answer")} AND {_read("body")}->>'payload'
                = encode(sha256(convert_to('[' || (said->>'at most') || ']', 'UTF8')), 'hex')) THEN
            RAISE EXCEPTION 'how many rows of a person count is fixed once, as it was chosen and paid for';
        END IF;
    ELSIF NOT said ? 'reason' THEN
        RAISE EXCEPTION 'a reveal has a reason';
    END IF;
    RETURN NEW;
END
"""

_WITHIN = f"""
DECLARE
    above numeric := 0;
    below numeric := 1;
    top numeric;
    bottom numeric;
BEGIN
    FOR top, bottom IN
        SELECT sum(split_part(amount, '/', 1)::numeric), coalesce(nullif(split_part(amount, '/', 2), ''), '1')::numeric
        FROM (SELECT {_read("body")} #>> place AS amount FROM {TABLE} WHERE {_read("body")} @> jsonb_build_object(
            'kind', 'debit', 'account', payer) UNION ALL SELECT asked) AS paid WHERE amount IS NOT NULL GROUP BY 2 LOOP
        above := above * bottom + top * below;
        below := below * bottom;
    END LOOP;
    RETURN above * share * coalesce(nullif(split_part(most, '/', 2), ''), '1')::numeric
        <= split_part(most, '/', 1)::numeric * below;
EXCEPTION WHEN numeric_value_out_of_range THEN
    RETURN true; -- too many digits for the database; the ledger itself counts on
END
"""

_REFUSE = """
BEGIN
    RAISE EXCEPTION 'nothing is changed in or deleted from the ledger';
END
"""

_NOTE = f"""
BEGIN
    PERFORM setval('{TABLE}_anchor', (SELECT max(seq) FROM {TABLE}));
END
"""

FUNCTIONS = {
    f"{TABLE}_within": _WITHIN,
    f"{TABLE}_check": _CHECK,
    f"{TABLE}_refuse": _REFUSE,
    f"{TABLE}_note": _NOTE,
}
_TAKES = {f"{TABLE}_within": ("payer text, place text[], asked text, most text, share int", "boolean")}
"""What functions take and return, if it is not nothing and a trigger."""
TRIGGERS = {
    f"{TABLE}_in_order": (f"{TABLE}_check", "BEFORE INSERT", "ROW"),
    f"{TABLE}_never_changed": (f"{TABLE}_refuse", "BEFORE UPDATE OR DELETE", "ROW"),
    f"{TABLE}_never_emptied": (f"{TABLE}_refuse", "BEFORE TRUNCATE", "STATEMENT"),
}
_TYPES = {f"{TABLE}_in_order": 7, f"{TABLE}_never_changed": 27, f"{TABLE}_never_emptied": 34}
"""`tgtype` of each: 1 for a row, 2 before, 4 insert, 8 delete, 16 update, 32 truncate."""


def write_layout(schema: str) -> str:
    """The statements that make a ledger in a schema, or bring an older one up to date; nothing in the table is changed.

    Functions name the schema that they look into, so that nobody can slip another table under them.
    """
    place = '"' + schema.replace('"', '""') + '"'
    parts = [
        f"CREATE TABLE IF NOT EXISTS {TABLE} (seq bigint PRIMARY KEY CHECK (seq > 0), body text NOT NULL, "
        "hash text NOT NULL, payload bytea, writer text NOT NULL DEFAULT session_user)",
        f"ALTER TABLE {TABLE} ADD COLUMN IF NOT EXISTS writer text NOT NULL DEFAULT session_user",
        f"CREATE SEQUENCE IF NOT EXISTS {TABLE}_anchor AS bigint MINVALUE 0 START 0",
    ]
    for name, body in FUNCTIONS.items():
        takes, returns = _TAKES.get(name, ("", "void" if name.endswith("_note") else "trigger"))
        rights = "SECURITY DEFINER " if name.endswith("_note") else ""
        parts.append(
            f"CREATE OR REPLACE FUNCTION {name}({takes}) RETURNS {returns} LANGUAGE plpgsql {rights}"
            f"SET search_path = {place}, pg_catalog, pg_temp AS $${body}$$"
        )
    parts.append(f"REVOKE ALL ON FUNCTION {TABLE}_note() FROM PUBLIC")
    for name, (function, when, each) in TRIGGERS.items():
        parts.append(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}")
        parts.append(f"CREATE TRIGGER {name} {when} ON {TABLE} FOR EACH {each} EXECUTE FUNCTION {function}()")
    return ";\n".join(parts) + ";"


def find_faults(connection: Any) -> list[str]:
    """Parts of the layout that were removed, switched off, replaced or added."""
    table = connection.execute(
        "SELECT relkind::text, relrowsecurity, relhasrules, relhassubclass FROM pg_class WHERE oid = to_regclass(%s)",
        (TABLE,),
    ).fetchone()
    faults = []
    if table is None or tuple(table) != ("r", False, False, False):
        faults.append(f"the table {TABLE!r} was replaced, or has rules or policies of somebody's own")
    rows = connection.execute(
        "SELECT tgname, tgenabled::text, tgtype, proname, pronamespace = relnamespace, tgqual IS NULL, tgnargs "
        "FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid "
        "WHERE tgrelid = to_regclass(%s) AND NOT tgisinternal",
        (TABLE,),
    ).fetchall()
    found = {name: tuple(rest) for name, *rest in rows}
    for name, (function, _, _) in TRIGGERS.items():
        state = found.pop(name, None)
        if state is None or state[0] not in ("O", "A"):
            faults.append(f"the trigger {name!r} was removed or switched off")
        elif state[1:] != (_TYPES[name], function, True, True, 0):
            faults.append(f"the trigger {name!r} was replaced")
    faults += [f"the trigger {name!r} does not belong to the ledger's layout" for name in found]
    sources = connection.execute(
        "SELECT proname, prosrc, lanname, prosecdef, pg_get_userbyid(proowner) = pg_get_userbyid(relowner), "
        "coalesce(array_to_string(proconfig, ','), '') FROM pg_proc JOIN pg_language ON pg_language.oid = prolang "
        "JOIN pg_class ON pg_class.relnamespace = pronamespace WHERE pg_class.oid = to_regclass(%s) "
        "AND proname LIKE %s",
        (TABLE, f"{TABLE}%"),
    ).fetchall()
    known = {name: tuple(rest) for name, *rest in sources}
    for name, body in FUNCTIONS.items():
        state = known.pop(name, None)
        if state is None:
            faults.append(f"the function {name!r} was removed")
        elif (
            state[0] != body
            or state[1] != "plpgsql"
            or state[2] != name.endswith("_note")
            or not state[3]
            or not str(state[4]).startswith("search_path=")
        ):
            faults.append(f"the function {name!r} was replaced")
    return faults
