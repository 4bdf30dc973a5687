"""One network from the noisy tables of several custodians: counts add up, noises add up, promises stand side by side.

Custodian i publishes n_i + X_i for its own rows; the sum Σ n_i + Σ X_i is a table of all rows with noise of variance
Σ σ_i². It is computed from what is published already, so it costs nothing: whoever is in one table is protected by
that custodian's own promise, and whoever is in several of them by the sum of theirs (sequential composition).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.compute.expectation import ROUNDS
from discreet.learning.custodians.agreement import read_agreed
from discreet.learning.planned import fit_tables, name_tables
from discreet.networks.network import Network
from discreet.networks.provenance import DISJOINT, OVERLAPPING, Provenance, join_budgets
from discreet.values.errors import FormatError
from discreet.values.laws.sums import add_laws
from discreet.values.measurement import Measurement
from discreet.values.statement import Statement
from discreet.values.table import Table
from discreet.values.text import list_some, show

LEARNER = "combined"
MOST_ROWS = 2**53
"""Beyond which a sum of counts is a forgery, and might overflow."""
ESTIMATION = ("prior", "rounds")
"""Options of a part that say how to estimate, and not what to measure: they must be the same in all parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one custodian has published."""

    source: str
    """How messages call it."""
    network: Network

    @property
    def known(self) -> Provenance:
        """Where it comes from."""
        if self.network.provenance is None:
            raise FormatError(f"{self.source}: it does not say where it comes from; a release is needed")
        return self.network.provenance

    @property
    def said(self) -> Statement:
        """The account that paid for it."""
        if self.known.statement is None:
            raise FormatError(f"{self.source}: it does not say which account paid for it")
        return self.known.statement

    @property
    def agreed(self) -> Mapping[str, Any]:
        """The plan that it was made by."""
        options = self.known.details.get("options")
        found = options.get("agreed") if isinstance(options, Mapping) else None
        if self.known.learner != "planned" or not isinstance(found, Mapping):
            raise FormatError(
                f"{self.source}: it was not made by a plan that is shared; make it with "
                "`discreet release --plan plan.json`"
            )
        return found


def combine_parts(parts: Sequence[Part], *, disjoint: bool = False, without: Sequence[str] = ()) -> Network:
    """The network of the sum of all parts; refused if they are not all the parts of one plan.

    `disjoint` is the custodians' word that nobody is in two tables; without it, promises are added up. `without` names
    the custodians of the plan who dropped out.
    """
    if len(parts) < 2:
        raise FormatError(f"2 or more parts are needed to be combined, not {len(parts)}")
    parts = _order(parts, without)
    for part in parts[1:]:
        _require_same(parts[0], part)
    _require_own(parts)
    first = parts[0].network
    measured = tuple(
        _add(found, disjoint) for found in zip(*(part.known.measurements for part in parts), strict=True)
    )
    options = parts[0].known.details["options"]
    rows = [part.said.rows for part in parts]
    public = None if None in rows else sum(count for count in rows if count is not None)
    fit = fit_tables(first.dag, measured, options.get("prior"), public, options.get("rounds", ROUNDS))
    return Network(
        first.schema,
        first.dag,
        name_tables(first.dag, fit),
        provenance=Provenance(
            LEARNER,
            parts[0].known.unit,
            join_budgets([part.known.cost for part in parts], disjoint),
            measured,
            dict(zip(first.dag.nodes, fit.errors, strict=True)),
            {
                "people": DISJOINT if disjoint else OVERLAPPING,
                "without": sorted(without),
                "steps": fit.steps,
            },
            parts=tuple(part.known for part in parts),
        ),
    )


def combine_again(network: Network) -> Network:
    """What `combine_parts` makes of the parts that a combined network lists."""
    known = network.provenance
    assert known is not None
    people, without = known.details.get("people"), known.details.get("without")
    if people not in (DISJOINT, OVERLAPPING) or not isinstance(without, list):
        raise FormatError("the release does not say how it was combined")
    parts = [
        Part(f"part {i}", Network(network.schema, network.dag, network.cpts, provenance=part))
        for i, part in enumerate(known.parts, 1)
    ]
    return combine_parts(parts, disjoint=people == DISJOINT, without=without)


def _add(tables: Sequence[Measurement], disjoint: bool) -> Measurement:
    if (
        max(float(np.abs(table.noisy.values.astype(float)).max()) for table in tables) * len(tables)
        > MOST_ROWS
    ):
        raise FormatError(f"a part counts more than {MOST_ROWS:,} rows, which no table has")
    counts = np.sum([table.noisy.values for table in tables], axis=0)
    law = add_laws([table.law for table in tables])
    cost = join_budgets([table.cost for table in tables], disjoint)
    return Measurement(Table(tables[0].axes, counts), law, tables[0].unit, cost)


def _order(parts: Sequence[Part], without: Sequence[str]) -> list[Part]:
    """The parts in the order of the plan's custodians: each once, none missing but those who dropped out."""
    first = parts[0]
    _, _, names = read_agreed(first.agreed, first.network.dag, first.network.schema.sizes)
    found: dict[str, Part] = {}
    for part in parts:
        if part.agreed != first.agreed:
            raise FormatError(f"{part.source} was made by another plan than {first.source}")
        name = part.said.account
        if name not in names:
            raise FormatError(
                f"{part.source} is from {show(name)}, whom the plan does not name: {list_some(names)}"
            )
        if name in found:
            raise FormatError(
                f"{part.source} and {found[name].source} are both from {show(name)}; one of them is needed"
            )
        found[name] = part
    strange = [name for name in without if name not in names]
    if strange:
        raise FormatError(f"{show(strange[0])} cannot have dropped out: the plan is for {list_some(names)}")
    both = [name for name in without if name in found]
    if both:
        raise FormatError(f"there is a part from {show(both[0])}, who is said to have dropped out")
    missing = [name for name in names if name not in found and name not in without]
    if missing:
        raise FormatError(
            f"the part of {show(missing[0])} is missing; give it, or say --without {missing[0]} if there is none"
        )
    return [found[name] for name in names if name in found]


def _require_same(one: Part, other: Part) -> None:
    """Refuse parts that do not count the same thing."""
    if one.network.schema.to_json() != other.network.schema.to_json():
        raise FormatError(f"{other.source} has another schema than {one.source}")
    if one.network.dag != other.network.dag:
        raise FormatError(f"{other.source} has another graph than {one.source}")
    if one.known.unit != other.known.unit:
        raise FormatError(
            f"{other.source} protects {other.known.unit}, {one.source} {one.known.unit}: such promises do not add up"
        )
    for name in ESTIMATION:
        if one.known.details["options"].get(name) != other.known.details["options"].get(name):
            raise FormatError(f"{other.source} was estimated with another {name} than {one.source}")
    axes = [[found.axes for found in part.known.measurements] for part in (one, other)]
    if axes[0] != axes[1]:
        raise FormatError(f"{other.source} measured other tables than {one.source}")


def _require_own(parts: Sequence[Part]) -> None:
    """Refuse two parts with the same counts, noise and all: one answer under two names would count its rows twice."""
    seen: dict[bytes, Part] = {}
    for part in parts:
        cells = b"".join(
            np.asarray(found.noisy.values, dtype=np.int64).tobytes() for found in part.known.measurements
        )
        if cells in seen:
            raise FormatError(
                f"{part.source} and {seen[cells].source} have the same noisy counts: one of them is a copy of the other"
            )
        seen[cells] = part
