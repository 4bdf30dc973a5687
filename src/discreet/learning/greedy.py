"""Learn the graph, too: PrivBayes' greedy search, one private choice for each attribute [004, Alg. 2]."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from discreet.learning.learner import count_rows, noise_for
from discreet.learning.parent_sets import (
    MOST_CANDIDATES,
    Bounds,
    Coarser,
    Edge,
    Knowledge,
    choose_degree,
    choose_room,
    limit_degree,
    list_candidates,
)
from discreet.values.errors import BudgetError, MechanismError, SearchWarning, TooLarge
from discreet.values.graph import DAG
from discreet.values.measurement import DiscreteGaussian, Measurement
from discreet.values.patience import require_time
from discreet.values.schema.encoding import Encoding, Kind
from discreet.values.text import Number, read_positive

if TYPE_CHECKING:
    from discreet.core.mechanism import Selection
    from discreet.core.queries import Keeper, Spend
    from discreet.core.scores import Score
    from discreet.values.budget import Finite

ScoreName = Literal["R", "I", "F"]
Progress = Callable[[int, int, str], None]
"""Called with the steps done, the steps in all, and what was decided last."""

COUNT_SHARE = "1/20"
"""What a private number of rows costs of a search's budget: it only has to be right within a few percent."""
MOST_DEGREE = 8
"""The largest degree that is ever chosen unasked: the number of families grows with its power."""
FAMILY_CELLS = 2**24
"""Cells of all families together that are ever chosen unasked: they are measured at once."""
MOST_VERSIONS = 2**16
"""Candidates of one choice where parents have coarser versions: those are many, and few are worth a look."""


@dataclass(frozen=True, slots=True)
class Pick:
    """One choice of the search: a family, and among how many it was chosen; 1 where nothing was asked of the rows."""

    child: str
    parents: tuple[str, ...]
    candidates: int


@dataclass(frozen=True, slots=True, eq=False)
class Structure:
    """A graph that was found privately, how, and what it cost; all of it is public."""

    dag: DAG
    """Over the declared attributes, and over what the encoding needs beside them."""
    order: tuple[str, ...]
    """The attributes that were searched, as they were placed."""
    picks: tuple[Pick, ...]
    bounds: Bounds
    cost: Finite
    encoding: Encoding
    rows: float | None = None
    """The number of rows that the bounds rest on, public or noisy."""
    measurements: tuple[Measurement, ...] = ()
    details: dict[str, Any] = field(default_factory=dict)

    def families(self) -> tuple[tuple[str, ...], ...]:
        """The families that were searched and that follow from no other, parents in order, then the child."""
        every = [(*pick.parents, pick.child) for pick in self.picks]

        def follows(one: Sequence[str], other: Sequence[str]) -> bool:
            return all(self.encoding.holds(name, other) is not None for name in one)

        return tuple(
            family
            for i, family in enumerate(every)
            if not any(
                follows(family, other) and (j < i or not follows(other, family))
                for j, other in enumerate(every)
                if j != i
            )
        )

    def to_json(self) -> dict[str, Any]:
        """What a release keeps of the search, as plain JSON values."""
        return {
            "order": list(self.order),
            "degree": self.bounds.degree,
            "cells": self.bounds.cells,
            "candidates": [pick.candidates for pick in self.picks],
            "cost": self.cost.to_json(),
            **({} if self.encoding.kind == "vanilla" else {"encoding": self.encoding.kind}),
            **self.details,
        }


