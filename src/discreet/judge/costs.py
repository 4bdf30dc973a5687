"""Whether the costs that a release states can be true: arithmetic that needs nothing but the release."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from discreet.core.mechanism import find_loss, is_covered
from discreet.judge.attacks.published import Published, is_finite
from discreet.papers.parameters.subsample import Subsampling
from discreet.values.budget import Infinite, PureDP
from discreet.values.errors import DiscreetError
from discreet.values.measurement import DiscreteLaplace, Exact, Measurement
from discreet.values.noise_sum import NoiseSum


def check_costs(published: Published) -> tuple[str, ...]:
    """What does not add up, in words: a table that gives away more than it cost, or tables that cost too much."""
    tables = published.measurements
    problems = [*_check_domains(published), *check_noise(tables)]
    if tables and is_finite(published.promise):
        try:
            total = sum((table.cost for table in tables[1:]), tables[0].cost)
            if not total <= published.promise:
                problems.append(f"the tables cost {total} together, the release says {published.promise}")
        except DiscreetError:
            problems.append(f"the tables' costs are of another kind than {published.promise}")
    return tuple(problems)


def check_noise(tables: Sequence[Measurement]) -> Iterator[str]:
    """The tables whose noise gives away more than they cost; those of one secret sample are paid for together."""
    for table in tables:
        law, cost = table.law, table.cost
        law = law.widest if isinstance(law, NoiseSum) else law
        if table.rate < 1 or isinstance(cost, Infinite):
            continue
        if isinstance(law, Exact):
            yield f"{name_table(table)} has no noise, which costs ε = ∞, not {cost}"
        elif not is_covered(loss := find_loss(law, table.unit.moves, cost), cost):
            yield f"{name_table(table)} has too little noise: its {table.law} gives away {loss}, but it cost {cost}"
    for rate in sorted({table.rate for table in tables if table.rate < 1}):
        sample = [table for table in tables if table.rate == rate]
        pure = [
            PureDP(sum(table.unit.moves) / table.law.scale)
            for table in sample
            if isinstance(table.law, DiscreteLaplace)
        ]
        paid = [table.cost for table in sample if isinstance(table.cost, PureDP)]
        if len(pure) < len(sample) or len(paid) < len(sample):
            yield f"{name_table(sample[0])} counts a sample, which can be paid for in pure ε only"
            continue
        lost = Subsampling(rate, sample[0].unit).amplify(sum(pure, PureDP.zero()))
        if not lost <= (total := sum(paid, PureDP.zero())):
            yield f"the tables of the sample at rate {rate} give away {lost}, but cost {total}"


def name_table(table: Measurement) -> str:
    """How problems call a measured table."""
    return f"the table over ({', '.join(table.axes)})"


def _check_domains(published: Published) -> Iterator[str]:
    sizes = published.schema.sizes
    for table in published.measurements:
        strange = [name for name in table.axes if name not in sizes]
        if strange:
            yield f"{name_table(table)} counts {strange[0]!r}, which the schema does not declare"
        elif table.noisy.values.shape != tuple(sizes[name] for name in table.axes):
            yield f"{name_table(table)} has other levels than the schema declares: were they read off the rows?"
        if published.unit is not None and table.unit != published.unit:
            yield f"{name_table(table)} protects {table.unit}, the release says {published.unit}"
