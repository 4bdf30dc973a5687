"""Witnesses of a ledger: releases and anchors that are kept elsewhere, and tell if an old copy was put back.

A ledger that was rolled back is sound in itself. Whoever holds a later anchor of it can tell: the release in the folder
that is about to be written over, releases that are published already, or a file of anchors on another disk:

    discreet-anchor 1 0123456789abcdef0123456789abcdef 12:5f1d…
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from discreet.core.chain import Anchor
from discreet.core.ledger import Ledger
from discreet.networks.formats.documents import MAX_BYTES, load_strictly
from discreet.networks.formats.release import RELEASE
from discreet.values.errors import DiscreetError, FormatError, LedgerError
from discreet.values.files import read_text, require_own_file, sync_folder
from discreet.values.statement import Statement
from discreet.values.text import show

LINE = re.compile(r"discreet-anchor 1 ([0-9a-f]{32}) ([0-9]{1,18}:[0-9a-f]{64})")
BARE = re.compile(r"[0-9]{1,18}:[0-9a-f]{64}")
NOTES, DOCUMENT = "anchors.txt", "release.json"
"""The file of anchors in a folder of witnesses, and the release in one that is written into."""
MOST_FILES = 500
MOST_BYTES = 2**22
"""The longest file of anchors that is read."""

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Witness:
    """An anchor of a ledger, and where it was found; an anchor that names no ledger is taken for one of this."""

    ledger: str
    anchor: Anchor
    source: str


def read_witnesses(path: PathLike) -> list[Witness]:
    """The anchors in a release, in a file of anchors, or in all of these in a folder; what is neither is refused.

    In a folder, what is neither is passed over, unless it has the name of one.
    """
    place = Path(path)
    if not place.is_dir():
        return _read_file(place)
    try:
        names = sorted(name for name in os.listdir(place) if name.endswith((".json", ".json.gz", ".txt")))
    except OSError as error:
        raise FormatError(f"{place}: cannot be read: {error.strerror}") from None
    if len(names) > MOST_FILES:
        raise FormatError(
            f"{place} holds {len(names):,} files; at most {MOST_FILES} witnesses are read: name some"
        )
    found: list[Witness] = []
    for name in names:
        try:
            require_own_file(place / name)
            found += _read_file(place / name)
        except DiscreetError:
            if name in (NOTES, DOCUMENT):  # a release that cannot be read any more may be the one that tells
                raise
    return found


def find_conflict(ledger: Ledger, witnesses: Iterable[Witness], *, strict: bool = False) -> str | None:
    """Why the ledger cannot be the one that the witnesses have seen, in words; None if it can.

    Those of other ledgers are passed over, unless it is `strict`.
    """
    mine = []
    for found in witnesses:
        if not found.ledger or found.ledger == ledger.id:
            mine.append(found)
        elif strict:
            return f"{found.source} was paid for from ledger {show(found.ledger)}, not {ledger.id!r}"
    if not mine or ledger.verify(*{found.anchor for found in mine}).sound:
        return None
    while len(mine) > 1:  # the first of them that does not match; the ledger is read once for each half
        half = mine[: len(mine) // 2]
        mine = half if ledger.verify(*{found.anchor for found in half}).problems else mine[len(half) :]
    return f"{ledger.verify(mine[0].anchor).problems[-1]}, says {mine[0].source}"


def require_latest(ledger: Ledger, witnesses: Sequence[Witness]) -> None:
    """Refuse to spend from a ledger that is older than a witness: the same budget would be spent a second time."""
    problem = find_conflict(ledger, witnesses)
    if problem is not None:
        raise LedgerError(
            f"the ledger {ledger.place} was rolled back or rewritten: {problem}; nothing was spent: go back "
            "to the latest copy"
        )


def find_witnesses(witness: PathLike | None, beside: PathLike | None) -> list[Witness]:
    """The anchors that a release can be held against before it is paid for.

    A witness that anchors cannot be added to is refused.
    """
    if witness is not None and not _is_release(_find_notes(witness)):
        place = _find_notes(witness)
        if not place.parent.is_dir() or not os.access(place if place.exists() else place.parent, os.W_OK):
            raise FormatError(
                f"{place}: anchors cannot be written there; name a file of your own, or a folder"
            )
    return [found for place in (witness, beside) if place is not None for found in read_witnesses(place)]


def note_anchor(path: PathLike | None, said: Statement | None) -> None:
    """Add the anchor of a release to a file of them, or to the one in a folder, durably.

    To a release, which may be a witness too, nothing is added.
    """
    if path is None or said is None or _is_release(_find_notes(path)):
        return
    place = _find_notes(path)
    line = f"discreet-anchor 1 {said.ledger} {said.events}:{said.head}\n"
    try:
        handle = os.open(place, os.O_CREAT | os.O_APPEND | os.O_RDWR, 0o644)
        with os.fdopen(handle, "ab") as file:
            size = os.fstat(handle).st_size
            whole = not size or os.pread(handle, 1, size - 1) == b"\n"  # somebody may have edited it
            file.write(("" if whole else "\n").encode() + line.encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise FormatError(f"{place}: the anchor cannot be written: {error.strerror}") from None
    sync_folder(place.parent)


def _find_notes(path: PathLike) -> Path:
    return Path(path) / NOTES if Path(path).is_dir() else Path(path)


def _is_release(path: Path) -> bool:
    return path.suffix in (".json", ".gz")


def _read_file(path: Path) -> list[Witness]:
    if not path.exists():
        return []
    if _is_release(path):
        return [_read_release(path)]
    return list(_read_notes(path))


def _read_release(path: Path) -> Witness:
    text = read_text(path, MAX_BYTES)
    try:
        document = load_strictly(text)
    except DiscreetError as error:
        raise FormatError(f"{path}: {error}") from None
    if not isinstance(document, dict) or document.get("format") != RELEASE.format:
        raise FormatError(f"{path} is not a release")
    known = document.get("provenance")
    try:
        said = Statement.from_json(known.get("statement") if isinstance(known, dict) else None)
    except DiscreetError as error:
        raise FormatError(f"{path}: {error}") from None
    return Witness(said.ledger, Anchor(said.events, said.head), str(path))


def _read_notes(path: Path) -> Iterator[Witness]:
    for number, text in enumerate(read_text(path, MOST_BYTES).splitlines(), 1):
        line = text.strip()
        if not line or line.startswith("#"):
            continue
        found = LINE.fullmatch(line)
        if found is not None:
            yield Witness(found[1], Anchor.parse(found[2]), f"{path}, line {number}")
        elif BARE.fullmatch(line):
            yield Witness("", Anchor.parse(line), f"{path}, line {number}")
        else:
            raise FormatError(
                f"{path}, line {number}: {show(line)} is no anchor; write COUNT:HASH, as `discreet budget show` does"
            )
