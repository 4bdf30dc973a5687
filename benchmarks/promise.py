"""How near the promise is to what an attacker gets, and what bounding people costs.

    python benchmarks/promise.py           # minutes
    python benchmarks/promise.py --quick   # under a minute

An audit on a worst-case pair: the attacker knows every row but one unit's, follows the search without rows, and adds up
the exact log-likelihood ratio of every noisy table and every choice that a release tells. In ρ what they see is a shift
by μ standard deviations, and ρ promises at most μ = √(2ρ); in ε no release is more than e^ε times as likely with
the unit. The share "by the law" is the same from the exact divergences of each step, with hardly any sampling error.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from _pair_audit import Setting, audit_epsilon, audit_mu
from discreet.core.mechanism import Noise, calibrate_counts
from discreet.rows.people import choose_rows
from discreet.values.budget import ZCDP, ApproxDP, Finite, PureDP, afford_zcdp, allow
from discreet.values.unit import Unit

ROOT = Path(__file__).resolve().parents[1]
VISITS = 4
ONE_ROW = Setting(ZCDP("1/2"), 100_000)
ONE_PERSON = Setting(ZCDP("1/2"), 200_000, Unit("add-remove", "id", VISITS))
IN_PURE = Setting(PureDP(2), 400_000, names="ab")
FEW_ROWS = Setting(ZCDP("1/2"), 4_000)
"""Here choices have a larger part of the budget."""
PEOPLE, CLOCK = "tests/planted/test_people_planted.py::test_", "tests/planted/test_clock.py::test_"
AUDIT, PAIR = "tests/statistics/test_audit_units.py::test_", "tests/statistics/test_likelihood.py::test_"
SECOND, BOUND = "tests/planted/test_second_release.py::test_", "tests/laws/test_contributions.py::test_"
PLANTED = {
    "a person's rows not bounded": f"{PEOPLE}a_person_with_four_rows_is_not_hidden_by_a_promise_about_rows",
    "a person's rows not bounded, by the audit": f"{AUDIT}people_whose_rows_are_not_bounded_are_caught",
    "a bound by file order": f"{PEOPLE}a_bound_by_file_order_is_caught_and_the_secret_choice_is_not",
    "an id hashed without a key": f"{PEOPLE}an_id_that_is_hashed_without_a_key_is_caught",
    "a bound by file order, by the audit": f"{AUDIT}a_bound_by_the_order_of_the_file_is_caught_by_running_it",
    "a weight without a cap, by the audit": f"{AUDIT}a_weight_that_is_not_cut_off_is_caught",
    "noise narrower than stated, by the pair": f"{PAIR}noise_that_is_narrower_than_it_says_is_caught",
    "a weight without a cap": f"{PEOPLE}a_weight_without_a_cap_in_the_sensitivity_is_caught",
    "a clock": f"{CLOCK}debits_with_their_full_time_are_caught",
    "a head that confirms guesses": f"{CLOCK}the_published_head_confirms_no_guess_at_the_time",
    "a second release": f"{SECOND}a_promise_of_what_was_spent_so_far_is_broken_by_the_next_release",
    "a ledger that tells of changed tables": f"{SECOND}a_ledger_that_writes_down_changed_tables_only_is_caught",
    "an average whose rows keep their weight": (
        f"{PEOPLE}an_averaged_person_is_hidden_and_one_whose_rows_keep_their_weight_is_caught"
    ),
    "a bound priced for a ninth": f"{BOUND}the_choice_keeps_its_promise_and_one_priced_for_a_ninth_is_caught",
    "an allowance without its δ": "tests/laws/test_accounting.py::test_an_allowance_that_forgets_the_delta_is_caught",
}


def compare_accounting() -> float:
    """The noise of one of some tables at (1, 10⁻⁶), by each currency; the gain for the 37 tables of Alarm's graph."""
    gains = {}
    promise = ApproxDP(1, "1e-6")
    for tables in (1, 5, 10, 20, 37, 100, 1000):
        share = ApproxDP(promise.epsilon / tables, promise.delta / tables)
        own = calibrate(afford_zcdp(share), "gaussian")
        pure = calibrate(PureDP(promise.epsilon / tables), "laplace")
        rho = calibrate(allow(promise) / tables, "gaussian")
        gains[tables] = min(own, pure) / rho
        print(f"| {tables:,} | {own:.1f} | {pure:.1f} | {rho:.1f} | {gains[tables]:.2f} |")
    return gains[37]


def calibrate(cost: Finite, noise: str) -> float:
    """The standard deviation of the noise that a table of counts gets for a cost."""
    (made,) = calibrate_counts([("x",)], cost, unit=Unit.ADD_REMOVE, noise=Noise(noise))
    return math.sqrt(made.law.variance)


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
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *PLANTED.values()]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout
    caught = {name: f"PASSED {test}" in said for name, test in PLANTED.items()}
    for name, found in caught.items():
        print(f"{name}: {'caught' if found else 'NOT CAUGHT'}", flush=True)
    return sum(caught.values())


def main() -> None:
    """Audit, time, count, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    runs, person = (6, replace(ONE_PERSON, rows=20_000)) if quick else (400, ONE_PERSON)
    shares = {
        "mu_share_search": audit_mu("the search", ONE_ROW, runs),
        "mu_share_person": audit_mu("a person", person, runs),
        "mu_share_few_rows": audit_mu("the search with few rows", FEW_ROWS, runs),
    }
    pure = audit_epsilon("the search in ε", IN_PURE, runs)
    gain = compare_accounting()
    caught = count_caught()
    speed = time_bounding(1_000_000 if quick else 5_000_000)
    for name, (read, law) in shares.items():
        print(f"{name}: {read.value:.3f}")
        print(f"{name}_error: {read.error:.3f}")
        print(f"{name}_by_law: {law.value:.3f}")
    print(f"epsilon_share_search: {pure.value:.3f}")
    print(f"epsilon_share_search_error: {pure.error:.3f}")
    print(f"planted_caught: {caught}")
    print(f"planted_all: {len(PLANTED)}")
    print(f"accounting_gain: {gain:.3f}")
    print(f"bounding_mrows_per_s: {speed:.2f}")


if __name__ == "__main__":
    main()
