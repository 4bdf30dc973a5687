"""How tough the commands are: mutated inputs of every kind, and forged releases held against ledger and key.

`--quick` takes under a minute; without it 10,000 inputs are tried, in pieces that `--results FILE` keeps, so that a run
goes on where another was stopped. What counts are the zeros.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from _forgeries import FORGERIES, forge, make_clinic, passes
from _fuzz import fuzz

QUICK_SECONDS, QUICK_FORGERIES = 25.0, 30.0
INPUTS, PIECE = 10_000, 1000
SECONDS_A_PIECE = 120.0
"""What a piece may take on a busy machine."""


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


def run_pieces(seed: int, seconds: float, results: Path) -> Counter[str]:
    """How mutated inputs ended; pieces of these very sources that are in the file of results are not tried again."""
    began, sources = time.perf_counter(), digest_sources()
    ended = Counter[str]()
    done = set()
    for line in results.read_text().splitlines() if results.exists() else ():
        piece = json.loads(line)
        if piece["sources"] == sources and piece["seed"] == seed and piece["inputs"] == PIECE:
            done.add(piece["number"])
            ended.update(piece["ended"])
    for number in range(INPUTS // PIECE):
        left = seconds - (time.perf_counter() - began)
        if number in done:
            continue
        if left < SECONDS_A_PIECE:
            print(f"stopped after {len(done)} pieces of {INPUTS // PIECE}, for want of time", flush=True)
            break
        # The parent imports, its children run: so nothing here has threads when it forks.
        found, broken = fuzz(seconds=1e9, seed=seed * 1000 + number, most=PIECE, tell=tell)
        said = [[trial.kind, list(trial.command), outcome.faults, outcome.told] for trial, outcome in broken]
        note = {
            "sources": sources,
            "seed": seed,
            "number": number,
            "inputs": PIECE,
            "ended": found,
            "broken": said,
        }
        with results.open("a") as file:
            file.write(json.dumps(note) + "\n")
        done.add(number)
        ended.update(found)
    return ended


def tell(line: str) -> None:
    """A line of progress."""
    print(line, flush=True)


def digest_sources() -> str:
    """What changes when the program or the fuzzer does: pieces of another program are not added to this one's."""
    found = hashlib.sha256()
    for folder in ("src/discreet", "benchmarks"):
        for path in sorted((Path(__file__).parents[1] / folder).rglob("*")):
            if path.suffix in (".py", ".js", ".css", ".html") and (folder[0] == "s" or "fuzz" in path.name):
                found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()[:16]


def main() -> None:
    """Mutate and forge, and print what got through."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--results", type=Path, help="keep pieces in this file, and go on from there")
    parser.add_argument("--minutes", type=float, default=1e6, help="begin no piece that would end later")
    given = parser.parse_args()

    if given.quick:
        ended, _ = fuzz(seconds=QUICK_SECONDS, seed=given.seed, tell=tell)
    else:
        with tempfile.TemporaryDirectory(prefix="discreet-tough-") as name:
            ended = run_pieces(given.seed, 60 * given.minutes, given.results or Path(name) / "results")
    if not given.quick and ended["inputs"] < INPUTS:
        print(f"mutated: {ended['inputs']}; run it again with --results to go on", flush=True)
        return
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
