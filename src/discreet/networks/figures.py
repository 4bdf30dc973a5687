"""Figures that people ask for, with intervals: differences, ratios, odds ratios, means, quantiles, counts, sure levels.

Guaranteed intervals hold for all answers at once, so what is computed from two of them holds as surely: the least
difference is that of the lower end and the other's upper end. Calibrated ones are joined by the distances of their ends
from the estimates, squared and added (Zou & Donner 2008); ratios in logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from discreet.networks.answer import Decision, Figure
from discreet.networks.evidence import Given, describe_evidence, encode_sets, require_attribute
from discreet.networks.intervals import VAGUE, Intervals, Whose
from discreet.networks.network import Network
from discreet.values.errors import QueryError
from discreet.values.schema import Attribute
from discreet.values.table import Array
from discreet.values.text import show

Measure = Literal["difference", "ratio", "odds ratio"]
Kind = Intervals | str | None
Subject = Whose | str | None

BINNED = "Numbers are known by their bins only, so its ends are those of bins."


@dataclass(frozen=True, slots=True)
class _Scale:
    """How two probabilities are compared: on which scale they are subtracted, and what that makes of the result."""

    sign: str
    up: Callable[[float], float]
    down: Callable[[float], float]


def _log(p: float) -> float:
    return math.log(p) if p > 0 else -math.inf


def _logit(p: float) -> float:
    return math.inf if p >= 1 else _log(p / (1.0 - p))


def _exp(x: float) -> float:
    return math.inf if x > 700 else math.exp(x)


ONLY_CALIBRATED = (
    'of the world, two answers are compared with calibrated intervals only (intervals="calibrated", --interval '
    "calibrated)"
)
SCALES: Mapping[str, _Scale] = {
    "difference": _Scale("−", float, float),
    "ratio": _Scale("/", _log, _exp),
    "odds ratio": _Scale("/", _logit, _exp),
}


def compare(
    network: Network,
    event: Given,
    given: Given,
    other: Given,
    measure: Measure = "difference",
    *,
    intervals: Kind = None,
    of: Subject = None,
    other_event: Given | None = None,
) -> Figure:
    """How much more probable an event is under some evidence than under other evidence.

    The difference P(event | given) − P(event | other), the ratio of the two, or the ratio of their odds p/(1 − p).
    """
    scale = SCALES.get(measure)
    if scale is None:
        raise QueryError(f"compare by difference, ratio or odds ratio, not by {show(measure)}")
    second = event if other_event is None else other_event
    if (event, given) == (second, other):
        raise QueryError(f"both sides ask for {_show(event, given)}; compare two different questions")
    lack = ""
    if Whose.read(of) is Whose.WORLD and Intervals.read(intervals) is not Intervals.CALIBRATED:
        if intervals is None:
            intervals, lack = Intervals.NONE, f"No intervals: {ONLY_CALIBRATED}."
        if Intervals.read(intervals) is not Intervals.NONE:
            raise QueryError(ONLY_CALIBRATED)
    first = network.query_event(event, given, intervals=intervals, of=of)
    last = network.query_event(second, other, intervals=intervals, of=of)
    what = "P" if measure != "odds ratio" else "odds"
    title = f"{what}({_show(event, given)}) {scale.sign} {what}({_show(second, other)})"
    value = _subtract(scale, first.probability, last.probability)
    if first.lower is None or first.upper is None or last.lower is None or last.upper is None:
        return Figure(title, value, meaning=lack or (first.meaning if first.lower is None else last.meaning))
    if Intervals.read(intervals) is Intervals.CALIBRATED:
        low, high = _join_calibrated(scale, first, last)
    else:
        low, high = _subtract(scale, first.lower, last.upper), _subtract(scale, first.upper, last.lower)
    return Figure(title, value, low, high, _join_meanings(scale, (low, high), first.meaning, last.meaning))


def mean(
    network: Network, name: str, given: Given | None = None, *, intervals: Kind = None, of: Subject = None
) -> Figure:
    """The mean of a number among the rows that have one; of bins, their points or middles are averaged.

    Its interval goes from the mean of the lower edges to that of the upper ones; with an open end there is none.
    """
    attribute, codes, low, high = read_numbers(network, name)
    evidence = _keep_numbers(attribute, codes, given)
    title = _title("mean", name, given)
    weights = np.zeros((3, attribute.size))
    middles = (low + high) / 2.0 if attribute.bins is None else attribute.bins.middles
    if not np.isfinite(middles).all():
        raise QueryError(
            f"{show(name)} has a level that is no finite number, so it has no mean; ask for P({name})"
        )
    weights[2, codes] = middles
    point = network.query(name, evidence, intervals="none").probabilities
    value = float(point @ weights[2])
    if attribute.bins is not None and not (np.isfinite(low).all() and np.isfinite(high).all()):
        reach = " to ".join(f"{end:g}" for end in (attribute.bins.drawn[0], attribute.bins.drawn[-1]))
        lack = f"No interval: {name} has an open end; the mean takes it to go from {reach}, as synthetic rows do."
        return Figure(title, value, meaning=lack)
    weights[:2, codes] = (low, high)
    ends, meaning = _bound(network, name, weights[:2], evidence, intervals, of)
    if ends is None:
        return Figure(title, value, meaning=meaning)
    return Figure(title, value, float(ends[0][0]), float(ends[1][1]), _explain_bins(meaning, low, high))


def quantile(
    network: Network,
    name: str,
    share: float = 0.5,
    given: Given | None = None,
    *,
    intervals: Kind = None,
    of: Subject = None,
) -> Figure:
    """The number below which a share of the rows that have one lie; inside a bin by linear interpolation."""
    if not 0 < share < 1:
        raise QueryError(f"a quantile is that of a share between 0 and 1, such as 0.5, not {share}")
    attribute, codes, low, high = read_numbers(network, name)
    evidence = _keep_numbers(attribute, codes, given)
    title = _title("median" if share == 0.5 else f"quantile {share:g}", name, given)
    below = np.zeros((len(codes), attribute.size))
    for k in range(len(codes)):
        below[k, codes[: k + 1]] = 1.0
    sums = below @ network.query(name, evidence, intervals="none").probabilities
    at = min(int((sums < share - 1e-12).sum()), len(codes) - 1)
    before = float(sums[at - 1]) if at else 0.0
    part = (share - before) / max(float(sums[at]) - before, 1e-12)
    value = (
        float(low[at] + part * (high[at] - low[at]))
        if np.isfinite([low[at], high[at]]).all()
        else (float(low[at]) if np.isfinite(low[at]) else float(high[at]))
    )
    ends, meaning = _bound(network, name, below, evidence, intervals, of)
    if ends is None:
        return Figure(title, value, meaning=meaning)
    first = min(int((ends[1] < share - 1e-12).sum()), len(codes) - 1)
    last = min(int((ends[0] < share - 1e-12).sum()), len(codes) - 1)
    return Figure(title, value, float(low[first]), float(high[last]), _explain_bins(meaning, low, high))


def count(network: Network, event: Given, *, intervals: Kind = None, of: Subject = None) -> Figure:
    """How many rows of the table have these levels; for a release, which says what was measured."""
    if Whose.read(of) not in (None, Whose.TABLE):
        raise QueryError("a count is about the table; ask for the probability of anything else")
    network.require_intervals(Whose.TABLE)
    table = network._intervals.table()
    codes = encode_sets(network.schema, event)
    if not codes:
        raise QueryError("the event is empty; name a level of at least one attribute")
    grain = 1 if network.provenance is None else network.provenance.unit.grain
    value = table.guess_rows() * network.probability(event) / grain
    title = f"count({describe_evidence(event)})"
    kind = Intervals.read(intervals)
    if kind is Intervals.NONE:
        return Figure(title, value)
    *_, lifted = table.lift((), np.ones(1), codes)
    if kind is Intervals.CALIBRATED:
        low, high = (end / grain for end in network._intervals.estimate_count(lifted))
        return Figure(title, value, low, high, network._intervals.tell(Whose.TABLE, list(lifted)))
    least, most = (end / grain for end in table.bound_counts(lifted))
    said = f"{network._intervals.state(Whose.TABLE)} {table.explain(list(lifted))}"
    return Figure(title, value, least, most, said.rstrip())


def decide(network: Network, target: str, given: Given | None = None, *, of: Subject = None) -> Decision:
    """Which levels can be the most probable one: a level is out if the likeliest one is surely more probable."""
    attribute = require_attribute(network.schema, target)
    network.require_intervals(of)
    point = network.query(target, given, intervals="none").probabilities
    best = int(point.argmax())
    others = [code for code in range(attribute.size) if code != best]
    lead = np.zeros((len(others), attribute.size))
    lead[:, best] = 1.0
    lead[np.arange(len(others)), others] = -1.0
    ends, meaning = _bound(network, target, lead, given, None, of)
    left = [best] if ends is not None else list(range(attribute.size))
    if ends is not None:
        left += [code for code, low in zip(others, ends[0], strict=True) if low <= 0]
    levels = tuple(attribute.levels[code] for code in sorted(left, key=lambda code: -point[code]))
    return Decision(target, describe_evidence(given), levels, (attribute.levels[best],), meaning)


def read_numbers(network: Network, name: str) -> tuple[Attribute, list[int], Array, Array]:
    """The levels of an attribute that are numbers, as codes in rising order, and the least and greatest of each."""
    attribute = require_attribute(network.schema, name)
    special = {attribute.missing, attribute.other} - {None}
    codes = [code for code, level in enumerate(attribute.levels) if level not in special]
    if attribute.bins is not None and attribute.dates is None:
        edges = np.array(attribute.bins.edges)
        return attribute, codes, edges[:-1], edges[1:]
    if attribute.dates is not None:
        raise QueryError(f"{show(name)} holds dates, and figures are of numbers; ask for P({name})")
    try:
        values = np.array([float(attribute.levels[code]) for code in codes])
    except ValueError:
        raise QueryError(
            f"{show(name)} holds no numbers: its levels are {', '.join(attribute.levels[:4])}…"
        ) from None
    order = np.argsort(values)
    return attribute, [codes[k] for k in order], values[order], values[order]


def _keep_numbers(attribute: Attribute, codes: list[int], given: Given | None) -> dict[str, Any]:
    evidence = dict(given or {})
    if attribute.name in evidence:
        raise QueryError(f"{show(attribute.name)} is asked for and given; leave out one of the two")
    if len(codes) < attribute.size:
        evidence[attribute.name] = [attribute.levels[code] for code in codes]
    return evidence


def _bound(
    network: Network, name: str, functions: Array, given: Given | None, intervals: Kind, of: Subject
) -> tuple[tuple[Array, Array] | None, str]:
    kind, subject = Intervals.read(intervals), Whose.read(of)
    policy = network._intervals
    if kind is Intervals.NONE or (kind is None and network.provenance is None):
        return None, ""
    if kind is not None or not policy.explain_lack(subject or policy.default):
        network.require_intervals(of)
        return policy.bound([name], functions, encode_sets(network.schema, given), kind, subject)
    return None, f"No intervals: {policy.explain_lack(subject or policy.default)}."


def _subtract(scale: _Scale, first: float, second: float) -> float:
    up, low = scale.up(first), scale.up(second)
    if math.isinf(up) and up == low:
        return math.nan  # 0/0, or infinite odds by infinite odds
    return scale.down(up - low)


def _join_calibrated(scale: _Scale, first: Any, last: Any) -> tuple[float, float]:
    """The ends of a difference of two independent estimates, from their own ends, on the scale."""
    one, low_one, high_one = _place(scale, first)
    two, low_two, high_two = _place(scale, last)
    centre = one - two
    low = centre - math.hypot(one - low_one, high_two - two)
    high = centre + math.hypot(high_one - one, two - low_two)
    return scale.down(low), scale.down(high)


def _join_meanings(scale: _Scale, ends: tuple[float, float], first: str, last: str) -> str:
    """What the interval of a comparison promises: nothing where its ends are the farthest that there are."""
    if ends[0] <= _subtract(scale, 0.0, 1.0) and ends[1] >= _subtract(scale, 1.0, 0.0):
        return first if first.startswith(VAGUE) else VAGUE
    return last if first.startswith(VAGUE) else first


def _place(scale: _Scale, found: Any) -> tuple[float, float, float]:
    point = min(max(found.probability, found.lower), found.upper)
    return scale.up(max(point, 1e-12)), scale.up(found.lower), scale.up(found.upper)


def _explain_bins(meaning: str, low: Array, high: Array) -> str:
    return f"{meaning} {BINNED}" if (low < high).any() else meaning


def _show(event: Given, given: Given) -> str:
    told = describe_evidence(event)
    return f"{told} | {describe_evidence(given)}" if given else told


def _title(verb: str, name: str, given: Given | None) -> str:
    return f"{verb}({name} | {describe_evidence(given)})" if given else f"{verb}({name})"
