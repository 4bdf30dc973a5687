"""How tough the commands are: mutated inputs of every kind, and forged releases held against ledger and key.

`--quick` takes under a minute; without it 10,000 inputs are tried. What counts are the zeros.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

from _forgeries import FORGERIES, forge, make_clinic, passes
from _fuzz import fuzz

QUICK_SECONDS, QUICK_FORGERIES = 25.0, 30.0
INPUTS = 10_000


def count_forgeries(seconds: float) -> Counter[str]:
    """How many forgeries there are, and how many add up alone, with the ledger, and with the key."""
    found = Counter[str]()
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="discreet-tough-") as name:
        clinic = Path(name) / "clinic"
        clinic.mkdir()
        make_clinic(clinic)
        for number, forgery in enumerate(FORGERIES):
            if time.perf_counter() - began > seconds:
                print(f"stopped after {number} forgeries, for want of time", flush=True)
                break
            place = Path(name) / str(number)
            place.mkdir()
            file = forge(clinic, forgery, place)
            found["forgeries"] += 1
            found["forgeries_passed_alone"] += passes(file)
            found["forgeries_passed_ledger"] += passes(file, clinic / "ledger")
            found["forgeries_passed_key"] += passes(file, key=clinic / "custodian.key.pub")
    return found


def mutate(seconds: float, seed: int, most: int, jobs: int) -> Counter[str]:
    """How mutated inputs ended, tried by several processes at once, each from a seed of its own."""
    with tempfile.TemporaryDirectory(prefix="discreet-tough-") as name:
        children = []
        for job in range(jobs):
            child = os.fork()  # before anything is imported that starts a thread
            if child == 0:
                code = 1
                try:
                    share = most // jobs + (job < most % jobs)
                    found, _ = fuzz(
                        seconds=seconds,
                        seed=seed + job,
                        most=share,
                        tell=lambda line: print(line, flush=True),
                    )
                    (Path(name) / str(job)).write_text(json.dumps(found))
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    os._exit(code)
            children.append(child)
        codes = [os.waitpid(child, 0)[1] for child in children]
        if any(codes):
            raise RuntimeError("a process of the fuzzer has ended early")
        return sum((Counter(json.loads(path.read_text())) for path in Path(name).iterdir()), Counter[str]())


def main() -> None:
    """Mutate and forge, and print what got through."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes of the fuzzer at once")
    given = parser.parse_args()
    seconds, most = (QUICK_SECONDS, 10**9) if given.quick else (1e9, INPUTS)

    ended = mutate(seconds, given.seed, most, given.jobs)
    forged = count_forgeries(QUICK_FORGERIES if given.quick else 1e9)
    figures = {
        "mutated": ended["inputs"],
        "tracebacks": ended["traceback"],
        "hangs": ended["hang"],
        "wrong_exit": ended["exit code"] + ended["not one line"],
        "crashes": ended["crash"],
        "memory": ended["memory"],
        "left_behind": ended["left behind"] + ended["control character"],
        "forgeries": forged["forgeries"],
        "forgeries_passed_alone": forged["forgeries_passed_alone"],
        "forgeries_passed_ledger": forged["forgeries_passed_ledger"],
        "forgeries_passed_key": forged["forgeries_passed_key"],
        "paid_then_refused": ended["paid, then refused"],
    }
    for name, value in figures.items():
        print(f"{name}: {value}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
