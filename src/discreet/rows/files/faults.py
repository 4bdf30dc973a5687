"""What an engine says of a file that it cannot read, in one line."""

from __future__ import annotations


def shorten(error: Exception) -> str:
    """DuckDB's message without its advice on how to read the file more loosely."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    first = lines[0].partition("Error: ")[2] or lines[0]
    if not first.startswith("CSV Error on Line"):
        return first[:300]
    where = f"line {first.rpartition(':')[2].strip()}"
    for line in lines[1:]:
        if line.startswith("Expected Number of Columns"):
            wanted, _, found = line.partition("Found:")
            return f"{where}: {found.strip()} columns; the header has {wanted.rpartition(':')[2].strip()}"
        if "unicode" in line.lower():
            return f"{where}: not UTF-8 text; say what it is behind the name, such as '?encoding=cp1252'"
        if "quote" in line and not line.startswith(("*", "Original")):
            return f"{where}: a quoted value is not closed, or is followed by other text"
        if "line size" in line.lower():
            return f"{where}: the line is too long"
    return f"{where}: not a row of a CSV file"
