"""What is attacked: a release as far as anybody can read it, brought into one form."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from discreet.judge.attacks.cells import require_rows
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import Budget
from discreet.values.errors import DataError, FormatError
from discreet.values.graph import DAG
from discreet.values.measurement import Measurement
from discreet.values.schema import Schema
from discreet.values.table import Table
from discreet.values.wording import show

if TYPE_CHECKING:
    from discreet.networks.credal_network import CredalNetwork

Columns = Mapping[str, npt.NDArray[Any]]

ROW_ENDINGS = (".csv", ".parquet", ".arrow", ".feather")


@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """The public parts of a release; those that it does not have are None or empty."""

    schema: Schema
    dag: DAG | None = None
    cpts: tuple[Table, ...] | None = None
    lower: tuple[Table, ...] | None = None
    upper: tuple[Table, ...] | None = None
    rows: Columns | None = None
    measurements: tuple[Measurement, ...] = ()
    unit: str | None = None
    promise: Budget | None = None
    """What the release says it cost; None if it says nothing."""
    name: str = "the release"

    @property
    def kind(self) -> str:
        """What was published, in words."""
        if self.rows is not None:
            return "synthetic rows"
        model = "credal network" if self.lower is not None else "network"
        return f"private {model}" if self.promise is not None else f"plain {model}"

    @classmethod
    def of_network(cls, network: Network, name: str = "the network") -> Subject:
        """A network, with its measurements and its cost if it was learned privately."""
        return cls(network.schema, network.dag, network.cpts, name=name)._with(network.provenance)

    @classmethod
    def of_intervals(
        cls,
        schema: Schema,
        dag: DAG,
        lower: tuple[Table, ...],
        upper: tuple[Table, ...],
        *,
        provenance: Provenance | None = None,
        name: str = "the credal network",
    ) -> Subject:
        """A credal network, given by the ends of its intervals; axes are the families, child last."""
        return cls(schema, dag, lower=lower, upper=upper, name=name)._with(provenance)

    @classmethod
    def of_credal(cls, credal: CredalNetwork, name: str = "the credal network") -> Subject:
        """A credal network, with its measurements and its cost if it was made from noisy counts."""
        return cls.of_intervals(
            credal.schema, credal.dag, credal.lower, credal.upper, provenance=credal.provenance, name=name
        )

    @classmethod
    def of_rows(
        cls, schema: Schema, rows: Columns, *, dag: DAG | None = None, name: str = "the rows"
    ) -> Subject:
        """Synthetic rows as codes; `dag` is the graph that an attacker would fit to them."""
        require_rows(name, rows, 1)
        return cls(schema, dag, rows=rows, name=name)

    def _with(self, provenance: Provenance | None) -> Subject:
        if provenance is None:
            return self
        return replace(
            self,
            measurements=tuple(provenance.measurements),
            unit=provenance.unit,
            promise=provenance.cost,
        )


def read_subject(
    path: str | os.PathLike[str], *, schema: Schema | None = None, dag: DAG | None = None
) -> Subject:
    """A release from a file: whatever holds a network, told by its content, or rows together with their schema."""
    name = Path(path).name
    if _find_ending(name) in ROW_ENDINGS:
        if schema is None:
            raise DataError(f"{name}: rows do not say what their columns may hold; give their schema")
        return Subject.of_rows(schema, read_codes(path, schema), dag=dag, name=name)
    from discreet.networks.credal_network import CredalNetwork
    from discreet.networks.formats.model_files import find_network
    from discreet.networks.formats.release import read

    found = read(path)
    if isinstance(found, CredalNetwork):
        return Subject.of_credal(found, name)
    return Subject.of_network(find_network(found, os.fspath(path)), name)


def read_codes(path: str | os.PathLike[str], schema: Schema) -> dict[str, npt.NDArray[Any]]:
    """The rows of a CSV, Parquet or Arrow file as codes; every value is checked against the schema."""
    import pyarrow as pa

    name = Path(path).name
    ending = _find_ending(name)
    if ending not in ROW_ENDINGS:
        raise FormatError(f"{name}: rows are read from {', '.join(ROW_ENDINGS)}, not from {show(ending)}")
    try:
        table = _READ_ROWS[ending](path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{name}: cannot be read: {str(error).splitlines()[0]}") from None
    try:
        codes = schema.encode(table)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    require_rows(name, codes, 1)
    return codes


def _find_ending(name: str) -> str:
    return Path(name.removesuffix(".gz")).suffix.lower()


def _read_csv(path: Any) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    with csv.open_csv(path) as head:
        names = head.schema.names
    texts = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    return csv.read_csv(path, convert_options=texts)


def _read_parquet(path: Any) -> Any:
    from pyarrow import parquet

    return parquet.read_table(path)


def _read_arrow(path: Any) -> Any:
    from pyarrow import feather

    return feather.read_table(path)


_READ_ROWS: dict[str, Callable[[Any], Any]] = {
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
