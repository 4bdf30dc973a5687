"""What can be refused is refused before anything is paid for, and before an account is opened for it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from discreet.core.queries import Query
from discreet.learning.learner import find_learner
from discreet.learning.rehearsal import Rehearsal
from discreet.networks.formats.digits import DIGITS
from discreet.networks.formats.documents import MAX_BYTES
from discreet.values.budget import ZCDP, Finite, price
from discreet.values.errors import (
    BudgetError,
    BudgetWarning,
    DiscreetError,
    FormatError,
    PromiseWarning,
    TooLarge,
)
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import count_cells
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger

CELL_BYTES = (DIGITS + 8) + 12
"""What a cell takes in a document: a probability such as 1.234567891e-05 with its comma, and a noisy count."""
ATTRIBUTE_BYTES = 1000
"""What an attribute takes besides: its declaration, the heads of its tables, its debits."""
GUESSED_ROWS = 10_000


MOST_EPSILON, MOST_RHO = 700, 100
"""Beyond these the noise is 0 to every digit of a float, and no interval can be computed from it."""


def require_meaningful(spend: Finite) -> None:
    """Refuse an amount that hides nothing: a promise of e^700 is none, and its noise vanishes in rounding."""
    most = MOST_RHO if isinstance(spend, ZCDP) else MOST_EPSILON
    if spend.amounts[0] > most:
        raise BudgetError(
            f"{spend} hides nothing: a release may cost at most {'ρ' if most == MOST_RHO else 'ε'} = {most}; "
            "people are protected by a few units, such as 1"
        )


def estimate_bytes(schema: Schema, dag: DAG | None) -> int:
    """About how long the document of a release will be; without a graph, at least how long."""
    sizes = schema.sizes
    families = [(name,) for name in schema.names] if dag is None else dag.families()
    cells = sum(count_cells([sizes[name] for name in family]) for family in families)
    return CELL_BYTES * cells + ATTRIBUTE_BYTES * len(schema)


def require_possible(schema: Schema, dag: DAG | None) -> None:
    """Refuse constraints that cannot be kept, and a document that would be longer than what anybody's reader takes."""
    if schema.constraints:
        from discreet.compute.constrained import require_narrow

        require_narrow(schema, dag)
    length = estimate_bytes(schema, dag)
    if length <= MAX_BYTES:
        return
    sizes = schema.sizes
    families = [(name,) for name in schema.names] if dag is None else dag.families()
    widest = max(families, key=lambda family: count_cells([sizes[name] for name in family]))
    cells = count_cells([sizes[name] for name in widest])
    raise TooLarge(
        f"the release would take about {length / 2**20:,.0f} MB, and {MAX_BYTES / 2**20:.0f} MB is the most that is "
        f"read: the table of {widest[-1]!r} has {cells:,} cells; give it fewer parents, or attributes fewer levels"
    )


def read_options(options: Mapping[str, Any] | None, schema: Schema, dag: DAG | None) -> dict[str, Any]:
    """The options of a learner; a prior may be a posterior or the path of one, whose α are then given in numbers."""
    from discreet.networks.formats.release import read
    from discreet.networks.posterior import Posterior

    found = dict(options or {})
    prior = found.get("prior")
    if isinstance(prior, str | os.PathLike):
        prior = read(prior)
        if not isinstance(prior, Posterior):
            where = os.fspath(found["prior"])
            raise FormatError(
                f"{where}: a prior is a posterior (.json), which --learner laplace or fourier make"
            )
    if isinstance(prior, Posterior):
        if dag is None:
            raise FormatError("a prior is for the tables of a graph: give the graph, too")
        found["prior"] = prior.pseudo_counts(schema, dag)
    return found


