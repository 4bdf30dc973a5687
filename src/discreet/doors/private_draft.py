"""A schema drafted for a part of the budget: forms of cells, bins and levels from noisy counts only.

Names and types of columns are public; all else is asked of an airlock. Every column has the same share of the cost:
first for the forms of its cells, where its type does not tell them, then for rounds of counts on finer and finer cells
if it holds numbers or dates, or for the values that enough rows hold if it holds texts.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from discreet.core.queries import Discovery
from discreet.learning.plan import choose_noise
from discreet.learning.refinement import Cells, open_dates, open_numbers
from discreet.rows.draft.prepared import DECIMALS, FORMS, PLACES, Given, Prepared, prepare
from discreet.rows.readers.texts import NULLS
from discreet.values.budget import ApproxDP, Finite, allow, choose_budget, keep_delta, price
from discreet.values.errors import DataError, SchemaError
from discreet.values.measurement import DiscreteLaplace
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.reading import Reading
from discreet.values.text import show
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.values.text import Number

FORM_SHARE = Fraction(1, 10)
"""What a column spends of its share on the forms of its cells."""
ROUNDS = (Fraction(25, 100), Fraction(25, 100), Fraction(20, 100), Fraction(20, 100))
"""What it spends on each round of counts."""
MOST_LEVELS = 50
NEARLY = 0.95
DEFAULT_DELTA = "1e-6"
"""The δ where none is said: a chance of one in a million that more is lost than ε."""


@dataclass(frozen=True, slots=True)
class PrivateDraft:
    """A schema that was paid for, what it cost, and why columns were left out."""

    label: str
    schema: Schema
    left_out: Mapping[str, str]
    cost: Finite
    """What it was allowed to cost."""
    paid: Finite
    """What it did cost, in the kind that the account counts in."""
    request: str
    missing: Mapping[str, tuple[float, float]]
    """How many cells of a column are missing, with noise, and the variance of that noise."""

    def explain(self) -> str:
        """What was decided, column by column."""
        lines = []
        for attribute in self.schema:
            what = (
                f"{len(attribute.bins)} bins"
                if attribute.bins is not None
                else f"{len(attribute.values)} {'level' if len(attribute.values) == 1 else 'levels'}"
            )
            lines.append(f"{attribute.name}: {attribute.type}, {what}")
        lines += [f"{name}: left out, {why}" for name, why in self.left_out.items()]
        return "\n".join(lines)

    def format(self) -> str:
        """The schema as TOML."""
        from discreet.values.schema.formats.toml import write_toml

        left = [f"# {show(name)} is left out: {why}" for name, why in self.left_out.items()]
        head = [f"# Drafted privately from {self.label} for {self.cost}; request {self.request}.", *left, ""]
        return "\n".join(head) + "\n" + write_toml(self.schema)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as TOML."""
        from discreet.values.files import write_text

        write_text(Path(path), self.format())


@dataclass(frozen=True, slots=True)
class _Desk:
    """Where stages of a draft are asked: the rows with their forms, the account, and how the cost is shared."""

    prepared: Prepared
    share: Finite
    """What one column may spend, in the kind that the account counts in."""
    spend: Finite
    key: str
    account: Mapping[str, Any]
    bill: list[Finite]
    """What was paid so far."""

    def measure(
        self, attributes: Sequence[Attribute], part: Fraction, stage: str
    ) -> list[tuple[Any, float, bool]]:
        """One noisy table for each attribute, with the deviation of its noise and whether it is Laplace."""
        from discreet.entrance import open_airlock

        schema = Schema(tuple(attributes))
        cost = self.share * part * len(schema)
        self.bill.append(cost)
        with open_airlock(
            self.prepared.table, schema, spend=self.spend, request=self.key, **self.account
        ) as airlock, airlock.mark("draft"):  # fmt: skip
            found = airlock.measure(
                [(name,) for name in schema.names],
                spend=cost,
                noise=choose_noise(self.share),
                request=f"{self.key}/{stage}",
            )
        return [
            (table.noisy.values, float(np.sqrt(table.law.variance)), isinstance(table.law, DiscreteLaplace))
            for table in found
        ]

    def discover(self, columns: Sequence[Given], part: Fraction, delta: Fraction) -> list[dict[str, int]]:
        """The values of columns of texts that enough rows hold."""
        from discreet.entrance import open_airlock

        names = [column.name for column in columns]
        schema = Schema(tuple(Attribute.of(column.form, FORMS) for column in columns))
        with open_airlock(
            self.prepared.table, schema, spend=self.spend, request=self.key, texts=names, **self.account
        ) as airlock, airlock.mark("draft"):  # fmt: skip
            query = Discovery.price(names, self.share * part * len(names), delta, unit=airlock.unit)
            self.bill.append(query.cost)
            return airlock.ask(query, request=f"{self.key}/values")