def greedy(
    airlock: Keeper,
    *,
    spend: Spend,
    tables: Spend | None = None,
    score: ScoreName = "R",
    encoding: Kind = "vanilla",
    k: int | None = None,
    theta: Number = 4,
    selection: Selection | str | None = None,
    required: Iterable[Edge] = (),
    forbidden: Iterable[Edge] = (),
    order: Sequence[str] | None = None,
    start: DAG | None = None,
    rows: float | None = None,
    rng: np.random.Generator | int | None = None,
    request: str | None = None,
    progress: Progress | None = None,
) -> Structure:
    """Add attributes one by one, each with the parents that privately score best [004, Alg. 2].

    `tables` is the budget that the tables will get (by default as much as the search). From it and n, θ-usefulness
    sets the bounds if `k` is not given: a degree for binary data [004, Lemma 3], else cells ≤ n/(θ·noise) with maximal
    parent sets. Under add-remove that n is a paid, noisy count, unless `rows` says what is publicly known of it.
    `order` fixes who comes next, `start` what is placed already. The first attribute is drawn without looking at rows,
    by `rng`, the request id, or the operating system. An attribute that no parents fit is left without, and what its
    choice would have cost stays unspent: see `cost`.

    `encoding` says what is searched: the attributes, the bits of their codes, or the attributes with parents that may
    be groups of a taxonomy; there bounds on cells apply even if `k` is given.
    """
    from discreet.core.mechanism import choose_selection

    usefulness = float(read_positive(theta, "θ", MechanismError))
    if rows is not None and not (isinstance(rows, int | float) and 0 < rows < math.inf):
        raise MechanismError(f"rows must be a number above 0, not {rows!r}")
    rows = (
        None if rows is None else rows * airlock.unit.grain
    )  # cells are in parts of a person who is averaged
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or k < 0):
        raise MechanismError(f"k must be a whole number, 0 or more, not {k!r}")
    encoded = Encoding.of(encoding, airlock.schema)
    knowledge = Knowledge.read(encoded, required, forbidden, order, start)
    whole = airlock.read_spend(spend)
    drawn = choose_selection(whole, selection)  # refused before anything is paid
    names = knowledge.names
    coarser: Coarser = {name: encoded.parts(name) for name in names} if encoding == "hierarchical" else {}
    spent = whole - whole
    counted: tuple[Measurement, ...] = ()
    with look_through(airlock, encoded) as view:
        judge = open_score(score, view)
        placed, picks = _begin(view, knowledge, rng, request)
        left = len(names) - len(placed)
        if not left or k == 0 or (k is not None and not coarser):
            bounds = _fix_degree(k or 0, knowledge)
            view.check(knowledge.list_largest(view.schema.sizes, bounds.degree if left else 0))
        else:
            view.check(knowledge.list_largest(view.schema.sizes, None))
            if rows is None:
                rows, spent, counted = count_rows(view, whole * COUNT_SHARE, request and f"{request}/rows")
            rest = whole if tables is None else airlock.read_spend(tables)
            bounds = find_bounds(view, names, coarser, rows, rest, usefulness)
            bounds = bounds if k is None else replace(bounds, degree=min(k, bounds.degree))
        for step in range(left):
            require_time()
            share = (whole - spent) / (left - step)
            choice = request and f"{request}/{len(placed)}"
            pick, cost = _extend(view, judge, placed, knowledge, bounds, coarser, share, drawn, choice)
            spent = spent + cost
            picks.append(pick)
            placed.append(pick.child)
            if progress is not None:
                progress(step + 1, left, f"{', '.join(pick.parents) or '—'} → {pick.child}")
    _, graph = encoded.extend({pick.child: pick.parents for pick in picks})
    return Structure(
        DAG.build(graph),
        tuple(placed),
        tuple(picks),
        bounds,
        spent,
        encoded,
        rows,
        counted,
        {"search": "greedy", "score": score, "theta": usefulness, "selection": str(drawn)},
    )


@contextmanager
def look_through(airlock: Keeper, encoding: Encoding) -> Iterator[Keeper]:
    """The airlock behind the attributes of an encoding, for as long as it is needed."""
    if encoding.kind == "vanilla":
        yield airlock
        return
    view = airlock.encode(encoding)
    try:
        yield view
    finally:
        view.close()


def _fix_degree(k: int, knowledge: Knowledge) -> Bounds:
    """The bounds of a degree that somebody has set, refused if it gives too many families to choose from."""
    attributes = len(knowledge.names)
    degree = min(k, attributes - 1)
    most = limit_degree(attributes, degree)
    if most < degree and knowledge.order is None:
        raise TooLarge(
            f"k={degree} gives more than {MOST_CANDIDATES:,} families to choose from; with {attributes} attributes "
            f"k can be at most {most}"
        )
    return Bounds(degree, None)