def require_startable(
    schema: Schema,
    dag: DAG | None,
    learner: str,
    options: Mapping[str, Any],
    *,
    spend: Finite,
    budget: Finite | None,
    unit: Unit | None,
) -> None:
    """Refuse what the learner refuses before its first question, so that no account is opened for it."""
    protected = unit or Unit.ADD_REMOVE
    if protected.is_open:
        protected = protected.fix(1)
    whole = budget or spend
    stage = _Doorstep(schema, protected, whole, GUESSED_ROWS)
    graph = [] if dag is None else [dag]
    try:
        find_learner(learner)(stage, *graph, spend=price(spend, whole), request="doorstep", **options)
    except _Asked:
        return


class _Asked(BaseException):
    """A learner has come as far as its first question; not an error, and nobody else may catch it."""


class _Doorstep(Rehearsal):
    """Where a learner gets no answer at all."""

    def answer(self, query: Query[Any], request: str | None) -> NoReturn:
        raise _Asked


def plan_files(out: Path) -> dict[str, Path]:
    """Where each part of a release goes; a place that cannot be written is refused before anything is spent."""
    single = "".join(out.suffixes[-2:]).endswith((".json", ".json.gz"))
    parent = out.parent if single or not out.exists() else out
    if single and out.is_dir():
        raise FormatError(f"{out} is a folder; choose a file, or a folder whose name does not end in .json")
    if not single and out.exists() and not out.is_dir():
        raise FormatError(f"{out} is a file; choose a folder, or a file whose name ends in .json")
    if not parent.is_dir():
        raise FormatError(f"{parent}: no such folder")
    if not os.access(parent, os.W_OK):
        raise FormatError(f"{parent}: you may not write files there")
    if single:
        return {"release": out}
    names = {
        "release": "release.json",
        "network": "network.bif",
        "report": "report.html",
        "explorer": "explorer.html",
    }
    return {part: out / name for part, name in names.items()}


def find_beside(out: Path) -> Path | None:
    """The release that is about to be written over, or the folder that it is in; None if there is none."""
    found = plan_files(out)["release"]
    return found if found.exists() else None


def add_debits(book: Ledger, account: str) -> Finite | None:
    """What this process itself has debited from an account; None if nothing."""
    mine = [entry.cost for entry in book.entries(account) if entry.hash in book.debited]
    return sum(mine[1:], mine[0]) if mine else None


def warn_of_noise(schema: Schema, spend: Finite, budget: Finite | None, unit: Unit | None) -> None:
    """Say before anything is paid that a budget is too small for dependence, and what would help."""
    from discreet.learning.searching.prices import advise_dependence

    protected = unit or Unit.ADD_REMOVE
    advice = advise_dependence(
        schema, spend=price(spend, budget or spend), unit=protected.fix(1) if protected.is_open else protected
    )
    if advice is not None:
        warnings.warn(f"{advice} `discreet plan` shows more.", BudgetWarning, stacklevel=3)


def find_people(
    data: Any,
    known: Collection[str],
    ledger: Ledger | str | os.PathLike[str] | None,
    account: str | None,
    write: str = "--person {} --at-most 4",
) -> str | None:
    """What to say to whoever opens an account of rows on a table with repeated ids; None if there is nothing to say.

    It is for the custodian alone: it follows from the ids without noise.
    """
    from discreet.entrance import find_repeated_id, has_account, name_data

    if getattr(ledger, "durable", ledger is not None):
        assert ledger is not None
        if has_account(ledger, account or name_data(data, durable=True)):
            return None
    try:
        column = find_repeated_id(data, known)
    except DiscreetError:  # what cannot be read is refused where it is opened, in better words
        return None
    return column and (
        f"The column {column!r} repeats. If it names people, somebody has several rows, and a promise about rows "
        f"protects them less. To protect people, use {write.format(column)} (or another number of rows)."
    )


def warn_of_people(
    data: Any,
    known: Collection[str],
    ledger: Ledger | str | os.PathLike[str] | None,
    account: str | None,
) -> None:
    """Say it before the account is opened: its unit is for good."""
    if message := find_people(data, known, ledger, account, 'person="{}", at_most=4'):
        warnings.warn(message, PromiseWarning, stacklevel=3)
