"""What a release shows to anybody, and so to an attacker, brought into one form."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeGuard

from discreet.judge.attacks.codes import Codes, require_rows
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance, find_encoding
from discreet.values.budget import Budget, Finite, Infinite
from discreet.values.errors import BudgetError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.schema.encoding import Encoding
from discreet.values.table import Table
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.networks.credal import CredalNetwork


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The public parts of a release; those that it does not have are None or empty."""

    schema: Schema
    dag: DAG | None = None
    cpts: tuple[Table, ...] | None = None
    lower: tuple[Table, ...] | None = None
    upper: tuple[Table, ...] | None = None
    """The ends of the intervals of a credal network; axes are the families, child last."""
    rows: Codes | None = None
    """Synthetic rows; `dag` is then the graph that an attacker fits to them."""
    measurements: tuple[Measurement, ...] = ()
    unit: Unit | None = None
    promise: Budget | None = None
    """What the release says it cost; None if it says nothing."""
    name: str = "the release"
    encoding: Encoding | None = None
    """Which attributes of the schema follow from others, as bits or groups of their levels; None: none does."""

    @property
    def declared(self) -> Schema:
        """The attributes of rows."""
        return self.schema if self.encoding is None else self.encoding.schema

    def derive(self, codes: Codes) -> Codes:
        """The codes of rows, and of what follows from them in the schema."""
        derived = () if self.encoding is None else self.encoding.derived
        added = {
            found.name: found.lookup()[codes[found.source]] for found in derived if found.name in self.schema
        }
        return {**added, **codes}

    @property
    def kind(self) -> str:
        """What was published, in words."""
        if self.rows is not None:
            return "synthetic rows"
        model = "credal network" if self.lower is not None else "network"
        return f"private {model}" if self.promise is not None else f"plain {model}"

    def __post_init__(self) -> None:
        if self.unit is not None:
            object.__setattr__(self, "unit", Unit.read(self.unit))

    @classmethod
    def of_network(cls, network: Network, name: str = "the network") -> Published:
        """A network, with its measurements and its cost if it was learned privately."""
        return cls(network.schema, network.dag, network.cpts, name=name)._with(network.provenance)

    @classmethod
    def of_credal(cls, credal: CredalNetwork, name: str = "the credal network") -> Published:
        """A credal network, with its measurements and its cost if it was made from noisy counts."""
        shown = cls(credal.schema, credal.dag, lower=credal.lower, upper=credal.upper, name=name)
        return shown._with(credal.provenance)

    @classmethod
    def of_rows(
        cls, schema: Schema, rows: Codes, *, dag: DAG | None = None, name: str = "the synthetic rows"
    ) -> Published:
        """Synthetic rows as codes; `dag` is the graph that an attacker would fit to them."""
        require_rows(name, rows, 1)
        return cls(schema, dag, rows=rows, name=name)

    def promising(self, promise: Finite | None) -> Published:
        """The same with a promise that was made elsewhere; one that the release makes itself cannot be replaced."""
        if promise is None:
            return self
        if self.promise is not None and self.promise != promise:
            raise BudgetError(f"{self.name} itself promises {self.promise}; leave the amount out")
        return replace(self, promise=promise)

    def protecting(self, unit: Unit | None) -> Published:
        """The same for a unit that was stated elsewhere; one that the release states itself cannot be replaced."""
        if unit is None:
            return self
        if self.unit is not None and self.unit != unit:
            raise BudgetError(f"{self.name} itself protects {self.unit}; leave the unit out")
        return replace(self, unit=unit)

    def _with(self, provenance: Provenance | None) -> Published:
        if provenance is None:
            return self
        return replace(
            self,
            measurements=tuple(provenance.measurements),
            unit=provenance.unit,
            promise=provenance.cost,
            encoding=find_encoding(self.schema, provenance),
        )


def is_finite(promise: Budget | None) -> TypeGuard[Finite]:
    """Whether privacy is promised at all: an infinite loss promises nothing."""
    return promise is not None and not isinstance(promise, Infinite)
