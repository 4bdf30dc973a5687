"""Whether members and reference are the same people: then strangers are members, and an audit tells nothing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from discreet.judge.attacks.codes import Codes, count_rows
from discreet.judge.attacks.units import Units
from discreet.judge.tails import bound_share_below
from discreet.values.errors import DataError

Hashes = npt.NDArray[np.uint64]

DOUBT = 1e-6
"""Two tables that have nobody in common are refused with at most this probability."""
ADVICE = "give rows of other people as the reference, or one table to be split (--split)"


def refuse_overlap(members: Units, reference: Units) -> None:
    """Refuse a reference that holds members, as far as it can be told from the rows alone.

    If all rows are drawn from one population, a combination of levels that exactly two rows have is as likely shared by
    any two of them: by a member and a stranger with chance 2mr/(N(N − 1)), N = m + r. Other populations only lower it.
    Rows that are in both tables are such pairs and raise it.
    """
    one, other = _hash_rows(members.codes), _hash_rows(reference.codes)
    if len(one) == len(other) and (np.sort(one) == np.sort(other)).all():
        raise DataError(f"members and reference are the same {len(one):,} rows; {ADVICE}")
    shared, pairs = _count_shared(one, other)
    whole = len(one) + len(other)
    chance = 2 * len(one) * len(other) / (whole * (whole - 1))
    if pairs and bound_share_below(shared, pairs, DOUBT) > chance:
        raise DataError(
            f"the reference holds rows of the members: of {pairs:,} combinations that two rows have, {shared:,} are in "
            f"both tables, far more than in tables of different people; {ADVICE}"
        )


def refuse_shared(members: Hashes, reference: Hashes) -> None:
    """Refuse a reference with people who are members, told by their ids."""
    shared = np.intersect1d(_fold(members), _fold(reference))
    shared = shared[shared != 0]  # no id
    if len(shared):
        raise DataError(f"{len(shared):,} people are in members and reference both; {ADVICE}")


def _count_shared(one: Hashes, other: Hashes) -> tuple[int, int]:
    """Combinations of levels that exactly two rows of both tables together have, first those with one in each."""
    _, kinds, counts = np.unique(np.concatenate([one, other]), return_inverse=True, return_counts=True)
    inside = np.bincount(kinds.reshape(-1)[: len(one)], minlength=len(counts))
    twice = counts == 2
    return int((inside[twice] == 1).sum()), int(twice.sum())


def _hash_rows(codes: Codes) -> Hashes:
    """A number for each row, the same for the same levels; for different ones but with a chance of rows²/2^65."""
    rng = np.random.default_rng(0)
    found = np.zeros(count_rows(codes), dtype=np.uint64)
    for column in codes.values():
        marks = rng.integers(0, 2**64, size=2**16, dtype=np.uint64)
        found += marks[column]  # tabulation hashing, modulo 2^64
    return found


def _fold(people: Hashes) -> Hashes:
    """Two words as one; they are hashes already."""
    return np.asarray(people[:, 0] ^ (people[:, 1] << np.uint64(1)))
