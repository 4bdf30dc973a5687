"""What the fuzzer starts from: a small clinic with one of every kind of file, the commands that read them, changes."""

from __future__ import annotations

import gzip
import json
import random
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROWS = "a,b,age\n" + "".join(f"{'xyz'[i % 3]},{i * 7 % 2},{i * 13 % 90}\n" for i in range(60))
SCHEMA = """[attributes.a]
levels = ["x", "y", "z"]

[attributes.b]
levels = ["0", "1"]

[attributes.age]
edges = [0, 30, 60, 90]
"""
ABOUT = 'title = "A clinic"\ncontact = "desk@clinic.example"\n'
EDGES = "a -> b\nage\n"
QUESTIONS = "P(b | a=x)\nmean(age)\nMPE(a=y)\nP(a) \nquantile(age, 0.5)\n"
SPEND = ["--ledger", "{ledger}", "--account", "clinic", "--out", "{out}.json"]
NEW = ["--ledger", "{ledger}", "--account", "new", "--create-ledger", "--out", "{out}.json"]
"""An account whose budget is what is asked for, so that no budget stands in the way of an absurd amount."""
RELEASE = ["release", "{rows}", "--schema", "{schema}", "--epsilon", "1", *SPEND]

PRIOR = [
    "plan",
    "--schema",
    "{schema}",
    "--graph",
    "{edges}",
    "--epsilon",
    "1",
    "--learner",
    "laplace",
    "--prior",
]


@dataclass(frozen=True)
class Kind:
    """A file that is mutated, and the commands that are given it."""

    file: str
    commands: tuple[tuple[str, ...], ...]
    weight: int = 1