def draft_privately(
    data: Any,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    account: str | None = None,
    budget: Finite | None = None,
    unit: Unit | str | None = None,
    person: str | None = None,
    at_most: int | str | None = None,
    create: bool = False,
    request: str | None = None,
) -> PrivateDraft:
    """A schema for a table, paid for like a release: what it says of the rows is differentially private.

    Levels of texts need an account with an ε and a δ. `ledger`, `account` and the rest are those of `release`.
    """
    from discreet.entrance import has_account, open_ledger

    spend = choose_budget(epsilon=epsilon, delta=delta, rho=rho)
    prepared = data if isinstance(data, Prepared) else prepare(data, person)
    columns = [column for column in prepared.columns if not column.left_out]
    if not columns:
        raise SchemaError(f"{prepared.label}: no column looks like an attribute; write the schema by hand")
    if not prepared.table.num_rows:
        raise DataError(f"{prepared.label}: no rows; at least 1 is needed")
    whole = budget or spend
    if isinstance(ledger, str | os.PathLike) and account is not None and has_account(ledger, account):
        with open_ledger(ledger) as opened:
            whole = opened.account(account).budget
    priced = price(spend, whole)
    listed = [[column.name, column.kind] for column in prepared.columns]
    key = request or _name(["draft", account, listed, spend.to_json()])
    asked = Unit.choose(unit, person, at_most)
    place = {"ledger": ledger, "account": account, "budget": budget, "unit": asked, "create": create}
    desk = _Desk(prepared, priced / len(columns), spend, key, place, [])
    kept = keep_delta(whole)
    missing: dict[str, tuple[float, float]] = {}
    forms = _ask_forms(desk, columns, missing)
    cells = _ask_numbers(desk, columns, forms, missing)
    texts = [column for column in columns if forms.get(column.name, (column.kind,))[0] == "text"]
    values = desk.discover(texts, 1 - FORM_SHARE, kept) if texts and kept else [{} for _ in texts]
    left = {column.name: column.left_out for column in prepared.columns if column.left_out}
    found: dict[str, Attribute | None] = {
        column.name: _make_levels(column, told) for column, told in zip(texts, values, strict=True)
    }
    for column in columns:
        if forms.get(column.name, (column.kind,))[0] == "boolean":
            reading = Reading.of(outside="missing")
            found[column.name] = Attribute.of(
                column.name, ["false", "true"], type="boolean", missing="missing", reading=reading
            )
        elif column.name in cells:
            found[column.name] = _make_bins(
                column, cells[column.name], forms.get(column.name, (column.kind,))
            )
    for column in columns:
        if found.get(column.name) is None:
            left[column.name] = (
                "to find the values of its texts needs a δ; give one (--delta, in Python delta=), such as 1e-6, or "
                "declare them"
                if column in texts and not kept
                else "no text in it is held by enough rows to be told for this cost; make a number of a duration or a "
                "time of day"
                if column in texts
                else "no number or date in it is held by enough rows to be told for this cost"
            )
    attributes = [made for column in columns if (made := found.get(column.name)) is not None]
    if not attributes:
        raise SchemaError(
            f"{prepared.label}: no column could be drafted for {spend}; pay more, or write the schema by hand"
        )
    paid = sum(desk.bill[1:], start=desk.bill[0]) if desk.bill else type(priced).zero()
    return PrivateDraft(prepared.label, Schema(tuple(attributes)), left, spend, paid, key, missing)


