"""What several custodians agree on beforehand: one public file, by which each measures its own rows.

    {"format": "discreet-plan", "version": 1, "schema": {…}, "graph": [["lung", ["smoke"]], …], "unit": "add-remove",
     "cost": {"epsilon": "1"}, "noise": "laplace", "tables": [{"axes": […], "share": "1/3"}, …],
     "custodians": ["north", "south"]}

Tables that are to be added up must be the same tables, so the plan lists them, with each table's share of whatever a
custodian spends. Names of custodians are the names of their accounts. All of it is public, and nothing in it is read
off rows.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.learning.plan import choose_noise, plan
from discreet.networks.formats.documents import (
    MAX_BYTES,
    Kind,
    describe_graph,
    parse_document,
    require_list,
    restore_graph,
)
from discreet.values.budget import Finite, allow, finite_from_json
from discreet.values.errors import FormatError, MechanismError
from discreet.values.files import read_text, write_text
from discreet.values.graph import DAG
from discreet.values.measurement import read_unit
from discreet.values.schema import Schema
from discreet.values.text import read_fraction, require_keys, require_name, show
from discreet.values.unit import Unit

PLAN = Kind(
    "a plan",
    "discreet-plan",
    ("schema", "graph", "unit", "cost", "noise", "tables", "custodians"),
    listed=("tables",),
)
MOST_CUSTODIANS = 1000


@dataclass(frozen=True, slots=True)
class Agreement:
    """Which tables are measured by whom; every custodian may spend another amount, of which the shares are the same."""

    schema: Schema
    dag: DAG
    unit: Unit
    cost: Finite
    """What each custodian spends, unless it says otherwise."""
    noise: str
    tables: tuple[tuple[str, ...], ...]
    shares: tuple[Fraction, ...]
    custodians: tuple[str, ...]

    def __post_init__(self) -> None:
        names = self.custodians
        if not 2 <= len(names) <= MOST_CUSTODIANS or len(set(names)) < len(names):
            raise FormatError(
                f"a plan is for 2 to {MOST_CUSTODIANS:,} custodians with different names, not {list(names)}"
            )
        for name in names:
            require_name("a custodian", name)
        if self.unit.is_open:
            raise FormatError("a plan says how many rows of a person count; give --at-most a number")
        read_agreed(self.describe(), self.dag, self.schema.sizes)

    @classmethod
    def make(
        cls,
        schema: Schema,
        dag: DAG,
        custodians: Sequence[str],
        *,
        spend: Finite,
        unit: Unit,
        noise: str | None = None,
        rows: int | None = None,
    ) -> Agreement:
        """The plan with the least error for the sum: K tables with noise are one table with K times the variance.

        `rows` is a guess of how many rows all custodians have together. The number of rows that one table's noise
        drowns grows with √K, so the plan is made for rows/√K.
        """
        guess = None if rows is None else max(1, round(rows / len(custodians) ** 0.5))
        chosen = choose_noise(spend, noise)
        made = plan(dag, schema, spend=spend, unit=unit, noise=chosen, rows=guess)
        graph = dag.arrange(schema.names)
        return cls(schema, graph, unit, spend, chosen, made.sets, made.shares, tuple(custodians))

    def describe(self) -> dict[str, Any]:
        """What every part says of the plan it was made by: an option of the learner `planned`."""
        return {
            "tables": [
                {"axes": list(axes), "share": str(share)}
                for axes, share in zip(self.tables, self.shares, strict=True)
            ],
            "custodians": list(self.custodians),
        }

    def require_custodian(self, account: str | None) -> None:
        """Refuse an account that the plan does not name."""
        if account not in self.custodians:
            raise FormatError(
                f"the plan is for the accounts {', '.join(self.custodians)}, not {show(account)}; give one of them "
                "with --account"
            )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the plan, all or nothing."""
        document = PLAN.describe(
            schema=self.schema.to_json(),
            graph=describe_graph(self.dag),
            unit=self.unit.value,
            cost=self.cost.to_json(),
            noise=self.noise,
            **self.describe(),
        )
        write_text(path, PLAN.format_text(document))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Agreement:
        """The plan in a file; anything else is refused."""
        return parse_document(read_text(path, MAX_BYTES), os.fspath(path), cls.from_json)

    @classmethod
    def from_json(cls, document: object) -> Agreement:
        """The plan that `write` wrote."""
        found = PLAN.check(document)
        schema = Schema.from_json(found["schema"])
        dag = restore_graph(found["graph"], schema)
        cost = finite_from_json(found["cost"])
        try:
            noise = choose_noise(allow(cost), str(found["noise"]))
        except MechanismError as error:
            raise FormatError(str(error)) from None
        agreed = {"tables": found["tables"], "custodians": found["custodians"]}
        tables, shares, custodians = read_agreed(agreed, dag, schema.sizes)
        return cls(schema, dag, read_unit(found["unit"]), cost, noise, tables, shares, custodians)


Agreed = tuple[tuple[tuple[str, ...], ...], tuple[Fraction, ...], tuple[str, ...]]


def read_agreed(document: object, dag: DAG, sizes: Mapping[str, int]) -> Agreed:
    """The tables, their shares and the custodians of a plan; refused unless the tables answer every family."""
    found = require_keys(document, "what was agreed", ("tables", "custodians"))
    tables, shares = [], []
    for entry in require_list(found["tables"], "the tables of a plan"):
        known = require_keys(entry, "a table of a plan", ("axes", "share"))
        axes = require_list(known["axes"], "the axes of a table of a plan")
        strange = [name for name in axes if not isinstance(name, str) or name not in sizes]
        if strange or len(set(axes)) < len(axes):
            raise FormatError(f"a table of the plan is over {show(axes)}, which are not different attributes")
        tables.append(tuple(axes))
        shares.append(read_fraction(known["share"], "a share of a plan", FormatError))
    if not shares or min(shares) <= 0 or sum(shares) != 1:
        raise FormatError("the shares of a plan's tables must be above 0 and 1 together")
    unheld = [family for family in dag.families() if not any(set(family) <= set(axes) for axes in tables)]
    if unheld:
        raise FormatError(f"no table of the plan holds {', '.join(unheld[0])}")
    names = require_list(found["custodians"], "the custodians of a plan")
    if not all(isinstance(name, str) for name in names):
        raise FormatError(f"the custodians of a plan are names, not {show(names)}")
    return tuple(tables), tuple(shares), tuple(names)