KINDS: dict[str, Kind] = {
    "release": Kind(
        "release.json",
        (
            ("verify", "{file}"),
            ("verify", "{file}", "--ledger", "{ledger}"),
            ("report", "{file}", "-o", "{out}.html"),
            ("statement", "{file}"),
            ("query", "{file}", "P(b | a=x)"),
            ("verify", "{file}", "--key", "{key}"),
            ("explore", "{file}", "-o", "{out}.html", "--no-open"),
            ("budget", "verify", "{ledger}", "{file}"),
            ("synthesize", "{file}", "--rows", "20", "--out", "{out}.csv"),
            ("compare", "{file}", "{network}"),
            ("statement", "{file}", "--format", "registry"),
            ("credal", "noise", "{file}", "--out", "{out}.json"),
            ("bounds", "{file}", "--truth", "{network}"),
            ("release", "{rows}", *RELEASE[2:], "--graph", "{edges}", "--witness", "{file}"),
        ),
        40,
    ),
    "searched": Kind("searched.json", (("verify", "{file}"), ("report", "{file}", "-o", "{out}.html")), 6),
    "network": Kind("network.json", (("query", "{file}", "P(b)"), ("compare", "{file}", "{network}")), 8),
    "bif": Kind(
        "network.bif",
        (
            ("query", "{file}", "P(b)"),
            ("plan", "--schema", "{schema}", "--graph", "{file}", "--epsilon", "1"),
        ),
        12,
    ),
    "edges": Kind("edges.txt", (("plan", "--schema", "{schema}", "--graph", "{file}", "--epsilon", "1"),), 8),
    "schema": Kind(
        "schema.toml", (("plan", "--schema", "{file}", "--graph", "{edges}", "--epsilon", "1"),), 8
    ),
    "about": Kind("about.toml", ((*RELEASE, "--graph", "{edges}", "--about", "{file}"),), 1),
    "csv": Kind("rows.csv", (("release", "{file}", *RELEASE[2:], "--graph", "{edges}"),), 2),
    "parquet": Kind("rows.parquet", (("release", "{file}", *RELEASE[2:], "--graph", "{edges}"),), 1),
    "arrow": Kind("rows.arrow", (("release", "{file}", *RELEASE[2:], "--graph", "{edges}"),), 1),
    "ledger": Kind(
        "clinic.ledger",
        (
            ("budget", "show", "{file}"),
            ("budget", "verify", "{file}"),
            ("budget", "salvage", "{file}", "{out}"),
        ),
        8,
    ),
    "signature": Kind("release.json.sig", (("verify", "{release}", "--key", "{key}"),), 2),
    "key": Kind("custodian.key.pub", (("verify", "{release}", "--key", "{file}"),), 2),
    "anchors": Kind("anchors.txt", (("budget", "verify", "{ledger}", "{file}"),), 3),
    "packed": Kind("packed.json.gz", (("verify", "{file}"), ("query", "{file}", "P(a)")), 2),
    "plan": Kind("plan.json", (("release", "{rows}", "--plan", "{file}", *SPEND),), 4),
    "part": Kind("north.json", (("combine", "{file}", "{south}", "--disjoint", "--out", "{out}.json"),), 3),
    "credal": Kind(
        "credal.json",
        (("query", "{file}", "P(b | a=x)"), ("credal", "recover", "{file}", "--out", "{out}.json")),
        3,
    ),
    "posterior": Kind("published/posterior.json", (("query", "{file}", "P(b | a=x)"), (*PRIOR, "{file}")), 3),
    "beside": Kind("published/network.bif", (("verify", "{published}"),), 1),
    "page": Kind("published/report.html", (("verify", "{published}"),), 1),
    "drawn": Kind("published/drawn.csv.from.json", (("verify", "{published}"),), 2),
    "lines": Kind(
        "rows.jsonl", (("schema", "check", "{schema}", "{file}"), ("schema", "draft", "{file}")), 2
    ),
    "sqlite": Kind("rows.sqlite", (("schema", "check", "{schema}", "{file}"),), 1),
    "questions": Kind("questions.txt", (("query", "{network}", "--file", "{file}"),), 8),
}
ARGUMENTS: tuple[tuple[str, ...], ...] = (
    ("plan", "--schema", "{schema}", "--epsilon", "*1", "--rows", "*100"),
    ("plan", "--schema", "{schema}", "--rho", "*1/8", "--graph", "{edges}"),
    ("query", "{network}", "*P(b | a=x)"),
    ("synthesize", "{network}", "--rows", "*10", "--seed", "*7", "--out", "{out}.csv"),
    ("synthesize", "{network}", "--rows", "10", "--given", "*a=x", "--out", "{out}.csv"),
    ("budget", "init", "{ledger}", "--account", "*new", "--epsilon", "*1"),
    ("budget", "init", "{out}.ledger", "--account", "*new", "--rho", "*1/8"),
    ("budget", "verify", "{ledger}", "--anchor", "*3:00"),
    ("budget", "show", "{ledger}", "--account", "*clinic"),
    ("catalog", "{published}", "--title", "*Releases"),
    ("plan", "--schema", "{schema}", "--epsilon", "*1", "--delta", "*1e-6", "--for-width", "*0.2", "*P(a)"),
    ("plan", "--schema", "{schema}", "--epsilon", "1", "--learner", "privbayes", "--beta", "*3/10", "--k", "*1"),
    ("plan", "--schema", "{schema}", "--epsilon", "1", "--learner", "privbayes", "--require", "*a -> b"),
    ("plan", "--schema", "{schema}", "--epsilon", "1", "--workload", "*a, b", "--target", "*a"),
    ("plan", "--schema", "{schema}", "--epsilon", "1", "--person", "*id", "--at-most", "*4"),
    ("credal", "contaminate", "{network}", "--share", "*0.1", "--out", "{out}.json"),
    ("credal", "recover", "{credal}", "--strength", "*2"),
    ("statement", "{release}", "--format", "*text"),
    ("*verify", "{release}", "--key", "{key}"),
    ("query", "{release}", "*P(b | a=x)", "--interval", "*calibrated", "--of", "*table"),
    ("release", "{rows}", "--schema", "{schema}", "--graph", "{edges}", "--epsilon", "*1", "--memory", "*1GB", *SPEND),
    ("release", "{rows}", "--schema", "{schema}", "--graph", "{edges}", "--epsilon", "1", "--request", "*one", *SPEND),
    ("release", "{rows}", "--schema", "{schema}", "--graph", "{edges}", "--epsilon", "*1", *NEW),
    ("release", "{rows}", "--schema", "{schema}", "--graph", "{edges}", "--rho", "*1/8", *NEW),
)  # fmt: skip
"""Commands in which the words behind a star are mutated."""

