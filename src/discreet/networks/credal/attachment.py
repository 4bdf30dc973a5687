"""Intervals beside the answers of a privately learned network, as far as they cost next to nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.networks.answer import Answer
from discreet.networks.credal.guaranteed import from_noise
from discreet.networks.credal.network import CredalNetwork
from discreet.networks.evidence import Given
from discreet.values.errors import ImpossibleEvidence, NetworkError, TooLarge

if TYPE_CHECKING:
    from discreet.networks.network import Network

COVERAGE = 0.95
"""The coverage of the intervals that are printed unasked."""

MOST_CELLS = 2**20
"""The most measured cells from which intervals are made unasked."""

MOST_LEVELS = 64
"""The most levels, or combinations of levels, that get an interval unasked."""

MOST_WORK = 2**20
"""The most cells that may be worked through for intervals that nobody asked for: some tenths of a second."""


ELSEWHERE = "credal.from_noise (--interval guaranteed) has them."
SLOW = f"No intervals: here they take longer; {ELSEWHERE}"
UNSURE = "No intervals: without the noise, the evidence may never occur."


def surround(network: Network) -> CredalNetwork | str:
    """The credal network around a privately learned one, or a word on why there is none."""
    if network.provenance is None:
        return ""
    lack = explain_lack(network)
    if lack:
        return f"No intervals: {lack}."
    measured = sum(found.cells for found in network.provenance.measurements)
    if measured > MOST_CELLS:
        return f"No intervals: {measured:,} cells were measured; {ELSEWHERE}"
    try:
        return from_noise(network, COVERAGE)
    except NetworkError as error:  # a learner that measured something else than its families
        return f"No intervals: {error}."


def explain_lack(network: Network) -> str:
    """Why a search for the graph left no table to make intervals from, and what to do; empty if it left them all.

    The counts behind a conditional are bounded by a table that holds its whole family. What was fitted to several
    smaller tables has the noise of all of them and the error of the fit, and nothing published bounds that error. And
    where tables were chosen in the light of noise in earlier ones, a bound for a fixed list of tables proves nothing.
    """
    provenance = network.provenance
    if provenance is None:
        return ""
    held = [frozenset(found.axes) for found in provenance.measurements if found.rate == 1]
    unheld = [
        name for name in network.nodes if not any(axes >= set(network.dag.family(name)) for axes in held)
    ]
    if unheld and provenance.details.get("auxiliary"):
        return (
            "none are made through bits or groups of levels; to have them, release with --encoding vanilla, which "
            "costs budget again"
        )
    if provenance.details.get("batches"):  # an adaptive search
        return (
            "the learner adaptive fits small tables together, which it chooses by what earlier ones have shown, and "
            "no bounds are known for the noise in that; to have intervals, release with --graph (this network will "
            "do) or --learner privbayes, which costs budget again"
        )
    return ""


def attach_intervals(credal: CredalNetwork | str, answer: Answer, given: Given | None) -> Answer:
    """The answer with guaranteed intervals, or with a word on why it has none."""
    if isinstance(credal, str):
        return replace(answer, meaning=credal)
    if len(answer) > MOST_LEVELS:
        return replace(
            answer,
            meaning=f"No intervals for more than {MOST_LEVELS} levels; {ELSEWHERE}",
        )
    try:
        found = credal.bound(answer.table.axes, given, method="outer", max_work=MOST_WORK)
    except TooLarge:
        return replace(answer, meaning=SLOW)
    except ImpossibleEvidence:  # within the intervals, though not at the estimate
        return replace(answer, meaning=UNSURE)
    return replace(answer, lower=found.lower, upper=found.upper, meaning=credal.meaning)
