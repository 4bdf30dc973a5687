"""What the first rows of a file tell about a header that is elsewhere: a hint, which changes nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence

LOOKED_AT = 20
"""So many rows are looked at for one that names the columns."""

VALUE = re.compile("[-+€$£¥ ]*[0-9]")
"""How numbers, dates and sums of money begin, and names of columns do not."""

TITLE = "its first row looks like a title"
"""How a hint begins that rows have told, and not the header alone."""


def find_header(rows: Sequence[Sequence[object]]) -> int | None:
    """Which row names the columns if the first is a title: it fills half of what later ones do, or less."""
    texts = [["" if cell is None else str(cell).strip() for cell in row] for row in rows]
    filled = [sum(map(bool, row)) for row in texts]
    widest = max(filled[1:], default=0)
    if widest < 2 or 2 * filled[0] > widest:
        return None
    wide = next(i for i, count in enumerate(filled) if i and count >= 0.8 * widest)
    names = [(i, text) for i, text in enumerate(texts[wide]) if text]
    below = {found for row in texts[wide + 1 :] for found in enumerate(row)}
    # Names are no numbers, differ from each other, and are no values of the rows below.
    if any(not isinstance(rows[wide][i], str) or VALUE.match(text) for i, text in names):
        return None
    return wide if len({text for _, text in names}) == len(names) and below.isdisjoint(names) else None
