"""Whether the costs that a release states can be true: arithmetic that needs nothing but the release."""

from __future__ import annotations

from fractions import Fraction

from discreet.core.mechanism import count_moves, is_covered
from discreet.judge.attacks.subject import Subject
from discreet.values.budget import ZCDP, Budget, Infinite, PureDP
from discreet.values.errors import DiscreetError
from discreet.values.law import DiscreteGaussian, DiscreteLaplace
from discreet.values.measurement import NoiseLaw
from discreet.values.unit import Unit


def check_claims(subject: Subject) -> tuple[str, ...]:
    """What does not add up in a release, in words: losses above their cost, costs above the whole, odd domains."""
    problems: list[str] = []
    costs: list[Budget] = []
    sizes = subject.schema.sizes
    for measurement in subject.measurements:
        label = f"the table over ({', '.join(measurement.axes)})"
        strange = [name for name in measurement.axes if name not in sizes]
        if strange:
            problems.append(f"{label} counts {strange[0]!r}, which the schema does not declare")
        elif measurement.noisy.values.shape != tuple(sizes[name] for name in measurement.axes):
            problems.append(
                f"{label} has other levels than the schema declares: were they read off the rows?"
            )
        if subject.unit is not None and measurement.unit != subject.unit:
            problems.append(f"{label} protects {measurement.unit}, the release says {subject.unit}")
        cost = measurement.cost
        if measurement.rate == 1:  # what sampling makes of a cost is not the table's alone to say
            costs.append(cost)
        loss = find_loss(measurement.law, measurement.unit)
        if isinstance(loss, Infinite):
            if subject.promise is not None and not isinstance(subject.promise, Infinite):
                problems.append(f"{label} is exact, so the release costs ε = ∞ and not {subject.promise}")
        elif not isinstance(cost, Infinite) and not is_covered(loss, cost):
            problems.append(f"{label} loses {loss} by the law of its noise, but says that it cost {cost}")
    if costs and subject.promise is not None and not isinstance(subject.promise, Infinite):
        try:
            total = sum(costs[1:], costs[0])
            covered = total <= subject.promise
        except DiscreetError:
            problems.append(
                f"the costs of the tables cannot be compared with {subject.promise}: they differ in kind"
            )
        else:
            if not covered:
                problems.append(f"the tables cost {total} together, the release says {subject.promise}")
    return tuple(problems)


def find_loss(law: NoiseLaw, unit: str) -> PureDP | ZCDP | Infinite:
    """What one table of counts with this noise loses: ε = Δ₁/s for Laplace, ρ = Δ₂²/2σ² for Gaussian."""
    moves = count_moves(Unit(unit))
    if isinstance(law, DiscreteLaplace):
        return PureDP(sum(moves) / law.scale)
    if isinstance(law, DiscreteGaussian):
        return ZCDP(Fraction(sum(move * move for move in moves)) / (2 * law.sigma2))
    return Infinite()