TOKENS: tuple[bytes, ...] = (
    b"0", b"-1", b"1e999999999", b"1e-17", b"710", b"9" * 400, b"1000000000", b"NaN", b"Infinity", b"null",
    b"true", b"[]", b"{}", b'""', b"-0.0", b"1e308", b"0.1", b"1/3", b"1/0", b"\x00", b"\xff\xfe",
    b"\x1b[31mred\x1b[0m", b"\r\n", b"\n" * 20_000, b"\t" * 5_000, b" " * 5_000, b"[" * 3_000,
    b'{"a":' * 200, b'"', b"\\", b"\xe2\x80\xae", b"(" * 400, b"/*", b"//", b"->" * 99, b"between 1 and 2",
    b"=", b", ", b"18446744073709551616", b"a" * 10_000, b"%s", b"../../etc/passwd", b"sep=;\n",
)  # fmt: skip
NUMBERS = 19
"""How many of them stand where a number is expected."""
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 10**400, 1e308, 0.1, "", "1e999999999", "x" * 3000, "\x1b[31m", [], {}, [[]],
    {"width": 10**9}, {"epsilon": "1e999999999"}, {"epsilon": "1/0"}, "1/3", "a", ["a", "a"],
    {"rounds": 10**12}, {"prior": {"a": [1e308]}}, [None] * 50,
)  # fmt: skip
HINTS: dict[Any, tuple[Any, ...]] = {
    "options": (
        {"width": 10**9},
        {"effort": 10**9},
        {"model_cells": 10**15},
        {"rounds": 10**12},
        {"sets": [["a"] * 99]},
    ),
    **dict.fromkeys(
        ("epsilon", "rho", "delta"), ("1e999999999", "9" * 300, "1/0", "-1", "710", "1/3", "1e-300")
    ),
    "cost": ({"epsilon": "1e999999999"}, {"rho": "1/3"}, {"epsilon": "9" * 300}),
    "request": ("\x1b]0;title\x07", "r" * 500),
}
"""Values for keys that decide how much is computed."""


def prepare(folder: Path) -> None:
    """Write the clinic: rows in three formats, schema, graphs, a ledger, a signed release, keys, and the rest."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    import discreet as dc
    from discreet.doors.cli import main
    from discreet.networks.formats.signature import make_keys

    texts = {
        "rows.csv": ROWS,
        "schema.toml": SCHEMA,
        "about.toml": ABOUT,
        "edges.txt": EDGES,
        "questions.txt": QUESTIONS,
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    table = pyarrow.csv.read_csv(folder / "rows.csv")
    pyarrow.parquet.write_table(table, folder / "rows.parquet")
    with pa.OSFile(str(folder / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    columns = {name: table.column(name).to_pylist() for name in table.column_names}
    columns["b"] = [str(value) for value in columns["b"]]
    made = dc.release(
        columns, dc.Schema.read(folder / "schema.toml"), {"a": (), "b": ("a",), "age": ()}, epsilon=1, create=True,
        ledger=folder / "clinic.ledger", account="clinic", budget=9, about=folder / "about.toml",
        witness=folder / "anchors.txt",
    )  # fmt: skip
    made.write(folder / "release.json")
    many = {name: values * 60 for name, values in columns.items()}
    dc.release(
        many, dc.Schema.read(folder / "schema.toml"), epsilon=5, create=True, ledger=folder / "clinic.ledger",
        account="searched", learner="adaptive", options={"sets": [["a", "b"]]},
    ).write(folder / "searched.json")  # fmt: skip
    made.network.write_bif(folder / "network.bif")
    made.network.write(folder / "network.json")
    make_keys(folder / "custodian.key")
    dc.sign(folder / "release.json", folder / "custodian.key")
    (folder / "packed.json.gz").write_bytes(gzip.compress((folder / "release.json").read_bytes(), mtime=0))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with sqlite3.connect(folder / "rows.sqlite") as base:
        base.execute("CREATE TABLE patients (a TEXT, b TEXT, age INTEGER)")
        base.executemany("INSERT INTO patients VALUES (:a, :b, :age)", rows)
    base.close()
    for line in STEPS:
        if main([word.format(folder) for word in shlex.split(line)]) != 0:
            raise RuntimeError(line)


STEPS = (
    "plan --schema {0}/schema.toml --graph {0}/edges.txt --epsilon 1 --write {0}/plan.json --custodians clinic,south",
    "release {0}/rows.csv --plan {0}/plan.json --ledger {0}/clinic.ledger --account clinic --out {0}/north.json",
    "release {0}/rows.csv --plan {0}/plan.json --ledger {0}/south.ledger --account south --create-ledger"
    " --out {0}/south.json",
    "release {0}/rows.csv --schema {0}/schema.toml --graph {0}/edges.txt --epsilon 1/2 --learner laplace"
    " --ledger {0}/clinic.ledger --account laplace --create-ledger --out {0}/published",
    "synthesize {0}/published/release.json --rows 30 --out {0}/published/drawn.csv",
    "credal noise {0}/release.json --out {0}/credal.json",
)
"""How the rest of the clinic is made."""


def fill_in(command: Sequence[str], trial: Path, file: str) -> list[str]:
    """A command with the paths of a trial's files."""
    places = {
        "file": file, "ledger": "clinic.ledger", "out": "out/made", "rows": "rows.csv", "schema": "schema.toml",
        "south": "south.json", "credal": "credal.json", "published": "published",
        "edges": "edges.txt", "network": "network.json", "release": "release.json", "key": "custodian.key.pub",
    }  # fmt: skip
    found = list(command)
    for name, place in places.items():
        found = [word.replace(f"{{{name}}}", str(trial / place)) for word in found]
    return found


