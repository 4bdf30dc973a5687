"""Everything that discreet refuses, by what was wrong; each message names the thing, the value, what is allowed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class DiscreetError(ValueError):
    """The base of every refusal; the command line prints it as one line and exits with code 2."""


class SchemaError(DiscreetError):
    """A declaration of attributes that does not hold together."""


class DataError(DiscreetError):
    """Rows that do not fit the schema."""


class GraphError(DiscreetError):
    """Edges that are not a directed acyclic graph over the declared attributes."""


class TableError(DiscreetError):
    """Tables whose axes or shapes do not fit each other."""


class NetworkError(DiscreetError):
    """Conditional probability tables that do not fit the graph or are not probabilities."""


class QueryError(DiscreetError):
    """A question that the network cannot answer: an unknown attribute or level, an empty target."""


class ImpossibleEvidence(QueryError):
    """Evidence that has probability zero in the network; `row` is which one of a batch, counted from 1."""

    row: int | None = None


class TooLarge(DiscreetError):
    """A table that would not fit; raised from the number of its cells, before anything is allocated."""


class OutOfTime(DiscreetError):
    """Something that takes longer than it may."""


class FormatError(DiscreetError):
    """A file that is malformed, hostile, or cannot be read or written; with the line where the format has lines."""


class BudgetError(DiscreetError):
    """An amount of privacy that is not a positive finite number, or two kinds that do not add up."""


class Overspent(BudgetError):
    """A spend beyond what the account has left."""


class LedgerError(DiscreetError):
    """A ledger that cannot be read, was tampered with, or belongs to something else."""


class MechanismError(DiscreetError):
    """A mechanism asked for with a sensitivity, scale or unit that it does not have."""


class AirlockError(DiscreetError):
    """A use of the airlock that it refuses: closed, forked, pickled, or an unknown verb argument."""


class SearchWarning(UserWarning):
    """A search for a graph looks at less than it was asked to."""


class PromiseWarning(UserWarning):
    """What weakens a promise from outside, though the command did what was asked."""


class BudgetWarning(UserWarning):
    """What is paid for will say less than one may hope; told before it is paid."""


class MissingExtra(DiscreetError, ImportError):
    """A part of discreet that needs a package which is not installed."""


def import_extra(module: str, what: str, extra: str) -> Any:
    """A module that comes with an extra; without it, a refusal that says what needs it and what to type."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(f"{what} needs more packages ({error}): pip install 'discreet[{extra}]'") from None
