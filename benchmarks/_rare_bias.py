"""A rare outcome with two parents of many levels: is it as frequent in the release as in the rows, on average?

Made-up rows, status with 7.6 %; nothing of them was used to choose a constant but the first four settings. Each release
is made by the planned learner through an airlock. Run it by itself for the table: `python benchmarks/_rare_bias.py`;
`--rate 0.01 --epsilon 3 --levels 3` are other outcomes and budgets.

Of seven settings without any bias one is more than two standard errors off in every fourth run. So the worst is held
against what seven looks allow, and each release against the sums over its own noisy tables too: they have no bias, and
nearly the same noise, so the mean difference shows a bias that is many times smaller.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from _running import progress
from discreet.compute.consistency import reconcile, weigh_by_precision
from discreet.entrance import open_airlock
from discreet.learning.planned import planned
from discreet.networks.network import Network
from discreet.papers.parameters.independent import independent
from discreet.values.budget import PureDP
from discreet.values.graph import DAG
from discreet.values.schema import Schema

ROWS = 17_549
RATE = 0.076
RELEASES = 200


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
    beyond: float
    """The mean of what the release says less what the sums over its noisy tables say, which have no bias."""
    beyond_error: float

    @property
    def relative(self) -> float:
        """How far the mean is off, as a part of the truth."""
        return self.mean / self.truth - 1.0

    @property
    def errors_off(self) -> float:
        """How far the mean is off, in standard errors."""
        return (self.mean - self.truth) / self.error


def allow_errors(looks: int) -> float:
    """The standard errors that the worst of so many unbiased means exceeds in one run of twenty [Šidák 1967]."""
    return NormalDist().inv_cdf((1.0 + 0.95 ** (1.0 / looks)) / 2.0)


def measure_bias(
    settings: Sequence[Setting] = SETTINGS,
    releases: int = RELEASES,
    epsilon: str = "1",
    rate: float = RATE,
    levels: int = 2,
) -> Iterator[Bias]:
    """The bias of the planned learner at each setting; of three levels the rarest is looked at, 0.3 of the rate."""
    for setting in settings:
        rows = draw_rows(setting, np.random.default_rng(15), rate, levels)
        sizes = {"a": setting.sizes[0], "b": setting.sizes[1], "status": levels}
        schema = Schema.of({name: [str(k) for k in range(size)] for name, size in sizes.items()})
        graph = DAG(("a", "b", "status"), ((), ("a",) if setting.tied else (), ("a", "b")))
        airlock = open_airlock(
            {name: values.astype(str).tolist() for name, values in rows.items()},
            schema,
            budget=PureDP(10**6),
        )
        rarest = str(levels - 1)
        found, sums = np.zeros(releases), np.zeros(releases)
        for i in range(releases):
            learned = planned(airlock, graph, spend=epsilon)
            found[i], sums[i] = learned.probability({"status": rarest}), _sum_noisy(learned)
        truth = float((rows["status"] == levels - 1).mean())
        baseline = independent(airlock, graph, spend=epsilon).probability({"status": rarest})
        errors = [float(np.std(values, ddof=1)) / releases**0.5 for values in (found, found - sums)]
        yield Bias(
            setting.name,
            truth,
            float(found.mean()),
            errors[0],
            float(baseline),
            float((found - sums).mean()),
            errors[1],
        )


def _sum_noisy(learned: Network) -> float:
    """The share of the rarest level in the least-squares fit of the noisy tables."""
    assert learned.provenance is not None
    measured = learned.provenance.measurements
    tables = [found.noisy for found in measured]
    agreed = reconcile(tables, weigh_by_precision(tables, [found.law.variance for found in measured]))
    (sums, *_) = (table.project(["status"]).values for table in agreed if "status" in table.axes)
    return float(sums[-1] / sums.sum())


def draw_rows(
    setting: Setting, rng: np.random.Generator, rate: float = RATE, levels: int = 2
) -> dict[str, np.ndarray]:
    """Codes of the two parents and the outcome; with three levels, 0.3 of those with it are worse."""
    one, two = (np.linspace(-1.0, 1.0, size) for size in setting.sizes)
    shares = [(1.0 + np.arange(size)) ** -setting.fall for size in setting.sizes]
    joint = np.outer(*shares) * np.exp(-setting.tied * (one[:, None] - two[None]) ** 2)
    joint /= joint.sum()
    odds = setting.effect * (one[:, None] + two[None] + 0.5 * rng.standard_normal(setting.sizes))
    low, high = -30.0, 30.0
    for _ in range(60):
        middle = (low + high) / 2
        risk = 1.0 / (1.0 + np.exp(-(odds + middle)))
        low, high = (middle, high) if (joint * risk).sum() < rate else (low, middle)
    cells = rng.choice(joint.size, ROWS, p=joint.ravel())
    first, second = np.unravel_index(cells, joint.shape)
    status = (rng.random(ROWS) < risk[first, second]).astype(int)
    if levels > 2:
        status += status * (rng.random(ROWS) < 0.3)
    return {"a": first, "b": second, "status": status}


def main() -> None:
    """Print the table and the worst relative bias."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"8 releases of each instead of {RELEASES}")
    parser.add_argument("--releases", type=int, default=RELEASES)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--levels", type=int, choices=(2, 3), default=2)
    asked = parser.parse_args()
    releases, found = 8 if asked.quick else asked.releases, []
    with progress("rare outcomes", len(SETTINGS)) as advance:
        for bias in measure_bias(SETTINGS, releases, asked.epsilon, asked.rate, asked.levels):
            found.append(bias)
            advance()
    head = ("setting", "rows", "planned", "± s.e.", "off by", "beyond", "± s.e.", "D-Ind")
    print("{:36} {:>7} {:>8} {:>7} {:>7} {:>8} {:>8} {:>7}".format(*head))
    for bias in found:
        print(
            f"{bias.setting:36} {bias.truth:7.2%} {bias.mean:8.3%} {bias.error:7.3%} {bias.errors_off:+7.1f} "
            f"{bias.beyond:+8.4%} {bias.beyond_error:8.4%} {bias.baseline:7.2%}"
        )
    print(f"rare_bias: {max(abs(bias.relative) for bias in found):.4f}")
    print(f"rare_bias_errors: {max(abs(bias.errors_off) for bias in found):.2f}")
    print(f"rare_bias_errors_allowed: {allow_errors(len(found)):.2f}")
    print(f"rare_bias_beyond_sums: {max(abs(bias.beyond) / bias.truth for bias in found):.5f}")


if __name__ == "__main__":
    main()
