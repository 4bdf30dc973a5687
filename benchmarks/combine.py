"""Several custodians, one network: is the noise of the sum what it should be, and what do shares of noise save?

Variance: K custodians measure a table of 10,000 cells each, by one plan; the noise in the sum is held against K·σ².
Shares: the error of a network from shares of noise, beside that of one release of all rows for the same ρ, and beside
that of K tables that each have all the noise. A round with real processes is run once. `--quick` takes less than a
minute on a quiet machine.
"""

from __future__ import annotations

import argparse
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import discreet as dc
from _running import progress
from discreet.core.mechanism import calibrate_counts
from discreet.core.noise import add_noise
from discreet.learning.planned import estimate
from discreet.papers.aggregation.simulation import price_shares, share_noise
from discreet.values.budget import ZCDP
from discreet.values.laws.sums import add_laws
from discreet.values.measurement import Measurement
from discreet.values.table import Table

SIDE = 100
CUSTODIANS = (3, 10, 20)
ROWS = 500


def draw_part(
    plan: object, name: str, counts: np.ndarray, rng: np.random.Generator
) -> tuple[dc.Release, np.ndarray]:
    """A custodian's release of made-up rows, and its true table."""
    cells = rng.integers(0, SIDE * SIDE, ROWS)
    rows = {"a": [str(c // SIDE) for c in cells], "b": [str(c % SIDE) for c in cells]}
    return dc.release(rows, plan=plan, account=name), np.bincount(cells, minlength=counts.size).reshape(
        counts.shape
    )


def measure_variance(count: int, trials: int) -> tuple[float, float, float]:
    """The variance of the sum's noise over what its law says, its standard error, and the seconds to combine."""
    schema = dc.Schema.of({name: [str(i) for i in range(SIDE)] for name in "ab"})
    names = [f"c{i}" for i in range(count)]
    plan = dc.agree(names, schema, {"a": [], "b": ["a"]}, epsilon=1)
    rng = np.random.default_rng(count)
    noise, seconds, law = [], [], None
    for _ in range(trials):
        drawn = [draw_part(plan, name, np.zeros((SIDE, SIDE)), rng) for name in names]
        started = time.perf_counter()
        made = dc.combine([part for part, _ in drawn], disjoint=True)
        seconds.append(time.perf_counter() - started)
        true = sum(table for _, table in drawn)
        for found in made.provenance.measurements:
            noise.append(
                (found.noisy.values - Table(("a", "b"), true).project(found.axes).values).ravel()
                / found.law.variance**0.5
            )
            law = found.law
        if not made.verify().sound:
            raise SystemExit(f"the sum of {count} parts does not add up")
    assert law is not None
    squares = np.concatenate(noise) ** 2
    return float(squares.mean()), float(squares.std() / len(squares) ** 0.5), float(np.median(seconds))


def compare_noise(count: int, runs: int) -> dict[str, float]:
    """Mean L1 errors of the conditionals of Child from shares of noise, from one pooled table, from K noisy tables.

    Child, because its 114 conditionals average out in one network what takes a hundred networks of Asia.
    """
    clinic = dc.examples.child()
    rows = clinic.sample(2000, rng=1)
    plan = dc.agree([f"c{i}" for i in range(count)], clinic.schema, clinic.dag, rho="1/8", rows=2000)
    query = price_shares(plan, count, "benchmark")
    central = calibrate_counts(plan.tables, ZCDP("1/8"), unit=plan.unit, noise="gaussian", shares=plan.shares)
    true = [count_table(rows, members, clinic.schema.sizes) for members in plan.tables]
    exact = estimate(
        clinic.dag,
        [
            Measurement(Table(m, t), law_of(central[i], 1), plan.unit, ZCDP("1/8"))
            for i, (m, t) in enumerate(zip(plan.tables, true, strict=True))
        ],
    )
    kinds = {
        "shares": (query.mechanisms, count, runs),
        "pooled": (central, 1, runs),
        "K tables": (central, count, max(runs // 5, 2)),  # it is far off, and no figure
    }
    found = {}
    with progress("networks", sum(repeats for *_, repeats in kinds.values())) as advance:
        for kind, (mechanisms, draws, repeats) in kinds.items():
            errors = []
            for _ in range(repeats):
                tables = []
                for members, table, mechanism in zip(plan.tables, true, mechanisms, strict=True):
                    noisy = table + sum(add_noise(np.zeros_like(table), mechanism) for _ in range(draws))
                    tables.append(
                        Measurement(Table(members, noisy), law_of(mechanism, draws), plan.unit, ZCDP("1/8"))
                    )
                errors.append(
                    np.mean(
                        [
                            np.abs(one.values - other.values).mean()
                            for one, other in zip(estimate(clinic.dag, tables), exact, strict=True)
                        ]
                    )
                )
                advance()
            found[kind] = float(np.mean(errors))
            found[f"{kind} ±"] = float(np.std(errors) / repeats**0.5)
    found["ratio"] = found["shares"] / found["pooled"]
    found["ratio ±"] = found["ratio"] * float(
        np.hypot(*(found[f"{kind} ±"] / found[kind] for kind in ("shares", "pooled")))
    )
    return found


def law_of(mechanism: object, draws: int) -> object:
    """The law of a sum of so many draws."""
    return add_laws([mechanism.law] * draws)


def count_table(rows: dc.Rows, members: tuple[str, ...], sizes: dict[str, int]) -> np.ndarray:
    """The exact table of synthetic rows."""
    table = rows.arrow(labels=True)
    schema = dc.examples.child().schema
    codes = [np.array([schema[name].code(value) for value in table[name].to_pylist()]) for name in members]
    shape = [sizes[name] for name in members]
    return np.bincount(np.ravel_multi_index(codes, shape), minlength=int(np.prod(shape))).reshape(shape)


def run_round(count: int) -> tuple[float, float]:
    """One round with real processes: its seconds, and how many deviations of noise a total is off at most."""
    clinic = dc.examples.asia()
    names = [f"c{i}" for i in range(count)]
    plan = dc.agree(names, clinic.schema, clinic.dag, rho="1/8")
    tables = {name: clinic.sample(ROWS, rng=i).arrow() for i, name in enumerate(names)}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        found = share_noise(tables, plan, folder=Path(folder))
        seconds = time.perf_counter() - started
    off = [
        abs(table.noisy.total() - ROWS * count) / (table.law.variance * table.cells) ** 0.5 for table in found
    ]
    return seconds, float(max(off))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer trials")
    quick = parser.parse_args().quick
    warnings.simplefilter("ignore")
    ratios, seconds = {}, {}
    for count in CUSTODIANS:
        ratios[count], error, seconds[count] = measure_variance(count, 1 if quick else 6)
        print(
            f"K = {count:2}: variance {ratios[count]:.4f} ± {error:.4f} of K·σ²; combined in {seconds[count]:.2f} s",
            flush=True,
        )
    over = {}
    for count in (10,) if quick else CUSTODIANS:
        found = compare_noise(count, 25 if quick else 200)
        over[count] = found["ratio"]
        print(
            f"K = {count:2}: "
            + ", ".join(
                f"{kind} {found[kind]:.5f} ± {found[kind + ' ±']:.5f}"
                for kind in ("shares", "pooled", "K tables")
            )
            + f"; shares over pooled {found['ratio']:.4f} ± {found['ratio ±']:.4f}",
            flush=True,
        )
    parties = 3 if quick else 20
    took, off = run_round(parties)
    print(f"{parties} processes: {took:.1f} s, totals at most {off:.1f} deviations off")
    worst = max(ratios.values(), key=lambda ratio: abs(ratio - 1.0))
    print(f"variance_ratio: {worst:.4f}")
    print(f"shares_over_pooled: {max(over.values(), key=lambda ratio: abs(ratio - 1.0)):.4f}")
    print(f"parties_max: {max(ratios)}")
    print(f"seconds_ten: {seconds[10]:.2f}")


if __name__ == "__main__":
    main()
