"""A table with very many columns of all kinds, as a survey or a registry exports it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd


def write_wide(file: Path, columns: int, rows: int = 5000) -> None:
    """Write a CSV file with so many columns: answers, measurements, counts, dates, codes."""
    rng = np.random.default_rng(1)
    kinds = (
        lambda: rng.integers(0, 5, rows),
        lambda: rng.normal(50, 10, rows).round(2),
        lambda: rng.choice(["yes", "no", "don't know", ""], rows),
        lambda: rng.integers(0, 2000, rows),
        lambda: pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, rows), "D"),
        lambda: rng.choice([f"code {i}" for i in range(30)], rows),
    )
    pd.DataFrame({f"q{i}": kinds[i % len(kinds)]() for i in range(columns)}).to_csv(file, index=False)
