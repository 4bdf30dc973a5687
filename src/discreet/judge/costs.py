"""Whether the costs that a release states can be true: arithmetic that needs nothing but the release."""

from __future__ import annotations

import json
from fractions import Fraction

from discreet.core.mechanism import count_moves, is_covered
from discreet.judge.attacks.published import Published, is_finite
from discreet.values.budget import ZCDP, Budget, Infinite, PureDP, Unit, budget_from_json
from discreet.values.errors import BudgetError, DiscreetError
from discreet.values.law import DiscreteGaussian, DiscreteLaplace
from discreet.values.measurement import Measurement, NoiseLaw


def find_loss(law: NoiseLaw, unit: str) -> PureDP | ZCDP | Infinite:
    """What one table of counts with this noise gives away: ε = Δ₁/s for Laplace, ρ = Δ₂²/2σ² for Gaussian."""
    moves = count_moves(Unit(unit))
    if isinstance(law, DiscreteLaplace):
        return PureDP(sum(moves) / law.scale)
    if isinstance(law, DiscreteGaussian):
        return ZCDP(Fraction(sum(move * move for move in moves)) / (2 * law.sigma2))
    return Infinite()


def check_costs(published: Published) -> tuple[str, ...]:
    """What does not add up, in words: a table that gives away more than it cost, or tables that cost too much."""
    problems: list[str] = []
    costs: list[Budget] = []
    for measurement in published.measurements:
        label = f"the table over ({', '.join(measurement.axes)})"
        problems += [f"{label} {problem}" for problem in _check_domain(published, measurement)]
        try:
            cost = budget_from_json(json.loads(measurement.cost))
        except (BudgetError, ValueError) as error:
            problems.append(f"{label}: its cost cannot be read: {error}")
            continue
        if measurement.rate == 1:  # what sampling makes of a cost is not the table's alone to say
            costs.append(cost)
        loss = find_loss(measurement.law, measurement.unit)
        if isinstance(loss, Infinite):
            if is_finite(published.promise):
                problems.append(
                    f"{label} has no noise, so the release costs ε = ∞ and not {published.promise}"
                )
        elif not isinstance(cost, Infinite) and not is_covered(loss, cost):
            problems.append(
                f"{label} has too little noise for its cost: it gives away {loss}, and cost {cost}"
            )
    if costs and is_finite(published.promise):
        problems += _check_total(costs, published.promise)
    return tuple(problems)


def _check_domain(published: Published, measurement: Measurement) -> list[str]:
    sizes = published.schema.sizes
    problems = []
    strange = [name for name in measurement.axes if name not in sizes]
    if strange:
        problems.append(f"counts {strange[0]!r}, which the schema does not declare")
    elif measurement.noisy.values.shape != tuple(sizes[name] for name in measurement.axes):
        problems.append("has other levels than the schema declares: were they read off the rows?")
    if published.unit is not None and measurement.unit != published.unit:
        problems.append(f"protects {measurement.unit}, the release says {published.unit}")
    return problems


def _check_total(costs: list[Budget], promise: Budget) -> list[str]:
    try:
        total = sum(costs[1:], costs[0])
        covered = total <= promise
    except DiscreetError:
        return [f"the costs of the tables cannot be compared with {promise}: they differ in kind"]
    return [] if covered else [f"the tables cost {total} together, the release says {promise}"]
