"""The claim of a release on one page: what a board must know, point by point, in words and as data.

The points are those that NIST SP 800-226 asks of whoever claims differential privacy. What follows from the release
is derived from it; what only the custodian knows comes from the custodian's own words (`values.about`), and a point
that nobody has spoken to is listed as open: nothing is filled in silently.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.networks.formats.release import Release, say_likelier
from discreet.networks.provenance import Provenance
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
    "combined": "noisy tables of several custodians, measured by one public plan and added up; conditionals estimated "
    "from the sums",
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

    def find(self, heading: str) -> str:
        """The words under a heading."""
        return next(point.words for point in self.points if point.heading == heading)

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
                f"Open: put {asked} into a TOML file and give it with --about FILE.",
            ]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The claim as plain values; a point that is open is null."""
        return {
            "title": self.title,
            "points": [{"point": point.heading, "words": point.words or None} for point in self.points],
            "open": [point.heading for point in self.open],
        }


def state_claim(release: Release, more: About | None = None) -> Claim:
    """The claim of a release; whether the release adds up is for `verify` to say. `more` are words said since."""
    if not release.provenance.paid:
        raise FormatError("the release does not say which account paid for it, so it claims nothing")
    words = (release.about or About()).fill(more)
    title = words.title or f"Privacy claim of a release from account {release.provenance.name}"
    return Claim(title, tuple(_list_points(release, words)))


def _list_points(release: Release, words: About) -> Iterator[Point]:
    known = release.provenance
    told = known.statements
    yield Point("What it is", words.description, "description")
    yield Point("Whom it is about", words.population, "population")
    yield Point("Which time it covers", words.period, "period")
    yield Point("How the data were collected", words.collection, "collection")
    yield Point("The promise", release.promise)
    yield Point("Variant and parameters", _name_variant(known.promised))
    yield Point("For comparison", _compare(known.promised))
    yield Point("What is protected", _name_unit(told[0]))
    yield Point(
        "Whole budget of the account",
        _say_each(
            known, lambda said, _: f"{said.budget}, set once; it covers every release from this account"
        ),
    )
    yield Point(
        "Spent when this was released",
        _say_each(known, lambda said, part: f"{said.spent}, of which {part.cost} by this release"),
    )
    yield Point("Other releases", _say_each(known, lambda said, part: _tell_others(said, part.cost)))
    revealed = any(isinstance(said.loss, Infinite) for said in told)
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
    yield Point("Where the budget is kept", _say_each(known, lambda said, _: _tell_ledger(said)))
    yield Point(
        "Side channels",
        "Floating point: noise is drawn on whole numbers by exact samplers. Timing: days are published, times are not; "
        "how long the custodian's machine took can be seen by whoever watches it. Engine errors: what cannot be read "
        "or counted is refused before anything is paid, to the custodian alone; nothing of it is in the release.",
    )
    yield Point("What it is for", words.use, "use")
    yield Point("Access and licence", words.licence, "licence")
    yield Point("Contact", words.contact, "contact")


def _say_each(known: Provenance, say: Callable[[Statement, Provenance], str]) -> str:
    """The same of every account; of one alone without its name."""
    if len(known.paid) == 1:
        return say(*known.paid[0])
    words = {said.account: say(said, part) for said, part in known.paid}
    if len(set(words.values())) == 1:
        return f"each of {', '.join(words)}: {next(iter(words.values()))}"
    return "; ".join(f"{name}: {told}" for name, told in words.items())


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
    rest = said.spent - cost
    return (
        f"the account had paid for more than this release: {rest} of the {said.spent} went to other answers"
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
    singles = [law for found in tables for law in (getattr(found.law, "parts", None) or (found.law,))]
    laws = {
        "discrete Gaussian" if isinstance(law, DiscreteGaussian) else "discrete Laplace" for law in singles
    }
    drawn = "in every cell of" if not release.provenance.parts else "by every custodian in every cell of"
    widths = sorted(found.law.variance**0.5 for found in tables)
    return (
        f"{' and '.join(sorted(laws))} {drawn} {len(tables)} tables, standard deviation "
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
        "Clamping: noisy counts are kept at 0 or above, and numbers in bins have the bins' precision. Shrinkage: rare "
        "combinations are drawn towards coarser ones, so very rare levels may look commoner than they are."
    ]
    if bounded := release.provenance.unit.person:
        told.append(f"Of people with many rows (by {bounded}) some rows are left out, so they count less.")
    if alone:
        told.append(f"Published as independent of everything else: {', '.join(alone)}.")
    told.append("What the graph leaves out is not in the network.")
    return " ".join(told)


def _tell_ledger(said: Statement) -> str:
    if not said.durable:
        return "in memory only: nobody can tell what else was asked of the same rows"
    return f"ledger {said.ledger}, {said.events} events, head {said.head[:16]}…"
