"""The claim of a release on one page: what a board must know, point by point, in words and as data.

The points are those that NIST SP 800-226 asks of whoever claims differential privacy. What follows from the release
is derived from it; what only the custodian knows comes from the custodian's own words (`values.about`), and a point
that nobody has spoken to is listed as open: nothing is filled in silently.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.networks.formats.release import Release, say_likelier
from discreet.values.about import About
from discreet.values.budget import ZCDP, ApproxDP, Budget, Infinite, PureDP, imply_approx
from discreet.values.errors import FormatError
from discreet.values.measurement import DiscreteGaussian
from discreet.values.statement import Statement

COMPARED = "1e-5"
"""The δ at which every claim is also stated, so that claims can be compared."""
WIDTH = 100
LEARNERS = {
    "planned": "noisy tables by a public plan; conditionals estimated from them",
    "independent": "one noisy table for each family (D-Ind)",
    "dependent": "noisy tables in two stages, the second's noise set by the first (Algorithm 1 of paper 000)",
    "laplace": "a noisy table for each family, added to a prior: a Dirichlet posterior (Algorithm 1 of paper 002)",
    "fourier": "noisy Fourier coefficients of the tables, added to a prior: a Dirichlet posterior (Algorithm 2 of 002)",
    "posterior-sample": "one network drawn from a truncated posterior, whose spread is the noise (Theorem 4 of 002)",
    "map": "a network near the posterior's maximum, by the exponential mechanism (Algorithm 3 of 002, mended)",
    "adaptive": "a private search: tables chosen by noisy scores, measured with noise, a network fitted to them",
    "privbayes": "PrivBayes: parents chosen by noisy scores, then one noisy table for each family",
}


@dataclass(frozen=True, slots=True)
class Point:
    """One thing that a claim must state; `words` are empty where only the custodian can say it and has not."""

    heading: str
    words: str
    ask: str = ""
    """The key of the custodian's words that would fill it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """All points of a release's claim, in the order in which a board asks."""

    title: str
    points: tuple[Point, ...]

    @property
    def open(self) -> tuple[Point, ...]:
        """What the custodian has not said."""
        return tuple(point for point in self.points if not point.words)

    def explain(self) -> str:
        """The claim as a page of plain text."""
        lines = [self.title, "=" * len(self.title), ""]
        for point in self.points:
            lines.append(point.heading)
            words = point.words or "(not stated by the custodian)"
            lines += textwrap.wrap(words, WIDTH, initial_indent="  ", subsequent_indent="  ")
        if self.open:
            asked = ", ".join(dict.fromkeys(point.ask for point in self.open))
            lines += [
                "",
                f"Open: put {asked} into a TOML file and give it to `discreet release --about FILE`.",
            ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The claim as plain values; a point that is open is null."""
        return {
            "title": self.title,
            "points": [{"point": point.heading, "words": point.words or None} for point in self.points],
            "open": [point.heading for point in self.open],
        }


def state_claim(release: Release) -> Claim:
    """The claim of a release; whether the release adds up is for `verify` to say."""
    said = release.provenance.statement
    if said is None:
        raise FormatError("the release does not say which account paid for it, so it claims nothing")
    words = release.about or About()
    title = words.title or f"Privacy claim of a release from account {said.account}"
    return Claim(title, tuple(_list_points(release, said, words)))


def _list_points(release: Release, said: Statement, words: About) -> Iterator[Point]:
    known = release.provenance
    yield Point("What it is", words.description, "description")
    yield Point("Whom it is about", words.population, "population")
    yield Point("Which time it covers", words.period, "period")
    yield Point("How the data were collected", words.collection, "collection")
    yield Point("The promise", release.promise)
    yield Point("Variant and parameters", _name_variant(said.promised))
    yield Point("For comparison", _compare(said.promised))
    yield Point("What is protected", _name_unit(said))
    yield Point(
        "Whole budget of the account", f"{said.budget}, set once; it covers every release from this account"
    )
    yield Point("Spent when this was released", f"{said.spent}, of which {known.cost} by this release")
    yield Point("Other releases", _tell_others(said, known.cost))
    revealed = isinstance(said.loss, Infinite)
    yield Point("Looks without privacy", "rows were looked at without noise" if revealed else "none")
    yield Point("Algorithm", f"{known.learner}: {LEARNERS.get(known.learner, 'see the documentation')}")
    yield Point("Noise", _name_noise(release))
    yield Point("Software", ", ".join(f"{name} {number}" for name, number in release.software.items()))
    yield Point("Expected error", _tell_error(release))
    yield Point("Known bias", _tell_bias(release))
    yield Point(
        "Who may ask what",
        "The release is published once; every answer and every synthetic row is computed from it and costs nothing.",
    )
    yield Point(
        "Against whom",
        "Anyone who sees all that is published from the account, knows everything about everybody else, and has any "
        "computer. The custodian's machine, its operators and its terminal are trusted.",
    )
    yield Point("Where the budget is kept", _tell_ledger(said))
    yield Point(
        "Side channels",
        "Noise is drawn on whole numbers by exact samplers. Times are published as days only. Refusals and messages "
        "are for the custodian. How long the custodian's machine took can be seen by whoever watches it.",
    )
    yield Point("Access and licence", words.licence, "licence")
    yield Point("Contact", words.contact, "contact")


