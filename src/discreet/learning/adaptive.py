"""Adaptive search: measure next what the model so far gets most wrong, as long as that is more than the noise.

The idea is that of AIM and MST (McKenna et al.): small tables, chosen one after the other by their error under the
model of all that was measured before. Here the model is a junction tree of bounded size, fitted anew after each batch
of choices, and what is released is the Bayesian network that it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from discreet.compute.cliques.model import CliqueModel, ModelTree
from discreet.learning.greedy import Progress, look_through
from discreet.learning.learner import count_rows, stated
from discreet.learning.privbayes import privbayes
from discreet.learning.searching.attribute_sets import (
    MANY_ATTRIBUTES,
    MOST_CANDIDATES,
    Candidates,
    Set,
    Turns,
    keep_near,
    limit_alone,
    list_candidates,
    list_links,
    list_pairs,
    prune,
)
from discreet.learning.searching.prices import (
    MODEL_CELLS,
    Prices,
    Rates,
    cover_small,
    ends_search,
    is_smooth,
    leaves_open,
    price_aimed,
    price_choice,
    price_singles,
    price_unit,
    read_part,
    share_room,
    suit_rates,
)
from discreet.learning.searching.state import Search
from discreet.networks.network import Network
from discreet.values.errors import GraphError, MechanismError, TooLarge
from discreet.values.patience import require_time
from discreet.values.table import Array

if TYPE_CHECKING:
    from discreet.core.queries import Keeper, Spend

MOST_EFFORT = 8
"""Eight times the candidates still fit into memory."""
COUNT_PART = Fraction(1, 50)
"""What a private number of rows costs; prices only need it within a few percent."""
SPARE = 1.5
"""So many times the price of the noise that is aimed at is enough for the first tables, if others are linked for it."""
LAST_PART = Fraction(1, 20)
"""A rest below this is not worth spreading over all sets."""


@stated
def adaptive(
    airlock: Keeper,
    *,
    spend: Spend,
    sets: Iterable[Sequence[str]] = (),
    target: str | None = None,
    width: int = 5,
    effort: int = 1,
    model_cells: int = MODEL_CELLS,
    rates: Rates | None = None,
    request: str | None = None,
    progress: Progress | None = None,
) -> Network:
    """Learn a network by measuring, again and again, what the model of all measured so far gets most wrong.

    `sets` are attribute sets that matter most, or that people know to belong together: they are measured without a
    choice. With a `target`, to be predicted from the rest, so are its pairs with all others. `width` is the most
    attributes that a choice puts together. An `effort` of 2 or more looks at as many times more candidates, and cuts ρ
    into more tables; it is a number and not a time, because no clock may decide what is published. All cliques of the
    model together have at most `model_cells` cells, which is checked before anything is allocated.

    Pure ε is spent on Laplace noise and permute-and-flip, ρ on Gaussian noise and the exponential mechanism; together
    exactly `spend`. Where rows are few for the noise, attributes are left independent; in ρ, where they are not quite
    as few, the search is PrivBayes' greedy one, and in pure ε it is asked first whether a search is worth it. A small
    table, of at most 2¹⁷ cells, needs no choice in pure ε: a few sets, wider than `width` if that is cheaper, hold all
    of its pairs, and what noise explains of them is left out.
    """
    if isinstance(width, bool) or not isinstance(width, int) or width < 2:
        raise MechanismError(f"the width must be a whole number, 2 or more, not {width!r}")
    if isinstance(effort, bool) or not isinstance(effort, int) or not 1 <= effort <= MOST_EFFORT:
        raise MechanismError(f"the effort must be a whole number from 1 to {MOST_EFFORT}, not {effort!r}")
    if target is not None and target not in airlock.schema.names:
        raise GraphError(f"the target {target!r} is not an attribute of the schema")
    if rates is not None and not isinstance(rates, Rates):
        raise MechanismError(f"rates must be Rates of discreet.learning.searching.prices, not {rates!r}")
    schema, whole = airlock.schema, airlock.read_spend(spend)
    prices = Prices.of(whole, airlock.unit)
    rates = suit_rates(rates or Rates(), schema)
    rates = replace(rates, most=rates.most * (1 + effort) / 2)
    search = Search(airlock, whole, request, rates, prices, share_room(model_cells, len(schema)))
    pairs = [(target, name) for name in schema.names if name != target] if target else []
    kept = list(sets)
    given = _read_sets(search, [*kept, *pairs], model_cells)
    singles = [(name,) for name in schema.names]
    if len(schema) == 1:
        search.measure(singles, search.left)
        model = search.fit()
    else:
        links = list_links(search.sizes)
        airlock.check(links)  # a choice will look at them, and nothing may be refused once rows are paid for
        search.rows, cost, counted = count_rows(airlock, whole * COUNT_PART, request and f"{request}/rows")
        search.measured += counted
        search.left -= Fraction(0) if cost.is_zero else COUNT_PART
        typical = _find_typical(search.sizes)
        covered = [] if given else cover_small(prices, search.sizes, search.rows, search.rates, model_cells)
        spread = search.rows / prices.noise(1, 1 / len(schema))
        few, free = spread < search.rates.signal, not given and not covered
        if prices.gaussian:
            apart = few and spread < max(typical / search.rates.hopeless, search.rates.scarce)
        else:
            apart = few or typical > search.rates.lost * spread
            if free and not apart and links[1:] and leaves_open(spread, typical, len(schema), search.rates):
                apart = not search.is_worth(links, typical)
        if free and (few or apart):
            return _search_greedily(search, 0 if apart else None, progress)
        if covered:
            model = _add(search, covered, search.left, thinned=True)
            if progress is not None:
                progress(len(covered), len(covered), "all pairs measured")
        else:
            search.measure(
                singles, price_singles(prices, list(search.sizes.values()), search.rows, search.rates)
            )
            unit = price_unit(prices, typical, search.rows, float(search.left), len(schema), search.rates)
            levels = search.find_alike(frozenset(name for members in kept for name in members), unit)
            search.group(search.find_groups(levels))
            given = prune(tuple(search.grouping.names[name] for name in members) for members in given)
            alone = [(name,) for name in search.grouping.groups]
            with look_through(airlock, search.grouping.encoding) as search.airlock:
                model = search.fit()
                beside = sum(prices.weigh(search.count_cells(found)) for found in alone)
                unit = price_unit(
                    prices, typical, search.rows, float(search.left), len(schema), search.rates, beside
                )
                search.prices = replace(prices, unit=unit)
                if alone:  # how levels are spread inside their groups, no other table will tell
                    search.measure(alone, read_part(min(unit * beside, float(search.left) / 2)))
                    model = search.fit()
                if given:
                    part = sum(search.prices.table(search.count_cells(found)) for found in given)
                    model = _add(search, given, read_part(min(part, float(search.left) / 2)))
                model = _grow(search, model, typical, (width, effort), model_cells, bool(given), progress)
    return search.make_network(model)


def _find_typical(sizes: Mapping[str, int]) -> float:
    """The cells of a typical pair."""
    return float(np.median([one * other for one, other in itertools.combinations(sizes.values(), 2)]))


def _search_greedily(search: Search, k: int | None, progress: Progress | None) -> Network:
    """PrivBayes with what is left: where the noise is large, one choice for each attribute is the most that pays."""
    rest = search.whole * search.left
    request = search.request and f"{search.request}/greedy"
    rows = search.rows / search.airlock.unit.grain
    found = privbayes(search.airlock, spend=rest, k=k, rows=rows, request=request, progress=progress)
    known = found.provenance
    assert known is not None
    sets = [list(table.axes) for table in known.measurements]
    told = replace(
        known,
        learner="adaptive",
        cost=search.whole,
        measurements=(*search.measured, *known.measurements),
        details={**known.details, "sets": sets, "batches": [], "choices": search.choices},
    )
    return replace(found, provenance=told)


def _grow(
    search: Search,
    model: CliqueModel,
    typical: float,
    reach: tuple[int, int],
    model_cells: int,
    given: bool,
    progress: Progress | None,
) -> CliqueModel:
    """Choose and measure batch after batch until nothing is worth its noise; then the rest goes to all sets.

    In pure ε, a batch that would need all that is left to have the noise aimed at gets it, with the attributes that are
    in no set, and is the last; not where most pairs are of numbers.
    `reach` is the width and the effort. Sets that were given stay linked, whatever they show.
    """
    width, effort = reach
    step = max(2, round(search.rates.batch * len(search.sizes)))
    # A smooth dependence is known better than its cells, and many pairs with noise say more of it than few without.
    whole = not search.prices.gaussian and not is_smooth(search.grouping.schema)
    last: list[Set] = []
    while True:
        require_time()
        pairs = list_pairs(search.sizes, min(search.most_cells, search.prices.reach(float(search.left))))
        if search.chosen and len(search.sizes) > MANY_ATTRIBUTES:
            pairs = keep_near(pairs, model.tree)
        most = step if search.chosen else len(search.sizes) - 1
        batch = _choose_batch(  # what is expected is many megabytes, and held by nobody when the next is worked out
            search,
            list_candidates(
                model, search.chosen, width, pairs, search.allows, search.sizes, MOST_CANDIDATES * effort
            ),
            most,
            typical,
            model_cells,
        )
        if not batch:
            break
        cost = sum(search.prices.table(search.count_cells(found)) for found in batch)
        aimed = price_aimed(search.prices, typical, search.rows, search.rates)
        wanted = cost * aimed / search.prices.table(typical)
        ends = whole and float(search.left) <= max(cost, wanted)
        if ends:  # one table of a whole ε is less noisy, by √2, than two that have half of it each
            last = _record(search, batch)
        else:
            model = _add(search, batch, min(read_part(cost), search.left))
        if progress is not None:
            spent = 1.0 if ends else 1 - float(search.left)
            progress(round(100 * spent), 100, ", ".join(" × ".join(found) for found in batch))
        small = [len(found) for found in search.batches[given:]]
        if ends or ends_search(len(search.sizes), small, step, effort):
            break
    if search.left > 0:
        linked = {name for found in search.chosen for name in found}
        names = search.grouping.names.items()
        alone = [(name,) for name, seen in names if seen not in linked or seen != name]
        if not last and search.left < LAST_PART:
            last, alone = [max([*search.chosen, *alone], key=search.count_cells)], []
        search.measure([*(last or search.chosen), *alone], search.left)
    return search.fit(thinned=not given)


def _choose_batch(
    search: Search, expected: dict[Set, Array], most: int, typical: float, model_cells: int
) -> list[Set]:
    """Sets to be measured together: none links what the others link, for there the model is about to change."""
    part = price_choice(search.prices, typical, search.rows, search.rates)
    candidates = Candidates(expected, search.sizes, search.rows)
    many = len(search.sizes) > MANY_ATTRIBUTES
    turns = Turns(search.sizes) if many and not search.chosen else None
    batch: list[Set] = []
    cost = 0.0
    tree = ModelTree.plan(search.sizes, search.chosen)
    # Where tables are far better than aimed at, one of many cells must not keep others from being linked at all.
    aimed = price_aimed(search.prices, typical, search.rows, search.rates)
    stretch = 1.0 if search.chosen else max(1.0, search.prices.table(typical) / (SPARE * aimed))
    while len(batch) < most:
        require_time()
        # All together have a last word: those who came first may be linked to nothing.
        if turns and not turns.left:
            turns, most = None, min(most, len(batch) + limit_alone(search.sizes))
            continue
        near = turns.call(batch) if turns else frozenset[str]()
        if turns and not near:
            break
        candidates.drop_oversized(tree, model_cells)
        left = float(search.left - part)
        fitting = candidates.find_fitting(batch, search.prices.table, left - cost, near)
        if not fitting.size:
            fitting = candidates.find_fitting(batch, search.prices.table, stretch * left - cost, near)
        i = search.choose(candidates, fitting, part) if fitting.size else None
        if i is None:
            if turns is None:
                break
            turns.leave_out(near)
            continue
        found = candidates.sets[i]
        grown = tree.add(found) if many else tree
        if not many or grown.cells > model_cells:
            grown = ModelTree.plan(search.sizes, [*search.chosen, *batch, found])
        if grown.cells > model_cells:
            # Rare: the bounds are of trees that could be made, and the one that is made has a few cells more.
            candidates.drop(i)
            tree = ModelTree.plan(search.sizes, [*search.chosen, *batch]) if many else tree
            continue
        tree = grown
        batch.append(found)
        cost += search.prices.table(candidates.tables[i].size)
    return batch


def _add(search: Search, batch: Sequence[Set], part: Fraction, *, thinned: bool = False) -> CliqueModel:
    """Measure a batch and fit the model again."""
    search.measure(_record(search, batch), part)
    return search.fit(thinned=thinned)


def _record(search: Search, batch: Sequence[Set]) -> list[Set]:
    """Count a batch among what was chosen."""
    search.batches.append(list(batch))
    search.chosen = prune([*search.chosen, *batch])
    return list(batch)


def _read_sets(search: Search, sets: Iterable[Sequence[str]], model_cells: int) -> list[Set]:
    """The given sets, refused before anything is spent if they are unknown or too large for the model."""
    given = prune(tuple(members) for members in sets)
    for members in given:
        strange = [name for name in members if name not in search.sizes]
        if strange or len(members) < 2 or len(set(members)) < len(members):
            raise GraphError(
                f"a given set has two or more attributes of the schema, each once, not {members}"
            )
    cells = ModelTree.plan(search.sizes, given).cells
    if cells > model_cells:
        what = "the given sets" if given else f"{len(search.sizes)} single attributes"
        raise TooLarge(f"a model of {what} would have {cells:,} cells; allowed are {model_cells:,}")
    return given
