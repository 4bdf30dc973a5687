"""Real rows beside synthetic ones, for the custodian alone: marginals, pairs, missing values, rare levels, prediction.

Everything here is computed from private rows, and no budget pays for it; the page says so first.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.compute.metrics import total_variation
from discreet.judge.report_parts.audit_section import warn
from discreet.judge.report_parts.page import assemble, figure
from discreet.judge.report_parts.probability_bars import draw_histogram
from discreet.values.errors import DataError
from discreet.values.schema import Schema
from discreet.values.table import Array, count_cells
from discreet.values.text import list_some, show

Codes = Mapping[str, npt.NDArray[Any]]

RARE = 0.01
"""A level of at most this share of the real rows is rare."""
WIDEST = 10_000
"""Pairs with more cells than this are left out: their distance is that of two samples."""
LISTED = 12
TARGETS = 4
"""So many attributes are predicted unless one is named: those that the others tell most about."""
MOST_CLASSES = 12
TRAINED = 20_000
"""Rows that a model is trained on at most."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """How often a model says the right level of real rows that it has not seen."""

    target: str
    model: str
    from_real: float
    from_synthetic: float
    guess: float
    """The share of the most frequent level, which takes no model."""


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How far synthetic rows are from real ones; all of it is private."""

    rows: tuple[int, int]
    marginals: dict[str, float]
    pairs: dict[tuple[str, str], float]
    missing: dict[str, tuple[float, float]]
    rare: tuple[tuple[str, str, float, float], ...]
    """Attribute, level, real and synthetic share."""
    correlations: dict[tuple[str, str], tuple[float, float]]
    predictions: tuple[Prediction, ...]

    def to_json(self) -> dict[str, Any]:
        """The distances as plain values."""
        return {
            "private": True,
            "rows": list(self.rows),
            "marginal TV": self.marginals,
            "pair TV": [{"pair": list(pair), "TV": found} for pair, found in self.pairs.items()],
            "missing": {name: list(found) for name, found in self.missing.items()},
            "rare": [list(found) for found in self.rare],
            "correlations": [
                {"pair": list(pair), "real": real, "synthetic": made}
                for pair, (real, made) in self.correlations.items()
            ],
            "predictions": [
                {
                    "target": one.target,
                    "model": one.model,
                    "trained on real": one.from_real,
                    "trained on synthetic": one.from_synthetic,
                    "most frequent level": one.guess,
                }
                for one in self.predictions
            ],
        }


def compare_rows(
    real: Codes, made: Codes, schema: Schema, predict: str | None = None, rng: int = 0
) -> Fidelity:
    """The distances of synthetic rows from real ones, both as codes; `predict` names the one attribute to predict."""
    if predict is not None and predict not in schema:
        raise DataError(f"cannot predict {show(predict)}: unknown; the schema has {list_some(schema.names)}")
    sizes, names = schema.sizes, schema.names
    rows = len(real[names[0]]), len(made[names[0]])
    if min(rows) < 2:
        raise DataError(f"there are {rows[0]} real and {rows[1]} synthetic rows; both need at least 2")
    shares = {name: (_count(real, [name], sizes), _count(made, [name], sizes)) for name in names}
    pairs = {
        (one, two): float(total_variation(_count(real, [one, two], sizes), _count(made, [one, two], sizes)))
        for one, two in itertools.combinations(names, 2)
        if count_cells([sizes[one], sizes[two]]) <= WIDEST
    }
    missing = {
        attribute.name: tuple(
            float(found[attribute.code(attribute.missing)]) for found in shares[attribute.name]
        )
        for attribute in schema
        if attribute.missing is not None
    }
    rare = tuple(
        (name, schema[name].levels[k], float(true[k]), float(found[k]))
        for name, (true, found) in shares.items()
        for k in np.flatnonzero((true > 0) & (true <= RARE))
    )
    return Fidelity(
        rows,
        {name: float(total_variation(*found)) for name, found in shares.items()},
        pairs,
        missing,  # type: ignore[arg-type]
        rare,
        _correlate(real, made, schema),
        tuple(_predict(real, made, schema, predict, rng)),
    )


