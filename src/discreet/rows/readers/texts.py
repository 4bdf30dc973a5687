"""Which texts may be values of a column that nobody has declared: a rule that looks at one cell alone."""

from __future__ import annotations

from discreet.rows.readers import sources

NULLS = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "none", "?", ".", "-", "#N/A", "<NA>")
"""How missing values are spelled where nobody says it: a public list, whatever the rows hold."""

LONGEST_VALUE = 80
"""A longer text is no level that anybody would declare."""


def count_texts(source: sources.Source, rows: str, column: str) -> dict[str, int]:
    """How many rows hold which text: neither missing, nor too long, nor unprintable."""
    # Grouped by bytes: under a collation, a group of equal texts would be told as any one of its rows spells it.
    query = (
        f"SELECT decode(b), count(*) FROM (SELECT encode(CAST({column} AS VARCHAR)) AS b FROM {rows} "
        f"WHERE length(CAST({column} AS VARCHAR)) <= {LONGEST_VALUE}) GROUP BY b"
    )
    counted = sources.run(source.connection, source.label, query)
    return {str(value): int(held) for value, held in counted if is_value(str(value))}


def is_value(text: str) -> bool:
    """Whether a text may be a level: printable, not empty, and no spelling of a missing value."""
    return text.isprintable() and bool(text.strip()) and text.strip() not in NULLS
