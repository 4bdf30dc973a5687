"""What `discreet plan` predicts for the width of an interval, against the widths of real releases."""

from __future__ import annotations

import numpy as np

from _interval_trials import Source, learn, open_source
from discreet.doors.library import plan
from discreet.judge.widths import predict_width
from discreet.networks.network import Network
from discreet.values.errors import DiscreetError

PLANS = (("asia", 10_000), ("sachs", 20_000), ("child", 50_000))
KINDS = ("guaranteed", "calibrated")


def compare_widths(name: str, rows: int, learner: str, seed: int, questions: int = 8) -> list[list[float]]:
    """Real widths over predicted ones at ε = 1, guaranteed and calibrated; NaN where one is refused.

    A question is an attribute given another that was measured with it, at the level that most rows have or, last, at
    the level that fewest have: the share of these rows is told besides.
    """
    source = open_source(name, rows, seed)
    network = learn(source, learner, "1")
    preview = plan(source.schema, source.dag if learner == "planned" else None, epsilon=1, rows=rows)
    found = []
    for target, given, rare in _ask(source, network, questions, seed):
        counts = source.count((given,))
        code = int(counts.argmin() if rare else counts.argmax())
        level = source.schema[given].levels[code]
        predicted = predict_width(preview, f'P("{target}" | "{given}"="{level}")')
        ratios = []
        for kind in KINDS:
            width = getattr(predicted, kind)
            try:
                answer = network.query(target, {given: level}, intervals=kind)
            except DiscreetError:
                width = None
            ratios.append(float((answer.upper - answer.lower).max() / width) if width else np.nan)
        found.append([float(rare), counts[code] / counts.sum() * counts.size, *ratios])
    return found


def _ask(source: Source, network: Network, count: int, seed: int) -> list[tuple[str, str, bool]]:
    """Pairs of attributes that some measured table holds, each asked about a common level and a rare one."""
    assert network.provenance is not None
    rng = np.random.default_rng(seed)
    wide = [found.axes for found in network.provenance.measurements if len(found.axes) > 1]
    found = []
    for _ in range(count if wide else 0):
        target, given = (str(name) for name in rng.permutation(wide[rng.integers(len(wide))])[:2])
        found += [(target, given, False), (target, given, True)]
    return found