def open_score(name: str, airlock: Keeper) -> Score:
    """The score of this name; refused, before anything is paid, where it has no bounded sensitivity."""
    from discreet.core.scores import IndependenceDistance, MaximumDistance, MutualInformation

    kinds: dict[str, Callable[[], Score]] = {
        "R": IndependenceDistance,
        "I": MutualInformation,
        "F": MaximumDistance,
    }
    if name not in kinds:
        raise MechanismError(f"the score must be R, I or F, not {name!r}")
    if name == "F" and (wide := [found for found in airlock.schema if found.size != 2]):
        raise MechanismError(
            f"F is for attributes of 2 levels; {wide[0].name!r} has {wide[0].size}: use R, or the binary encoding"
        )
    if name == "I" and not airlock.unit.fixes_rows:
        raise MechanismError(
            "the score I has no bounded sensitivity under add-remove; use R or F, or the unit replace-one"
        )
    return kinds[name]()


def find_bounds(
    airlock: Keeper, names: Sequence[str], coarser: Coarser, rows: float, tables: Finite, theta: float
) -> Bounds:
    """The bounds that keep the tables θ-useful: mean count in a cell ≥ θ·mean absolute noise [004, Sec. 4.6]."""
    sizes = airlock.schema.sizes
    attributes = len(names)
    if {sizes[name] for name in names} == {2}:
        most = min(attributes - 1, MOST_DEGREE)
        noise = {k: expect_noise(airlock, tables / (attributes - k)) for k in range(1, most + 1)}
        wanted = choose_degree(rows, noise, theta)
        degree = limit_degree(attributes, wanted)
        if degree < wanted:
            warnings.warn(
                f"θ = {theta:g} allows k = {wanted}; with {attributes} attributes k = {degree} is the most whose "
                "families can all be looked at, and is taken",
                SearchWarning,
                stacklevel=2,
            )
        return Bounds(degree, None)
    room = choose_room(rows, expect_noise(airlock, tables / attributes), theta)
    room = min(room, FAMILY_CELLS // attributes)
    if not coarser:
        return Bounds(limit_degree(attributes, MOST_DEGREE), room)
    heights = [1 + len(coarser.get(name, ())) for name in names]
    return Bounds(limit_degree(attributes, MOST_DEGREE, MOST_VERSIONS, heights), room)


def expect_noise(airlock: Keeper, share: Finite) -> float:
    """The mean absolute noise in a cell of a table that gets this share."""
    from discreet.core.mechanism import Noise, calibrate_counts

    (mechanism,) = calibrate_counts([()], share, unit=airlock.unit, noise=Noise(noise_for(share)))
    law = mechanism.law
    return math.sqrt(law.variance * (2 / math.pi if isinstance(law, DiscreteGaussian) else 0.5))


def _begin(
    airlock: Keeper, knowledge: Knowledge, rng: np.random.Generator | int | None, request: str | None
) -> tuple[list[str], list[Pick]]:
    """What is placed before the first choice: the given graph, or one attribute at random [004, Alg. 2, line 2]."""
    if knowledge.start is not None and len(knowledge.start):
        nodes = knowledge.start.order
        if knowledge.order is not None:
            nodes = knowledge.order[: len(nodes)]
        return list(nodes), [Pick(name, knowledge.start.parents_of(name), 1) for name in nodes]
    firsts = knowledge.firsts()
    if rng is not None:
        first = firsts[int(np.random.default_rng(rng).integers(len(firsts)))]
    else:
        first = airlock.toss(firsts, request=request)
    return [first], [Pick(first, (), 1)]


def _extend(
    airlock: Keeper,
    judge: Score,
    placed: Sequence[str],
    knowledge: Knowledge,
    bounds: Bounds,
    coarser: Coarser,
    share: Finite,
    selection: Selection,
    request: str | None,
) -> tuple[Pick, Finite]:
    """The next family and what its choice cost, which is nothing where there was no choice."""
    sizes = airlock.schema.sizes
    families: list[tuple[str, ...]] = []
    if bounds.degree:
        families = list_candidates(placed, knowledge, sizes, bounds, coarser=coarser)
    choices = [family for family in families if len(family) > 1]
    free = share - share
    if not choices:
        child = knowledge.nexts(placed)[0]
        return Pick(child, knowledge.needs(child), 1), free
    if len(choices) == 1:
        return Pick(choices[0][-1], choices[0][:-1], 1), free
    if share.is_zero:
        raise BudgetError("the search has no budget left for its choices; give it more")
    index = airlock.select(choices, judge, spend=share, selection=selection, request=request)
    family = choices[index]
    return Pick(family[-1], family[:-1], len(choices)), share
