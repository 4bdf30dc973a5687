"""Whether the costs that a release states can be true: arithmetic that needs nothing but the release."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from discreet.core.mechanism import is_covered
from discreet.judge.attacks.published import Published, is_finite
from discreet.papers.parameters.subsample import Subsampling
from discreet.values.budget import ZCDP, Budget, Infinite, PureDP
from discreet.values.errors import DiscreetError
from discreet.values.measurement import DiscreteGaussian, DiscreteLaplace, Measurement, NoiseLaw
from discreet.values.unit import Unit


def find_loss(law: NoiseLaw, unit: Unit) -> PureDP | ZCDP | Infinite:
    """What one table of counts with this noise gives away: ε = Δ₁/s for Laplace, ρ = Δ₂²/2σ² for Gaussian."""
    moves = unit.moves
    if isinstance(law, DiscreteLaplace):
        return PureDP(sum(moves) / law.scale)
    if isinstance(law, DiscreteGaussian):
        return ZCDP(Fraction(sum(move * move for move in moves)) / (2 * law.sigma2))
    return Infinite()


def find_sample_loss(tables: Sequence[Measurement]) -> PureDP | None:
    """What tables of one secret sample give away, ln(1 + β(e^ε − 1)); None if that is not known of their noise."""
    losses = [find_loss(table.law, table.unit) for table in tables]
    pure = [loss for loss in losses if isinstance(loss, PureDP)]
    if len(pure) < len(losses):
        return None
    return Subsampling(tables[0].rate, tables[0].unit).amplify(sum(pure, PureDP.zero()))


def check_costs(published: Published) -> tuple[str, ...]:
    """What does not add up, in words: a table that gives away more than it cost, or tables that cost too much."""
    problems: list[str] = []
    tables = published.measurements
    for table in tables:
        problems += [f"{_name(table)} {problem}" for problem in _check_domain(published, table)]
        if table.rate == 1:
            problems += _check_table(published, table)
    for rate in sorted({table.rate for table in tables if table.rate < 1}):
        problems += _check_sample([table for table in tables if table.rate == rate])
    if tables and is_finite(published.promise):
        problems += _check_total([table.cost for table in tables], published.promise)
    return tuple(problems)


def _name(table: Measurement) -> str:
    return f"the table over ({', '.join(table.axes)})"


def _check_domain(published: Published, table: Measurement) -> list[str]:
    sizes = published.schema.sizes
    problems = []
    strange = [name for name in table.axes if name not in sizes]
    if strange:
        problems.append(f"counts {strange[0]!r}, which the schema does not declare")
    elif table.noisy.values.shape != tuple(sizes[name] for name in table.axes):
        problems.append("has other levels than the schema declares: were they read off the rows?")
    if published.unit is not None and table.unit != published.unit:
        problems.append(f"protects {table.unit}, the release says {published.unit}")
    return problems


def _check_table(published: Published, table: Measurement) -> list[str]:
    loss, cost = find_loss(table.law, table.unit), table.cost
    if isinstance(loss, Infinite):
        if is_finite(published.promise):
            return [f"{_name(table)} has no noise, so the release costs ε = ∞ and not {published.promise}"]
    elif not isinstance(cost, Infinite) and not is_covered(loss, cost):
        return [f"{_name(table)} has too little noise for its cost: it gives away {loss}, and cost {cost}"]
    return []


def _check_sample(tables: Sequence[Measurement]) -> list[str]:
    """The tables of one secret sample are paid for together, because sampling protects them together."""
    loss = find_sample_loss(tables)
    pure = [table.cost for table in tables if isinstance(table.cost, PureDP)]
    if loss is None or len(pure) < len(tables):
        return [f"{_name(tables[0])} counts a sample, which can be paid for in pure ε only"]
    total = sum(pure, PureDP.zero())
    if loss <= total:
        return []
    return [f"the tables of the sample at rate {tables[0].rate} give away {loss}, and cost {total}"]


def _check_total(costs: Sequence[Budget], promise: Budget) -> list[str]:
    try:
        total = sum(costs[1:], costs[0])
        covered = total <= promise
    except DiscreetError:
        return [f"the costs of the tables cannot be compared with {promise}: they differ in kind"]
    return [] if covered else [f"the tables cost {total} together, the release says {promise}"]
