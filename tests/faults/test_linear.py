"""Every parser takes time in proportion to what it reads: eight times the text, not sixty-four times the time."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.judge.trust.witness import read_witnesses
from discreet.networks.conditions import split_name
from discreet.networks.formats.bif import parse_bif
from discreet.networks.formats.documents import load_strictly
from discreet.networks.formats.edges import parse_edges
from discreet.networks.question import LONGEST, read_levels
from discreet.networks.written import parse
from discreet.values.about import About
from discreet.values.errors import DiscreetError
from discreet.values.schema import Schema
from discreet.values.text import read_fraction

SCHEMA = Schema.of({"a": ["x", "y"], "b": ["x", "y"]})
TEXTS = {
    "blanks": lambda n: " " * n,
    "lines": lambda n: "\n" * n,
    "names": lambda n: "a " * (n // 2),
    "one name": lambda n: "a" * n,
    "digits": lambda n: "9" * n,
    "quotes": lambda n: '"' * n,
    "escapes": lambda n: '"' + "\\" * n,
    "brackets": lambda n: "[" * n,
    "pairs": lambda n: "()" * (n // 2),
    "braces": lambda n: "{" * n,
    "bars": lambda n: "|" * n,
    "commas": lambda n: "a," * (n // 2),
    "equations": lambda n: "a=x," * (n // 4),
    "comments": lambda n: "/*" * (n // 2),
    "slashes": lambda n: "//" * (n // 2),
    "hashes": lambda n: "# " * (n // 2),
    "arrows": lambda n: "a->" * (n // 3),
    "lines of arrows": lambda n: "a -> b\n" * (n // 7),
    "between": lambda n: "P(a between" + " " * n + "x)",
    "betweens": lambda n: "P(a" + " between" * (n // 8) + ")",
    "ands": lambda n: "P(a between" + " and" * (n // 4) + ")",
    "bins": lambda n: "P(a=" + "[1,<" * (n // 4) + ")",
    "keys": lambda n: "".join(f"k{i} = 1\n" for i in range(n // 10)),
    "dots": lambda n: "a." * (n // 2) + "b = 1",
    "quoted dots": lambda n: '"a" . ' * (n // 6) + "b = 1",
    "escaped dots": lambda n: '"a\\"b".' * (n // 8) + "b = 1",
    "escaped quotes": lambda n: 'a = "' + '\\"' * (n // 2),
    "apostrophes": lambda n: "'a" * (n // 2),
    "dots in dots": lambda n: f"{'a.' * 30}b" * (n // 61) + " = 1",
    "headers": lambda n: "".join(f"[attributes.k{i}]\n" for i in range(n // 18)),
    "arrays of tables": lambda n: "[[a]]\n" * (n // 6),
    "tables in tables": lambda n: "a = " + "{a=" * (n // 3),
    "variables": lambda n: "".join(f"variable v{i} {{ type discrete [ 2 ] {{ x, y }}; }}\n" for i in range(n // 45)),
    "cells": lambda n: "a,b\n" + "x,y\n" * (n // 4),
    "open cells": lambda n: "a,b\n" + 'x,"y\n' * (n // 5),
    "anchors": lambda n: ("3:" + "0" * 64 + "\n") * (n // 67),
    "a document": lambda n: json.dumps({"format": "release", "tables": [{"a": i} for i in range(n // 12)]}),
    "nested": lambda n: '{"a":' * (n // 5),
}  # fmt: skip


def _write_and(read: Callable[[Path], object], name: str) -> Callable[[str, Path], object]:
    def run(text: str, place: Path) -> object:
        (place / name).write_text(text)
        return read(place / name)

    return run


PARSERS: dict[str, Callable[[str, Path], object]] = {
    "question": lambda text, _: parse(text),
    "levels": lambda text, _: read_levels([text]),
    "name": lambda text, _: split_name(text),
    "number": lambda text, _: read_fraction(text, "ε", DiscreetError),
    "bif": lambda text, _: parse_bif(text),
    "edges": lambda text, _: parse_edges(text, SCHEMA),
    "schema": _write_and(Schema.read, "schema.toml"),
    "about": _write_and(About.read, "about.toml"),
    "document": lambda text, _: load_strictly(text),
    "anchors": _write_and(read_witnesses, "anchors.txt"),
}


def _time(read: Callable[[str, Path], object], text: str, place: Path) -> float:
    spent = []
    for _ in range(2):
        began = time.process_time()
        with suppress(DiscreetError):
            read(text, place)
        spent.append(time.process_time() - began)
    return min(spent)


def find_steep(
    read: Callable[[str, Path], object], place: Path, size: int = 6_000, texts: Collection[str] = TEXTS
) -> Iterator[str]:
    """The texts for which eight times the length takes more than twenty times as long, and not just moments.

    Each of three times: on a busy machine a text may take thrice as long as it did a moment ago.
    """

    def is_steep(name: str) -> bool:
        long = _time(read, TEXTS[name](8 * size), place)
        return long > 0.1 and long > 20 * _time(read, TEXTS[name](size), place)

    return (name for name in texts if all(is_steep(name) for _ in range(3)))


@pytest.mark.parametrize("parser", PARSERS)
def test_time_grows_with_the_text(parser: str, tmp_path: Path) -> None:
    assert list(find_steep(PARSERS[parser], tmp_path)) == []


def test_a_pattern_that_looks_from_every_place_is_found(tmp_path: Path) -> None:
    """The planted twin: how names were split once."""
    steep = re.compile(r"(.+?)\s+between")
    assert list(find_steep(lambda text, _: steep.fullmatch(text), tmp_path, 1500, ["blanks"]))


def test_a_question_is_short_whoever_reads_it() -> None:
    for read in (parse, lambda text: read_levels([text])):
        with pytest.raises(DiscreetError, match="at most 4,000 characters"):
            read("P(a" + " " * LONGEST + ")")  # type: ignore[operator]


OLD = (
    re.compile(r"(?P<name>.+?)\s+between(?:\s+(?P<low>.+?)\s+and\s+(?P<high>.+))?", re.IGNORECASE),
    re.compile(r"(?P<name>.+?)\s+(?P<sign>not\s+in|in)", re.IGNORECASE),
)


@given(
    st.lists(
        st.sampled_from(["a", "between", "Between", "and", "in", "not", "7", "b  c"]), min_size=1, max_size=8
    )
)
def test_names_are_split_as_the_patterns_say(words: list[str]) -> None:
    word = " ".join(words)
    between, among = (pattern.fullmatch(word) for pattern in OLD)
    if between is not None:
        expected = (between["name"], "between", (between["low"], between["high"]) if between["low"] else ())
    elif among is not None:
        expected = (among["name"], among["sign"].lower(), ())
    else:
        expected = (word, None, ())
    assert split_name(word) == expected