def copy_clinic(clinic: Path, trial: Path) -> None:
    """A clinic of one's own, with an empty folder for what is made."""
    shutil.copytree(clinic, trial)
    (trial / "out").mkdir()


def mutate(data: bytes, chance: random.Random) -> bytes:
    """One to four changes of a file: of its bytes, its words, or, if it is JSON, of a value in it."""
    if data[:1] == b"{" and chance.random() < 0.5:
        changed = _mutate_json(data, chance)
        if changed is not None:
            return changed
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        data = chance.choice(_CHANGES)(data, chance)
    return data


def mutate_word(word: str, chance: random.Random) -> str:
    """An argument that somebody mistyped, or typed on purpose."""
    if word[:1].isdigit() and chance.random() < 0.5:
        return chance.choice(TOKENS[:NUMBERS]).decode()
    found = mutate(word.encode(), chance) if chance.random() < 0.4 else chance.choice(TOKENS)
    return found.decode("utf-8", "replace").replace("\0", "")[:60_000]


def _mutate_json(data: bytes, chance: random.Random) -> bytes | None:
    from discreet.networks.formats.release import RELEASE

    try:
        document = json.loads(data)
    except ValueError:
        return None
    spots: list[tuple[Any, Any]] = []
    agenda = [document]
    while agenda:
        held = agenda.pop()
        for key in held if isinstance(held, dict) else range(len(held)):
            spots.append((held, key))
            if isinstance(held[key], dict | list):
                agenda.append(held[key])
    names = sorted({key for _, key in spots if isinstance(key, str)})
    if names and chance.random() < 0.6:  # by name first: otherwise nearly all would be numbers in tables
        telling = [name for name in names if name in HINTS]
        wanted = chance.choice(telling if telling and chance.random() < 0.4 else names)
        spots = [(held, key) for held, key in spots if key == wanted]
    held, key = chance.choice(spots)
    if isinstance(key, str) and chance.random() < 0.15:
        del held[key]
    elif isinstance(key, str) and chance.random() < 0.1:
        held["more"] = chance.choice(VALUES)
    else:
        held[key] = chance.choice(HINTS.get(key, VALUES) if chance.random() < 0.5 else VALUES)
    try:
        return RELEASE.format_text(document).encode("utf-8", "replace")
    except ValueError:
        return None


def _place(data: bytes, chance: random.Random) -> int:
    return chance.randrange(len(data) + 1)


def _flip(data: bytes, chance: random.Random) -> bytes:
    if not data:
        return data
    at, changed = chance.randrange(len(data)), bytearray(data)
    changed[at] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _insert(data: bytes, chance: random.Random) -> bytes:
    at = _place(data, chance)
    return data[:at] + chance.choice(TOKENS) + data[at:]


def _overwrite(data: bytes, chance: random.Random) -> bytes:
    at = _place(data, chance)
    return data[:at] + chance.choice(TOKENS) + data[at + chance.randrange(12) :]


def _cut(data: bytes, chance: random.Random) -> bytes:
    at = _place(data, chance)
    return data[:at] + data[at + chance.randrange(1, 200) :]


def _truncate(data: bytes, chance: random.Random) -> bytes:
    return data[: _place(data, chance)]


def _repeat(data: bytes, chance: random.Random) -> bytes:
    at = _place(data, chance)
    return data[:at] + data[at : at + chance.randrange(1, 300)] * chance.choice((2, 2, 50)) + data[at:]


def _swap_number(data: bytes, chance: random.Random) -> bytes:
    """Another number in place of one of the numbers of a text."""
    starts = [i for i, byte in enumerate(data[:200_000]) if 48 <= byte <= 57 and not 48 <= data[i - 1] <= 57]
    if not starts:
        return data
    at = end = chance.choice(starts)
    while end < len(data) and data[end : end + 1] in b"0123456789.eE-":
        end += 1
    return data[:at] + chance.choice(TOKENS[:NUMBERS]) + data[end:]


_CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _flip, _insert, _overwrite, _cut, _truncate, _repeat, _swap_number, _swap_number,
)  # fmt: skip