def _name_variant(promised: Budget) -> str:
    match promised:
        case PureDP():
            return f"pure ε-differential privacy, {promised}"
        case ZCDP():
            return f"ρ-zero-concentrated differential privacy, {promised}"
        case ApproxDP():
            return f"(ε, δ)-differential privacy, {promised}"
        case Infinite():
            return "none: ε is infinite"


def _compare(promised: Budget) -> str:
    """The (ε, δ) of a promise at the δ that all claims share."""
    if isinstance(promised, Infinite):
        return "nothing is promised"
    if isinstance(promised, ApproxDP):
        fits = promised.delta <= Fraction(COMPARED)
        at = "so at δ = 10⁻⁵ too" if fits else "δ is above 10⁻⁵, so there is no ε to compare"
        return f"{promised}, {at}"
    found = imply_approx(promised, COMPARED)
    return f"ε ≤ {float(found.epsilon):.3g} at δ = 10⁻⁵: nothing gets more than {say_likelier(float(found.epsilon))}"


def _name_unit(said: Statement) -> str:
    rows = "public" if said.unit.fixes_rows else "private"
    return f"{said.unit.hidden}; the number of rows is {rows} (unit: {said.unit})"


def _tell_others(said: Statement, cost: Budget) -> str:
    if said.spent == cost:
        return "none from this account when this was released; later ones stay within the same budget"
    return (
        f"the account had paid for more than this release; the rest of the {said.spent} went to other answers"
    )


def _name_noise(release: Release) -> str:
    tables = release.provenance.measurements
    if not tables:
        words = {
            "fourier": "discrete Laplace in every Fourier coefficient of the tables",
            "posterior-sample": "none is added: the network itself is drawn at random",
            "map": "none is added: the network itself is drawn at random",
        }
        return words.get(release.provenance.learner, "no table of counts was measured")
    laws = {
        "discrete Gaussian" if isinstance(found.law, DiscreteGaussian) else "discrete Laplace"
        for found in tables
    }
    widths = sorted(found.law.variance**0.5 for found in tables)
    return (
        f"{' and '.join(sorted(laws))} in every cell of {len(tables)} tables, standard deviation "
        f"{widths[0]:.3g}" + (f" to {widths[-1]:.3g}" if widths[-1] > widths[0] * 1.001 else "")
    )


def _tell_error(release: Release) -> str:
    errors = release.provenance.predicted_error
    if not errors:
        return "the learner predicts none; ask for intervals with `discreet query`"
    worst = max(errors, key=lambda name: errors[name])
    mean = sum(errors.values()) / len(errors)
    return (
        f"conditionals are off by {mean:.3g} (L1) on average, most for {worst} ({errors[worst]:.3g}); "
        "every answer comes with its interval"
    )


def _tell_bias(release: Release) -> str:
    network = release.network
    alone = [
        name
        for name in network.dag.nodes
        if not network.dag.parents_of(name) and not network.dag.children_of(name)
    ]
    told = [
        "Noisy counts are kept at 0 or above and rare combinations are drawn towards coarser ones, so very rare levels "
        "may look commoner than they are."
    ]
    if alone:
        told.append(f"Published as independent of everything else: {', '.join(alone)}.")
    told.append("What the graph leaves out is not in the network.")
    return " ".join(told)


def _tell_ledger(said: Statement) -> str:
    if not said.durable:
        return "in memory only: nobody can tell what else was asked of the same rows"
    return f"ledger {said.ledger}, {said.events} events, head {said.head[:16]}…"
