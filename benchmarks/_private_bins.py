"""Private drafts against bins made by hand and equal bins of public bounds, end to end at the same total cost.

The error is the mean, over pairs of columns, of the total variation distance between the real and the synthetic table
of both, on elevenths of the real rows: a grid that none of the three knows. Bins by hand are true quantiles, 10 or 20
of them, whichever is better: more than anybody could know without a look. Equal bins are 20 between public bounds.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import discreet as dc

DELTA = "1e-6"
REPEATS = 3


def compare_bins(folder: Path | None, *, quick: bool, epsilon: float = 1.0) -> tuple[float, float]:
    """The error with a private draft over that of the best bins by hand, and of equal bins; means over tables."""
    over_hand, over_equal = [], []
    for name, frame, bounds in load_tables(folder, quick):
        errors: dict[str, list[float]] = {"private": [], "hand 10": [], "hand 20": [], "equal": []}
        for repeat in range(1 if quick else REPEATS):
            errors["private"].append(
                measure(
                    frame,
                    dc.synthesize(
                        frame, epsilon=epsilon, delta=DELTA, rows=len(frame), rng=repeat, quiet=True
                    ),
                )
            )
            for kind, schema in make_schemas(frame, bounds).items():
                made = dc.Synthesizer(epsilon, DELTA, schema=schema).fit(frame)
                errors[kind].append(measure(frame, made.sample(len(frame), rng=repeat)))
        means = {kind: float(np.mean(found)) for kind, found in errors.items()}
        hand = min(means["hand 10"], means["hand 20"])
        over_hand.append(means["private"] / hand)
        over_equal.append(means["private"] / means["equal"])
        print(
            f"bins of {name}: " + ", ".join(f"{kind} {error:.4f}" for kind, error in means.items()),
            flush=True,
        )
    return float(np.mean(over_hand)), float(np.mean(over_equal))


def load_tables(
    folder: Path | None, quick: bool
) -> list[tuple[str, pd.DataFrame, dict[str, tuple[float, float]]]]:
    """Tables of numbers, made up, from statsmodels and from a folder, with bounds that anybody would call safe."""
    import statsmodels.api as sm

    health = sm.datasets.randhie.load_pandas().data.astype(float)
    fair = sm.datasets.fair.load_pandas().data.astype(float)
    rng = np.random.default_rng(5)
    n = 20_000
    age = rng.gamma(9, 5, n).round()
    income = (np.exp(rng.normal(9.5, 0.8, n) + age / 80)).round(2)
    pressure = (110 + age * 0.4 + rng.normal(0, 14, n)).round()
    costs = np.where(rng.random(n) < 0.35, 0.0, rng.lognormal(5 + age / 50, 1.2)).round(2)
    clinic = pd.DataFrame({"age": age, "income": income, "pressure": pressure, "costs": costs})
    found = [
        ("clinic", clinic, {"age": (0, 150), "income": (0, 1e7), "pressure": (0, 400), "costs": (0, 1e6)}),
        (
            "health",
            health,
            {name: (0.0, 10.0 ** np.ceil(np.log10(health[name].abs().max() + 1) + 0.5)) for name in health},
        ),
        ("fair", fair, dict.fromkeys(fair, (0.0, 100.0))),
    ]
    if folder is not None:
        stones = pd.read_csv(folder / "diamonds.csv")[
            ["carat", "depth", "table", "price", "x", "y", "z"]
        ].astype(float)
        found.append(
            ("diamonds", stones, {name: (0.0, 1e5 if name == "price" else 200.0) for name in stones})
        )
    return found[:1] if quick else found


def make_schemas(frame: pd.DataFrame, bounds: dict[str, tuple[float, float]]) -> dict[str, dc.Schema]:
    """Schemas with bins by hand, from true quantiles, and with equal ones between public bounds."""
    schemas = {}
    for kind in ("hand 10", "hand 20", "equal"):
        attributes = []
        for name in frame.columns:
            values = frame[name].to_numpy()
            low, high = bounds[name]
            if kind == "equal":
                edges = np.linspace(low, high, 21)
            else:
                cuts = np.quantile(values, np.linspace(0, 1, int(kind.split()[1]) + 1), method="inverted_cdf")
                heavy = [cut for cut in np.unique(cuts) if np.mean(values == cut) > 0.05]
                edges = np.unique([*cuts, *heavy, *(cut + 1e-6 for cut in heavy), values.max() + 1e-6])
            edges = edges[np.concatenate([[True], np.diff(edges) > 1e-9])]
            reading = dc.Reading.of(outside="nearest")
            attributes.append(dc.Attribute.binned(name, edges.tolist(), missing="missing", reading=reading))
        schemas[kind] = dc.Schema(tuple(attributes))
    return schemas


def measure(real: pd.DataFrame, drawn: pd.DataFrame) -> float:
    """The mean total variation over pairs of columns, on elevenths of the real rows."""
    distances = []
    for pair in itertools.combinations(real.columns, 2):
        tables = []
        grids = [find_grid(real[name].to_numpy(dtype=float)) for name in pair]
        for frame in (real, drawn):
            codes = [code(frame, name, grid) for name, grid in zip(pair, grids, strict=True)]
            size = [len(grid) + 2 for grid in grids]
            tables.append(
                np.bincount(codes[0] * size[1] + codes[1], minlength=size[0] * size[1]) / len(frame)
            )
        distances.append(0.5 * np.abs(tables[0] - tables[1]).sum())
    return float(np.mean(distances))


def find_grid(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Edges at the elevenths of the rows, halfway to the next number: a value that is a little off keeps its cell."""
    known = np.unique(values)
    near = np.unique(np.quantile(values, np.arange(1, 11) / 11, method="inverted_cdf"))
    after = known[np.minimum(np.searchsorted(known, near) + 1, len(known) - 1)]
    edges = np.unique((near + after)[after > near] / 2)
    # Cells narrower than a thousandth of the range are none that anybody would tell apart.
    wide = np.diff(edges, prepend=-np.inf) > 1e-3 * (known[-1] - known[0])
    return np.asarray(edges[wide])


def code(frame: pd.DataFrame, name: str, grid: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The cell of each number; what is missing, or whose column was left out, is in one of its own."""
    if name not in frame:
        return np.full(len(frame), len(grid) + 1)
    values = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
    return np.where(
        np.isnan(values), len(grid) + 1, np.searchsorted(grid, np.nan_to_num(values), side="right")
    )
