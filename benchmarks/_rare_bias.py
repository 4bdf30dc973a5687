"""A rare outcome with two parents of many levels: is it as frequent in the release as in the rows, on average?

Made-up rows, status with 7.6 %; nothing of them was used to choose a constant but the first four settings. Each release
is made by the planned learner through an airlock. Run it by itself for the table: `python benchmarks/_rare_bias.py`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from _running import progress
from discreet.entrance import open_airlock
from discreet.learning.planned import planned
from discreet.papers.parameters.independent import independent
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.schema import Schema

ROWS = 17_549
RATE = 0.076
RELEASES = 30


@dataclass(frozen=True, slots=True)
class Setting:
    """Two parents with so many levels, and how the outcome hangs on them."""

    name: str
    sizes: tuple[int, int]
    fall: float = 0.0
    """The k-th level of a parent is k^−fall times as frequent as the first."""
    effect: float = 0.0
    """How much the log odds of the outcome vary with the parents."""
    tied: float = 0.0
    """How strongly the parents depend on each other; then the graph has the arrow between them."""


SETTINGS = (
    Setting("10 × 10", (10, 10)),
    Setting("20 × 20", (20, 20)),
    Setting("30 × 40", (30, 40)),
    Setting("50 × 50", (50, 50)),
    Setting("50 × 50, uneven levels", (50, 50), fall=1.0),
    Setting("50 × 50, risk varies", (50, 50), effect=1.5),
    Setting("30 × 40, tied parents, risk varies", (30, 40), fall=0.5, effect=1.0, tied=3.0),
)


@dataclass(frozen=True, slots=True)
class Bias:
    """What the releases of one setting say about the outcome, beside the rows."""

    setting: str
    truth: float
    mean: float
    error: float
    """The standard error of the mean."""
    baseline: float
    """What D-Ind says, in one release."""

    @property
    def relative(self) -> float:
        """How far the mean is off, as a part of the truth."""
        return self.mean / self.truth - 1.0

    @property
    def errors_off(self) -> float:
        """How far the mean is off, in standard errors."""
        return (self.mean - self.truth) / self.error


def measure_bias(
    settings: Sequence[Setting] = SETTINGS, releases: int = RELEASES, epsilon: str = "1"
) -> Iterator[Bias]:
    """The bias of the planned learner at each setting."""
    for setting in settings:
        rows = draw_rows(setting, np.random.default_rng(15))
        schema = Schema.of({name: [str(k) for k in range(size)] for name, size in _sizes(setting).items()})
        graph = DAG(("a", "b", "status"), ((), ("a",) if setting.tied else (), ("a", "b")))
        airlock = open_airlock(
            {name: values.astype(str).tolist() for name, values in rows.items()},
            schema,
            budget=PureDP(10**6),
        )
        found = [planned(airlock, graph, spend=epsilon).probability({"status": "1"}) for _ in range(releases)]
        baseline = independent(airlock, graph, spend=epsilon).probability({"status": "1"})
        spread = float(np.std(found, ddof=1)) / releases**0.5
        yield Bias(setting.name, float(rows["status"].mean()), float(np.mean(found)), spread, float(baseline))


def draw_rows(setting: Setting, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Codes of the two parents and the outcome."""
    one, two = (np.linspace(-1.0, 1.0, size) for size in setting.sizes)
    shares = [(1.0 + np.arange(size)) ** -setting.fall for size in setting.sizes]
    joint = np.outer(*shares) * np.exp(-setting.tied * (one[:, None] - two[None]) ** 2)
    joint /= joint.sum()
    odds = setting.effect * (one[:, None] + two[None] + 0.5 * rng.standard_normal(setting.sizes))
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        risk = 1.0 / (1.0 + np.exp(-(odds + middle)))
        low, high = (middle, high) if (joint * risk).sum() < RATE else (low, middle)
    cells = rng.choice(joint.size, ROWS, p=joint.ravel())
    first, second = np.unravel_index(cells, joint.shape)
    return {"a": first, "b": second, "status": (rng.random(ROWS) < risk[first, second]).astype(int)}


def _sizes(setting: Setting) -> dict[str, int]:
    return {"a": setting.sizes[0], "b": setting.sizes[1], "status": 2}


def main() -> None:
    """Print the table and the worst relative bias."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="8 releases of each setting instead of 30")
    releases = 8 if parser.parse_args().quick else RELEASES
    found = []
    with progress("rare outcomes", len(SETTINGS)) as advance:
        for bias in measure_bias(releases=releases):
            found.append(bias)
            advance()
    print(f"{'setting':36} {'rows':>7} {'planned':>8} {'± s.e.':>7} {'off by':>7} {'D-Ind':>7}")
    for bias in found:
        print(
            f"{bias.setting:36} {bias.truth:7.2%} {bias.mean:8.2%} {bias.error:7.2%} "
            f"{bias.errors_off:+7.1f} {bias.baseline:7.2%}"
        )
    print(f"rare_bias: {max(abs(bias.relative) for bias in found):.4f}")
    print(f"rare_bias_errors: {max(abs(bias.errors_off) for bias in found):.2f}")


if __name__ == "__main__":
    main()