Form = tuple[str, ...]
"""text; whole; decimal and how many places; date or time and the order of its parts."""


def _ask_forms(
    desk: _Desk, columns: Sequence[Given], missing: dict[str, tuple[float, float]]
) -> dict[str, Form]:
    """What the cells of each column are, where its type does not tell."""
    asked = [column for column in columns if column.form]
    if not asked:
        return {}
    attributes = [Attribute.of(column.form, FORMS) for column in asked]
    measured = desk.measure(attributes, FORM_SHARE, "forms")
    for column, (counts, deviation, _) in zip(asked, measured, strict=True):
        missing[column.name] = float(counts[FORMS.index("missing")]), deviation**2
    return {
        # Laplace noise passes ten of its deviations as seldom as a Gaussian five.
        column.name: read_form(
            dict(zip(FORMS, map(float, counts), strict=True)), deviation * (2 if heavy else 1), column.kind
        )
        for column, (counts, deviation, heavy) in zip(asked, measured, strict=True)
    }


def read_form(counts: Mapping[str, float], deviation: float, kind: str) -> Form:
    """What most cells are, from noisy counts of their forms; what may be noise only counts for nothing."""
    held = {
        form: count if count > 3 * deviation else 0.0 for form, count in counts.items() if form != "missing"
    }
    if kind == "time":
        return (
            ("date",)
            if held["date"] > 0 and held["date"] >= NEARLY * (held["date"] + held["time"])
            else ("time",)
        )
    if kind == "text" and max(held.values()) < min(5 * deviation, counts["missing"]):
        # One of so many forms passes three deviations by chance once in a hundred columns that hold nothing.
        return ("text",)
    numbers = sum(held[form] for form in DECIMALS)
    dates = sum(held[form] for form in ("date", "time", "slashes", "slashes, day first"))
    total = max(1e-9, numbers + dates + held["true or false"] + held["text"])
    if held["true or false"] >= NEARLY * total:
        return ("boolean",)
    if kind == "number" or numbers >= NEARLY * total:
        # One of eight forms passes five deviations by chance once in a hundred thousand times: few cells must pass six.
        most = max(held[form] for form in DECIMALS)
        held = {form: count if count > min(6 * deviation, most / 2) else 0.0 for form, count in held.items()}
        numbers = sum(held[form] for form in DECIMALS)
        places, below = 0, held["whole"]
        while places <= PLACES and below < 0.995 * numbers:
            places += 1
            below += held[DECIMALS[places]] if places <= PLACES + 1 else 0.0
        if kind != "number" and not places:
            return ("whole",)
        return ("decimal", str(places)) if places <= PLACES else ("decimal",)
    if dates >= NEARLY * total:
        form = "time" if held["time"] > 0.5 * dates else "date"
        slashed = held["slashes"] + held["slashes, day first"]
        if slashed < 0.02 * dates:
            return (form,)
        return (form, "dmy" if held["slashes, day first"] > 0.02 * slashed else "mdy")
    return ("text",)


