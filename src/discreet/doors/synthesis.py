"""One line from a frame to synthetic rows: a private draft for a part of the budget, a release for the rest."""

from __future__ import annotations

import os
import secrets
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from discreet.doors.feasible import warn_of_people
from discreet.doors.presence import find_unheld, forbid_levels
from discreet.doors.private_draft import DEFAULT_DELTA, PrivateDraft, draft_privately, split_spend
from discreet.doors.release import SchemaLike, read_reviewed
from discreet.doors.release import release as make_release
from discreet.rows.draft.prepared import is_loose, prepare
from discreet.values.budget import Finite, PureDP
from discreet.values.errors import BudgetError, DataError
from discreet.values.text import read_fraction

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.doors.release import Release
    from discreet.values.schema import Schema
    from discreet.values.text import Number

SHARE = Fraction(1, 5)
"""What of the budget goes into the draft, if no schema is given."""


class Synthesizer:
    """`fit` learns a release from a frame, `sample` draws frames of the same kind: for those used to scikit-learn.

    `epsilon` and `delta` are the whole cost. Without a `schema` a part of it, `share`, pays for a private draft.
    `ledger`, `account`, `person` and `at_most` are those of `release`; without a ledger nothing remembers what was
    spent. Whether a column of a pandas frame has a NumPy type of integers or of floats can depend on a single missing
    cell, so such types come back only if `keep_types` says that they are public. After `fit`, `schema_`, `release_` and
    `rows_` (about how many rows there were) are public.
    """

    def __init__(
        self,
        epsilon: Number = 1,
        delta: Number | None = DEFAULT_DELTA,
        *,
        schema: SchemaLike | None = None,
        graph: Any = None,
        ledger: Ledger | str | os.PathLike[str] | None = None,
        account: str | None = None,
        person: str | None = None,
        at_most: int | None = None,
        share: Number = SHARE,
        keep_types: bool = False,
    ) -> None:
        self.epsilon, self.delta, self.schema, self.graph = epsilon, delta, schema, graph
        self.ledger, self.account, self.person, self.at_most = ledger, account, person, at_most
        self.share, self.keep_types = share, keep_types

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name, as scikit-learn asks for them."""
        names = [
            "epsilon",
            "delta",
            "schema",
            "graph",
            "ledger",
            "account",
            "person",
            "at_most",
            "share",
            "keep_types",
        ]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> Self:
        """Change parameters by name."""
        for name, value in params.items():
            if name not in self.get_params():
                raise DataError(f"unknown parameter {name!r}; allowed are {', '.join(self.get_params())}")
            setattr(self, name, value)
        return self

    def fit(self, X: Any, y: None = None) -> Self:
        """Draft a schema privately, unless one is given, and learn a release; nothing else is kept of the rows."""
        from discreet.stores.memory import MemoryLedger

        share = read_fraction(self.share, "share", BudgetError)
        if not 0 < share < 1:
            raise BudgetError(f"share must lie between 0 and 1, not {self.share}")
        whole, first, rest = split_spend(self.epsilon, self.delta, share)
        # One ledger for both parts, so that they cannot spend more than the whole together.
        ledger = MemoryLedger() if self.ledger is None else self.ledger
        account = self.account or ("simulation" if self.ledger is None else None)
        place: dict[str, Any] = {"ledger": ledger, "account": account, "budget": whole, "create": True}
        place |= {"person": self.person, "at_most": self.at_most}
        self.draft_: PrivateDraft | None = None
        if self.schema is None:
            if self.person is None:
                warn_of_people(X, (), ledger, account)
            # The release reads what the draft has read, so that no cell can make it refuse what the draft took.
            prepared = prepare(X, self.person)
            self.draft_ = draft_privately(prepared, **place, **_name_kind(first))
            schema, rows = self.draft_.schema, prepared.own
            rest = first + rest - self.draft_.paid
        else:
            schema, rest, rows = read_reviewed(self.schema), first + rest, _as_rows(X)
            if self.person is None and self.ledger is None:
                warn_of_people(X, schema.names, ledger, account)
        self.release_: Release = make_release(rows, schema, self.graph, **place, **_name_kind(rest))
        self.schema_: Schema = self.release_.network.schema
        totals = [float(table.noisy.values.sum()) for table in self.release_.provenance.measurements]
        self.rows_ = max(1, round(float(np.median(totals)))) if totals else 1
        self._shape = _remember(X, self.keep_types)
        # A draft gives every column a level for missing cells, and texts one for others: noise would fill both.
        unheld = [] if self.draft_ is None else find_unheld(self.release_, self.draft_.missing)
        full = [name for name, dtype in self._shape[1].items() if _holds_no_null(dtype)]
        unheld += [(a.name, a.missing) for a in self.schema_ if a.name in full and a.missing is not None]
        self._drawn = forbid_levels(self.release_.network, unheld)
        return self

    def sample(self, n: int | None = None, rng: int | None = None) -> Any:
        """n synthetic rows, by default about as many as there were, in a frame of the kind that was given to `fit`."""
        if not hasattr(self, "release_"):
            raise DataError("fit the synthesizer to a frame first")
        seed = secrets.randbits(63) if rng is None else rng
        drawn = self._drawn.sample(self.rows_ if n is None else n, rng=seed)
        return _restore(drawn, self._shape)

    def explain(self) -> str:
        """What was decided and what it cost, as text."""
        parts = [] if self.draft_ is None else [self.draft_.explain()]
        parts += [self.release_.describe_graph(), self.release_.promise]
        if self.ledger is None:
            parts.append("No ledger was given, so nothing remembers what was spent.")
        return "\n".join(parts)


def synthesize(
    data: Any,
    *,
    epsilon: Number,
    delta: Number | None = DEFAULT_DELTA,
    rows: int | None = None,
    rng: int | None = None,
    quiet: bool = False,
    **options: Any,
) -> Any:
    """Synthetic rows of a frame, in a frame of the same kind and types, for ε and δ in all.

    A private draft of the schema takes a part of the cost, the release the rest: nothing is taken from rows unpaid. δ
    is 1e-6 if none is said; it pays for the levels of texts, and lets spends add up in ρ. `options` are those of
    `Synthesizer`: `schema`, `graph`, `ledger`, `account`, `person`, `at_most`, `share`, `keep_types`. Says what it
    decided, unless `quiet`.
    """
    made = Synthesizer(epsilon, delta, **options).fit(data)
    if not quiet:
        print(made.explain())
    return made.sample(rows, rng)


def _name_kind(amount: Finite) -> dict[str, Any]:
    if isinstance(amount, PureDP):
        return {"epsilon": amount.epsilon}
    return {"rho": next(iter(amount.amounts))}


def _as_rows(data: Any) -> Any:
    from discreet.rows.readers.arrow_tables import read_arrow

    found = read_arrow(data)
    return data if found is None else found


def _holds_no_null(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind in "iub"


def _remember(data: Any, keep: bool) -> tuple[str, Any]:
    """Of which kind a frame is, and the types of its columns where these do not follow from cells; no row."""
    home = type(data).__module__.partition(".")[0]
    if home == "pandas":
        # A categorical type holds its values, also those that nobody was told of.
        return "pandas", {
            name: "category"
            if str(dtype) == "category"
            else dtype
            if not is_loose(dtype) or (keep and dtype.kind in "iufb")
            else None
            for name, dtype in data.dtypes.items()
        }
    if home == "polars":
        import polars as pl

        types = dict(data.collect_schema() if hasattr(data, "collect_schema") else data.schema)
        return "polars", {
            name: pl.Categorical() if isinstance(dtype, pl.Enum) else dtype for name, dtype in types.items()
        }
    if home == "pyarrow":
        return "arrow", {field.name: field.type for field in data.schema}
    return "rows", {}


def _restore(rows: Any, shape: tuple[str, Any]) -> Any:
    """Synthetic rows in a frame of the remembered kind, each column cast to its type where that is possible."""
    kind, types = shape
    if kind == "rows":
        return rows
    if kind == "pandas":
        frame = rows.pandas()
        for name in frame.columns:
            frame[name] = _cast_pandas(frame[name], types.get(name))
        return frame[[name for name in types if name in frame.columns]]
    if kind == "polars":
        frame = rows.polars()
        kept = [name for name in types if name in frame.columns]
        return frame.select(kept).cast({name: types[name] for name in kept}, strict=False)
    table = rows.arrow()
    kept = [name for name in types if name in table.column_names]
    return table.select(kept).cast(_arrow_schema(kept, types), safe=False)


def _arrow_schema(names: list[str], types: dict[str, Any]) -> Any:
    import pyarrow as pa

    return pa.schema([(name, types[name]) for name in names])


def _find_range(dtype: Any) -> tuple[int, int]:
    limits = np.iinfo(getattr(dtype, "numpy_dtype", dtype))
    return int(limits.min), int(limits.max)


def _cast_pandas(column: Any, dtype: Any) -> Any:
    if dtype is None or column.dtype == dtype:
        return column
    if dtype == "category":
        return column.astype("category")
    if _holds_no_null(dtype) and column.isna().any():
        return column
    if dtype.kind in "iu" and not column.dropna().between(*_find_range(dtype)).all():
        return column  # NumPy would turn what is too large into another number
    try:
        return column.astype(dtype)
    except (TypeError, ValueError):
        return column