def make_fidelity_page(found: Fidelity, real: Codes, made: Codes, schema: Schema) -> str:
    """The comparison as one page, which is for the custodian alone."""
    mean = sum(found.marginals.values()) / len(found.marginals)
    cards = [
        figure(f"{found.rows[0]:,} · {found.rows[1]:,}", "real · synthetic rows"),
        figure(f"{mean:.4f}", "mean distance of marginals (total variation: 0 is equal, 1 disjoint)"),
    ]
    if found.pairs:
        cards.append(figure(f"{sum(found.pairs.values()) / len(found.pairs):.4f}", "mean distance of pairs"))
    worst = sorted(found.marginals.items(), key=lambda item: -item[1])[:LISTED]
    pairs = sorted(found.pairs.items(), key=lambda item: -item[1])[:LISTED]
    moved = sorted(found.correlations.items(), key=lambda item: -abs(item[1][0] - item[1][1]))[:LISTED]
    rare = sorted(found.rare, key=lambda item: -abs(item[2] - item[3]))[:LISTED]
    parts = [
        warn(),
        "<h1>Real rows beside synthetic ones</h1>",
        f'<div class="figures">{"".join(cards)}</div>',
        "<h2>Marginals</h2>",
        *(_draw_marginal(name, off, real, made, schema) for name, off in worst),
        _write_table(
            "Pairs that are farthest off", ["pair", "distance"],
            [(" × ".join(p), f"{d:.4f}") for p, d in pairs],
        ),
        _write_table(
            "Correlations of numbers", ["pair", "real", "synthetic"],
            [(" × ".join(p), f"{a:+.3f}", f"{b:+.3f}") for p, (a, b) in moved],
        ),
        _write_table(
            "Missing values", ["attribute", "real", "synthetic"],
            [(name, f"{a:.2%}", f"{b:.2%}") for name, (a, b) in found.missing.items()],
        ),
        _write_table(
            "Rare levels", ["attribute", "level", "real", "synthetic"],
            [(name, level, f"{a:.3%}", f"{b:.3%}") for name, level, a, b in rare],
        ),
        _write_table(
            "Prediction of real rows that no model has seen: how often it is right",
            ["target", "model", "trained on real rows", "on synthetic ones", "most frequent level"],
            [
                (p.target, p.model, f"{p.from_real:.3f}", f"{p.from_synthetic:.3f}", f"{p.guess:.3f}")
                for p in found.predictions
            ],
        ),
    ]  # fmt: skip
    return assemble("Real rows beside synthetic ones", [part for part in parts if part])


def _draw_marginal(name: str, off: float, real: Codes, made: Codes, schema: Schema) -> str:
    levels = schema[name].levels
    drawn = "".join(
        f"<div><p class='note'>{what}</p>{draw_histogram(levels, _count(codes, [name], schema.sizes), None)}</div>"
        for what, codes in (("real", real), ("synthetic", made))
    )
    return f'<div class="card"><h3>{escape(name)}: {off:.4f}</h3><div class="two even">{drawn}</div></div>'


def _write_table(title: str, heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    if not lines:
        return ""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>" for line in lines)
    return (
        f"<h2>{escape(title)}</h2><div class='wide'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _count(codes: Codes, names: Sequence[str], sizes: Mapping[str, int]) -> Array:
    """The shares of all cells over a few attributes, in one line."""
    shape = [sizes[name] for name in names]
    index = np.ravel_multi_index([np.asarray(codes[name], dtype=np.intp) for name in names], shape)
    return np.asarray(np.bincount(index, minlength=count_cells(shape)) / len(index))


def _correlate(real: Codes, made: Codes, schema: Schema) -> dict[tuple[str, str], tuple[float, float]]:
    """Pearson's r of numbers, each taken as the middle of its bin, over the rows that have both."""
    middles = {}
    for attribute in schema:
        if attribute.bins is not None:
            middles[attribute.name] = np.append(attribute.bins.middles, np.full(1, np.nan))
    found = {}
    for pair in itertools.combinations(middles, 2):
        both = []
        for codes in (real, made):
            one, two = (middles[name][np.minimum(codes[name], len(middles[name]) - 1)] for name in pair)
            known = np.isfinite(one) & np.isfinite(two)
            varies = known.sum() > 2 and np.ptp(one[known]) > 0 and np.ptp(two[known]) > 0
            both.append(float(np.corrcoef(one[known], two[known])[0, 1]) if varies else 0.0)
        found[pair] = (both[0], both[1])
    return found


def _predict(real: Codes, made: Codes, schema: Schema, predict: str | None, seed: int) -> list[Prediction]:
    """Train on synthetic rows and on half of the real ones, test both on the other half."""
    try:
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder
    except ImportError:
        raise DataError("predictions need scikit-learn; install discreet[sklearn]") from None
    names = list(schema.names)
    if len(names) < 2:
        return []
    fitting = [name for name in names if 2 <= schema[name].size <= MOST_CLASSES]
    targets = [predict] if predict is not None else fitting[-TARGETS:]
    order = np.random.default_rng(seed).permutation(len(real[names[0]]))
    learned, tested = order[: len(order) // 2][:TRAINED], order[len(order) // 2 :][:TRAINED]
    found = []
    for target in targets:
        others = [name for name in names if name != target]
        table, fake = (np.column_stack([codes[name] for name in others]) for codes in (real, made))
        truth = np.asarray(real[target])[tested]
        counts = np.bincount(np.asarray(real[target], dtype=np.intp)[learned])
        for title in ("logistic regression", "trees"):
            right = []
            for rows, answers in (
                (table[learned], np.asarray(real[target])[learned]),
                (fake[:TRAINED], np.asarray(made[target])[:TRAINED]),
            ):
                if len(np.unique(answers)) < 2:
                    right.append(float((truth == answers[0]).mean()))
                    continue
                model: Any = (
                    make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression(max_iter=300))
                    if title != "trees"
                    else RandomForestClassifier(60, min_samples_leaf=3, random_state=seed)
                )
                right.append(float((model.fit(rows, answers).predict(table[tested]) == truth).mean()))
            found.append(
                Prediction(target, title, right[0], right[1], float((truth == counts.argmax()).mean()))
            )
    return found