def _ask_numbers(
    desk: _Desk,
    columns: Sequence[Given],
    forms: Mapping[str, Form],
    missing: dict[str, tuple[float, float]],
) -> dict[str, Cells]:
    """Cells of numbers and dates, split and counted again where much is."""
    open_cells: dict[str, Cells] = {}
    by_name = {column.name: column for column in columns}
    for column in columns:
        form = forms.get(column.name, (column.kind,))
        if form[0] in ("date", "time"):
            open_cells[column.name] = open_dates(form[0])
        elif form[0] in ("whole", "decimal"):
            places = 0 if form[0] == "whole" else int(form[1]) if len(form) > 1 else None
            open_cells[column.name] = open_numbers(places)
    done: dict[str, Cells] = {}
    before: dict[str, Cells] = {}
    for i, part in enumerate(ROUNDS):
        if not open_cells:
            break
        attributes = [
            _bin(by_name[name], cells.edges, forms.get(name, (by_name[name].kind,)))
            for name, cells in open_cells.items()
        ]
        measured = desk.measure(attributes, part, f"round {i + 1}")
        following: dict[str, Cells] = {}
        for (name, cells), (counts, deviation, heavy) in zip(open_cells.items(), measured, strict=True):
            found = cells.measure(counts[: len(cells.edges) - 1], deviation, heavy)
            missing[name] = _weigh(missing.get(name), float(counts[-1]), deviation**2)
            done[name] = found.agree(before[name]) if name in before else found
            before[name] = done[name]
            finer = done[name].split()
            if finer is not None:
                following[name] = finer
        open_cells = following
    return done


def _weigh(before: tuple[float, float] | None, count: float, variance: float) -> tuple[float, float]:
    """Two noisy counts of the same as one, by their precision."""
    if before is None or variance + before[1] <= 0:
        return count, variance
    known, noise = before
    return (count * noise + known * variance) / (noise + variance), noise * variance / (noise + variance)


def _bin(column: Given, edges: Sequence[float], form: Form) -> Attribute:
    """An attribute with these edges that takes every cell: beyond them the nearest counts, what is none is missing."""
    reading = Reading.of(
        nulls=NULLS if column.kind == "text" else (),
        outside="nearest",
        order=form[1] if form[0] in ("date", "time") and len(form) > 1 else None,  # type: ignore[arg-type]
    )
    if form[0] in ("date", "time"):
        moments = form[0] == "time"
        return Attribute.dated(
            column.name,
            edges=[_write_moment(edge, moments) for edge in edges],
            moments=moments,
            missing="missing",
            reading=reading,
        )
    return Attribute.binned(column.name, edges, missing="missing", reading=reading)


def _make_bins(column: Given, cells: Cells, form: Form) -> Attribute | None:
    edges = cells.cut()
    if edges is None:
        return None
    made = _bin(column, edges, form)
    if form[0] not in ("whole", "decimal"):
        return made
    whole = form[0] == "whole"
    decimals = None if whole else int(form[1]) if len(form) > 1 else PLACES
    try:
        return Attribute.binned(
            column.name,
            cells.pin(edges),
            type="integer" if whole else "decimal",
            decimals=decimals,
            missing="missing",
            reading=made.reading,
        )
    except SchemaError:
        return replace(made)


def _make_levels(column: Given, told: Mapping[str, int]) -> Attribute | None:
    levels = sorted(list(told)[:MOST_LEVELS])
    if not levels:
        return None
    names = ["other", "missing"]
    for i, name in enumerate(names):
        while name in levels:
            name = f"{name} value"
        names[i] = name
    reading = Reading.of(nulls=[null for null in NULLS if null not in levels])
    return Attribute.of(column.name, levels, other=names[0], missing=names[1], reading=reading)


def _write_moment(count: float, moments: bool) -> str:
    seconds = count if moments else count * 86_400
    moment = datetime(1970, 1, 1) + timedelta(seconds=int(seconds))
    return str(moment) if moments else str(moment.date())


def _name(question: object) -> str:
    text = json.dumps(question, sort_keys=True, default=str)
    return f"draft-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def split_spend(epsilon: Number, delta: Number | None, share: Fraction) -> tuple[Finite, Finite, Finite]:
    """The whole budget, and the parts of it for the draft and for the release, in the kind that the account counts."""
    whole = choose_budget(epsilon=epsilon, delta=delta)
    allowed = allow(
        whole if not isinstance(whole, ApproxDP) or whole.delta else choose_budget(epsilon=epsilon)
    )
    first, rest = allowed.split([share, 1 - share])
    return whole, first, rest
