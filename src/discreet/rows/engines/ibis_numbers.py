"""Number columns inside an engine: their distinct values, as the engine holds them, and how often each is there.

No engine rounds, clips or adds up anything: that is done here, by the same code as for files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from discreet.rows.engines.ways import as_codes, fetch
from discreet.rows.limits import Limits
from discreet.rows.readers.batches import Numbers, check_numbers
from discreet.values.errors import DataError, TooLarge
from discreet.values.text import list_some, show


def fetch_numbers(
    label: str, table: Any, names: Sequence[str], columns: Sequence[str], weight: Any, limits: Limits
) -> Numbers:
    """The distinct rows of these columns, and how many rows, or how much weight, has each; a missing one is refused."""
    for name, column in zip(names, columns, strict=True):
        kind = table[column].type()
        if not (kind.is_integer() or kind.is_floating()):
            raise DataError(
                f"{label}: column {show(name)} has the type {kind}; inside a database only integers and floats can be "
                "summed, because others are rounded in the database's own way: cast it there, or read it from a file"
            )
    most = limits.codes // (16 * (len(names) + 1))
    chosen = table.select(**{f"v{i}": table[column] for i, column in enumerate(columns)}, w=weight)
    grouped = chosen.group_by(*(f"v{i}" for i in range(len(columns)))).aggregate(
        n=chosen.w.sum().cast("int64")
    )
    answer = fetch(label, grouped.limit(most + 1))
    if answer.num_rows > most:
        raise TooLarge(
            f"{label}: more than {most:,} distinct values of {list_some(list(names))}; raise the memory limit "
            "(--memory), round them in the database, or read the rows from a file"
        )
    values = [
        check_numbers(label, name, answer[f"v{i}"].to_numpy().astype(np.float64, copy=False))
        for i, name in enumerate(names)
    ]
    return values, as_codes(answer["n"])
