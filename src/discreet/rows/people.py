"""At most k rows of each person, chosen uniformly at random, in secret, and from that person's rows alone.

So adding or removing a person adds or removes at most k rows and leaves everybody else's as they were. A choice by the
order of a file, say, would not do: one person more could push another's rows out.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

People = npt.NDArray[np.uint64]
"""For each row a keyed hash of its person's id, in two words; both are 0 where there is no id."""

KEY_BYTES = 16


def draw_key() -> bytes:
    """A secret that nobody keeps: with it, ids are hashed and rows are put in order."""
    return os.urandom(KEY_BYTES)


def hash_ids(values: Iterable[Any], key: bytes) -> People:
    """The ids of some rows; what is missing, and words that say so, are no id.

    128 bits under a secret key: no two people of any table share them but with a chance of rows²/2^129, and nobody can
    look for two who do.
    """
    known: dict[str, tuple[int, int]] = {"": (0, 0)}
    found = []
    for value in values:
        text = write_id(value)
        words = known.get(text)
        if words is None:
            digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), key=key, digest_size=16).digest()
            words = known[text] = (int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little"))
        found.append(words)
    return np.array(found, dtype=np.uint64).reshape(-1, 2)


BLANKS = " \t\n\r\f\v"
"""What is cut off at both ends of an id, in every engine."""
_WORDS = "na n/a n.a. #n/a <na> nan nat nil none null (null) (none) missing unknown ? . - -- *"
NOBODY = tuple(_WORDS.split())
"""What stands where there is no id, in small letters: R writes NA. As one person, these rows would be many people's."""

WHOLE, ZEROS = "^-?[0-9]+[.]0+$", "[.]0+$"
"""A whole number as pandas writes it into a file if the id of another row is missing, and what it has too much."""


def write_id(value: Any) -> str:
    """An id as text: whole numbers without a point, blanks cut off; empty where there is none."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    text = str(value).strip(BLANKS)  # None, NaN of any kind, NA and NaT say so themselves
    if re.search(WHOLE, text):
        text = re.sub(ZEROS, "", text)
    return "" if text.lower() in NOBODY else text


def choose_rows(people: People, at_most: int) -> npt.NDArray[np.bool_]:
    """Which rows count: all of a person who has no more than `at_most`, else so many of them, uniformly at random."""
    place, counts = _number(people)
    large = counts[place] > at_most
    large[place < 0] = False
    keep = (place >= 0) & ~large
    rows = np.flatnonzero(large)
    drawn = np.frombuffer(os.urandom(8 * rows.size), dtype=np.uint64)
    _sample(place, rows, drawn, at_most, counts.size, keep)
    return np.asarray(keep)


def weigh_rows(people: People, chosen: npt.NDArray[np.bool_], grain: int) -> npt.NDArray[np.int64]:
    """What each chosen row weighs where a person's j rows weigh 1/j each, in parts of 1/grain: a whole number."""
    place, _ = _number(people[chosen])
    return np.asarray(grain // np.bincount(place)[place]).astype(np.int64)


def count_people(people: People, most: int) -> npt.NDArray[np.int64]:
    """How many people have 1, 2, … up to `most` rows, and last how many have more; rows without an id do not count."""
    place, counts = _number(people)
    if not (place >= 0).any():
        return np.zeros(most + 1, dtype=np.int64)
    return np.bincount(np.minimum(counts, most + 1), minlength=most + 2)[1:].astype(np.int64)


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _number(people: Any) -> Any:
    """A number for each person in order of appearance, −1 for none, and how many rows each has; by open addressing."""
    size = 16
    while size < 2 * len(people):
        size *= 2
    slots = np.full(size, -1, dtype=np.int64)
    first = np.empty(len(people), dtype=np.int64)
    counts = np.zeros(len(people), dtype=np.int64)
    place = np.empty(len(people), dtype=np.int64)
    known = 0
    for row in range(len(people)):
        low, high = people[row, 0], people[row, 1]
        if low == 0 and high == 0:
            place[row] = -1
            continue
        at = np.int64(low & np.uint64(size - 1))
        while slots[at] >= 0:
            other = first[slots[at]]
            if people[other, 0] == low and people[other, 1] == high:
                break
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at] = known
            first[known] = row
            known += 1
        place[row] = slots[at]
        counts[slots[at]] += 1
    return place, counts[: max(known, 1)]


@njit(cache=True, nogil=True)  # type: ignore[untyped-decorator]
def _sample(place: Any, rows: Any, drawn: Any, at_most: int, people: int, keep: Any) -> None:
    """Reservoir sampling for each person who has too many rows [Vitter 1985, Algorithm R]."""
    seats = np.full(people, -1, dtype=np.int64)
    seen = np.zeros(people, dtype=np.int64)
    taken = 0
    for i in range(len(rows)):
        if seats[place[rows[i]]] < 0:
            seats[place[rows[i]]] = taken
            taken += 1
    chosen = np.empty((taken, at_most), dtype=np.int64)
    for i in range(len(rows)):
        row = rows[i]
        person = place[row]
        seat = seats[person]
        if seen[person] < at_most:
            chosen[seat, seen[person]] = row
        else:
            at = drawn[i] % np.uint64(seen[person] + 1)
            if at < np.uint64(at_most):
                chosen[seat, np.int64(at)] = row
        seen[person] += 1
    for seat in range(taken):
        for j in range(at_most):
            keep[chosen[seat, j]] = True
