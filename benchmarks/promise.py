"""How near the promise is to what an attacker gets, and what bounding people costs.

    python benchmarks/promise.py           # minutes
    python benchmarks/promise.py --quick   # under a minute

An audit on a worst-case pair: the attacker knows every row but one person's, and reads all noisy tables with the law
of their noise. What they see is a shift by μ standard deviations; ρ promises that it is at most μ = √(2ρ). The audit of
the search reads its tables only, not its choices, which have a part of the budget: for that alone its share is below 1.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from discreet.entrance import open_airlock
from discreet.learning.adaptive import adaptive
from discreet.rows.people import choose_rows
from discreet.values.budget import ZCDP
from discreet.values.schema import Schema
from discreet.values.unit import Unit

ROOT = Path(__file__).resolve().parents[1]
RHO = ZCDP("1/2")
CLAIM = math.sqrt(2 * float(RHO.rho))
VISITS = 4
PEOPLE, CLOCK = "tests/planted/test_people_planted.py::test_", "tests/planted/test_clock.py::test_"
PLANTED = {
    "a person's rows not bounded": f"{PEOPLE}a_person_with_four_rows_is_not_hidden_by_a_promise_about_rows",
    "a bound by file order": f"{PEOPLE}a_bound_by_file_order_is_caught_and_the_secret_choice_is_not",
    "an id hashed without a key": f"{PEOPLE}an_id_that_is_hashed_without_a_key_is_caught",
    "a weight without a cap": f"{PEOPLE}a_weight_without_a_cap_in_the_sensitivity_is_caught",
    "a clock": f"{CLOCK}debits_with_their_full_time_are_caught",
    "a head that confirms guesses": f"{CLOCK}the_published_head_confirms_no_guess_at_the_time",
}


def measure_shift(inside: np.ndarray, outside: np.ndarray) -> tuple[float, float]:
    """μ between two samples of one statistic, in standard deviations, and its standard error."""
    spread = math.sqrt((inside.var(ddof=1) + outside.var(ddof=1)) / 2)
    return float((inside.mean() - outside.mean()) / spread), math.sqrt(1 / len(inside) + 1 / len(outside))


def audit_person(runs: int) -> tuple[float, float]:
    """One person with four visits in one cell, whose table is measured once."""
    schema, unit = Schema.of({"x": ["a", "b"]}), Unit("add-remove", "id", VISITS)
    others = {"id": ["q", "r"], "x": ["b", "b"]}
    visitor = {"id": ["p"] * VISITS + others["id"], "x": ["a"] * VISITS + others["x"]}
    sides = []
    for rows in (visitor, others):
        with open_airlock(rows, schema, budget=ZCDP(10**6), unit=unit) as airlock:
            drawn = [airlock.measure([("x",)], spend=RHO, noise="gaussian")[0] for _ in range(runs)]
        sides.append(np.array([found.noisy.values[0] for found in drawn], dtype=np.float64))
    return measure_shift(*sides)


def audit_search(runs: int) -> tuple[float, float]:
    """One row more in a table of 200, the default search, and all its noisy tables weighed by their precision."""
    names = "abc"
    schema = Schema.of({name: ["0", "1"] for name in names})
    rng = np.random.default_rng(1)
    base = rng.integers(0, 2, size=(200, 3))
    target = np.array([1, 1, 1])
    sides = []
    for rows in (np.vstack([base, target]), base):
        data = {name: [str(value) for value in rows[:, i]] for i, name in enumerate(names)}
        seen = []
        for _ in range(runs):
            with open_airlock(data, schema, budget=RHO) as airlock:
                known = adaptive(airlock, spend=RHO).provenance
            assert known is not None
            total = 0.0
            for table in known.measurements:
                places = [names.index(name) for name in table.axes]
                true = (
                    np.count_nonzero((base[:, places] == target[places]).all(axis=1)) if places else len(base)
                )
                total += (float(table.noisy.values[tuple(target[places])]) - true) / table.law.variance
            seen.append(total)
        sides.append(np.array(seen))
    return measure_shift(*sides)


def time_bounding(rows: int) -> float:
    """Million rows a second that are bounded in memory, five rows a person."""
    rng = np.random.default_rng(0)
    people = rng.integers(1, 2**63, size=(rows // 5, 2), dtype=np.uint64)[rng.integers(0, rows // 5, rows)]
    choose_rows(people[:100], VISITS)
    best = math.inf
    for _ in range(3):
        start = time.perf_counter()
        choose_rows(people, VISITS)
        best = min(best, time.perf_counter() - start)
    return rows / 1e6 / best


def count_caught() -> int:
    """The planted attacks that the tests catch."""
    caught = 0
    for name, test in PLANTED.items():
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", test]
        found = subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0
        print(f"{name}: {'caught' if found else 'NOT CAUGHT'}", flush=True)
        caught += found
    return caught


def main() -> None:
    """Audit, time, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    print("a person with four visits", file=sys.stderr, flush=True)
    person, person_error = audit_person(2_000 if quick else 20_000)
    print(f"person: μ {person:.3f} ± {person_error:.3f} of {CLAIM:.3f} claimed")
    print("the default search", file=sys.stderr, flush=True)
    search, search_error = audit_search(40 if quick else 600)
    print(f"search: μ {search:.3f} ± {search_error:.3f} of {CLAIM:.3f} claimed, read off its tables alone")
    caught = count_caught()
    speed = time_bounding(1_000_000 if quick else 5_000_000)
    print(f"mu_share_search: {search / CLAIM:.3f}")
    print(f"mu_share_person: {person / CLAIM:.3f}")
    print(f"planted_caught: {caught}")
    print(f"planted_all: {len(PLANTED)}")
    print(f"bounding_mrows_per_s: {speed:.2f}")


if __name__ == "__main__":
    main()
