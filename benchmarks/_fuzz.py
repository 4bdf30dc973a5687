"""A fuzzer of our own: `make fuzz`, or `python benchmarks/_fuzz.py --seconds 600 --seed 1`.

Every kind of input is mutated and given to a command in a forked child with limits. What must hold, whatever the input:
exit code 0, 1, 2 or 130; on 2 one line that says what is wrong, nothing spent and nothing left behind; no traceback and
no control character on the terminal; bounded processor time and memory. What broke once is kept in the corpus, which
the tests run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from _fuzz_inputs import ARGUMENTS, KINDS, copy_clinic, fill_in, mutate, mutate_word, prepare

CORPUS = Path(__file__).parents[1] / "tests" / "faults" / "corpus"
SECONDS, MEGABYTES, PATIENCE = 20, 2048, 120
"""Limits of one command: processor time, memory, and time by the clock on however busy a machine."""
WRITTEN = 2**26
"""The longest file that a command may write: a billion synthetic rows are work, which a disk ends, and no hang."""
ALLOWED = (0, 1, 2, 130)
HANGS = (-signal.SIGXCPU, -signal.SIGALRM, -signal.SIGKILL)
BATCH = 250
"""Inputs that one child is given."""
MODULES = (
    "discreet.doors.cli.commands",
    "discreet.doors.library",
    "discreet.doors.release",
    "discreet.doors.feasible",
    "discreet.judge.verify",
    "discreet.judge.trust.folder",
    "discreet.judge.report",
    "discreet.judge.explorer.page",
    "discreet.judge.trust.doubt",
    "discreet.judge.preview",
    "discreet.judge.comparison",
    "discreet.judge.claim",
    "discreet.judge.trust.witness",
    "discreet.judge.publishing.catalog",
    "discreet.judge.publishing.croissant",
    "discreet.doors.publishing",
    "discreet.learning.planned",
    "discreet.learning.adaptive",
    "discreet.stores.sqlite",
    "discreet.stores.salvage",
    "discreet.rows.engines.coded",
    "discreet.networks.written",
    "discreet.rows.readers.duck",
    "discreet.networks.figures",
    "discreet.compute.inference",
    "discreet.networks.credal",
    "cryptography.hazmat.primitives.serialization",
    "pyarrow",
    "pyarrow.dataset",
    "duckdb",
    "rich.table",
    "scipy.optimize",
)
"""Imported once by the parent, so that children begin at once; none of them starts a thread by being imported."""

Plant = Callable[[], None]


@dataclass(frozen=True)
class Trial:
    """One input: which file was mutated and how it is now, or which arguments, and the command."""

    kind: str
    command: tuple[str, ...]
    data: bytes

    @property
    def name(self) -> str:
        """A short name that is the same for the same input."""
        return hashlib.sha256(repr((self.kind, self.command, self.data)).encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Outcome:
    """How a command ended; `faults` are the properties that it broke."""

    code: int
    told: str
    faults: tuple[str, ...]


@dataclass
class Home:
    """A clinic of one's own, in which only what a command has changed is copied anew for the next."""

    clinic: Path
    path: Path
    known: dict[str, tuple[int, ...]]

    @classmethod
    def copy(cls, clinic: Path, path: Path) -> Home:
        """A new copy in place of one whose child was ended."""
        shutil.rmtree(path, ignore_errors=True)
        copy_clinic(clinic, path)
        return cls(clinic, path, _look(path))

    def restore(self) -> list[str]:
        """Undo what was done to the files; the names of those that are new."""
        now = _look(self.path)
        added = sorted(name for name in now if name not in self.known)
        for name in added:
            (self.path / name).unlink(missing_ok=True) if now[name] else shutil.rmtree(
                self.path / name, ignore_errors=True
            )
        for name, state in self.known.items():
            if now.get(name) != state:
                shutil.copy2(self.clinic / name, self.path / name)
                self.known[name] = _look(self.path)[name]
        return added


def _look(folder: Path) -> dict[str, tuple[int, ...]]:
    """Every file with what changes when it is written; a folder with nothing."""
    found: dict[str, tuple[int, ...]] = {}
    agenda = [("", str(folder))]
    while agenda:
        above, path = agenda.pop()
        with os.scandir(path) as entries:
            for entry in entries:
                name = above + entry.name
                if entry.is_dir(follow_symlinks=False):
                    found[name] = ()
                    agenda.append((name + "/", entry.path))
                else:
                    state = entry.stat(follow_symlinks=False)
                    found[name] = (state.st_ino, state.st_size, state.st_mtime_ns)
    return found


def draw(clinic: Path, chance: random.Random, kinds: tuple[str, ...] = ()) -> Trial:
    """A mutated input."""
    names = kinds or (*KINDS, "arguments")
    weights = [KINDS[name].weight if name in KINDS else 8 for name in names]
    name = chance.choices(names, weights)[0]
    if name == "arguments":
        words = chance.choice(ARGUMENTS)
        starred = [i for i, word in enumerate(words) if word.startswith("*")]
        hit = chance.choice(starred)
        changed = tuple(
            mutate_word(word[1:], chance) if i == hit else word.removeprefix("*")
            for i, word in enumerate(words)
        )
        return Trial(name, changed, b"")
    kind = KINDS[name]
    data = mutate((clinic / kind.file).read_bytes(), chance)
    return Trial(name, chance.choice(kind.commands), data)


def try_out(trials: Sequence[Trial], clinic: Path, place: Path, plant: Plant | None = None) -> list[Outcome]:
    """Run the commands of trials, one after the other, in a child with limits; if it is ended, the next one goes on."""
    found: list[Outcome] = []
    while len(found) < len(trials):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                _settle(plant)
                home = Home.copy(clinic, place / "trial")
                for trial in trials[len(found) :]:
                    try:
                        outcome = _run(trial, home, place)
                    except Exception as problem:  # nothing may come past the commands
                        outcome = Outcome(99, repr(problem), ("traceback",))
                    os.write(writing, json.dumps(asdict(outcome)).encode() + b"\n")
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            for line in pipe:
                said = json.loads(line)
                found.append(Outcome(said["code"], said["told"], tuple(said["faults"])))
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if len(found) < len(trials):
            fault = "hang" if code in HANGS else "crash"
            found.append(Outcome(code, f"ended by signal {-code}", (fault,)))
    return found


def _settle(plant: Plant | None) -> None:
    """The limits of a child, and nothing on its terminal that it was not asked for."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES * 2**20,) * 2)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (WRITTEN, WRITTEN)
    )  # a write beyond it fails, as on a full disk
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(DISCREET_SECONDS=str(SECONDS), DISCREET_MEGABYTES=str(MEGABYTES))
    if plant is not None:
        plant()


def _run(trial: Trial, home: Home, place: Path) -> Outcome:
    """Run one command with a limit of time, and look at what it has done."""
    from discreet.doors.cli import main

    file = KINDS[trial.kind].file if trial.kind in KINDS else "rows.csv"
    if trial.kind in KINDS:
        (home.path / file).write_bytes(trial.data)
    paid = _count_debits(home.path)
    spent = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(spent.ru_utime + spent.ru_stime) + SECONDS
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.alarm(PATIENCE)
    texts = []
    with open(place / "stdout", "w+b") as out, open(place / "stderr", "w+b") as told:
        os.dup2(out.fileno(), 1)
        os.dup2(told.fileno(), 2)
        sys.stdout, sys.stderr = (os.fdopen(os.dup(number), "w", errors="replace") for number in (1, 2))
        sys.argv = ["discreet", *fill_in(trial.command, home.path, file)]
        code = main()  # as the installed command does, with its own child and limits where it has them
        for stream, handle in ((sys.stdout, out), (sys.stderr, told)):
            stream.close()
            handle.seek(0)
            texts.append(handle.read())
    paid_now = _count_debits(home.path)
    faults = _judge(code, texts[0], texts[1], home.restore(), paid_now != paid, trial)
    return Outcome(code, texts[1].decode("utf-8", "replace")[:2000], tuple(faults))


def _judge(code: int, out: bytes, told: bytes, left: list[str], paid: bool, trial: Trial) -> Iterator[str]:
    """The properties that a command broke."""
    if code not in ALLOWED:
        yield "exit code"
    if b"Traceback (most recent" in told or b"a fault of discreet" in told:
        yield "traceback"
    if b"error: stopped:" in told:  # what a command's own limit had to end, nothing before it did
        yield "hang" if b"processor time" in told else "crash"
    if b"not enough memory" in told:
        yield "memory"
    lines = told.decode("utf-8", "replace").splitlines()
    if code == 2 and sum(line.startswith("error:") for line in lines) != 1 and trial.kind != "questions":
        yield "not one line"
    if any(byte < 32 and byte not in (9, 10) for byte in told + (b"" if "--json" in trial.command else out)):
        yield "control character"
    if code == 2 and paid:
        yield "paid, then refused"
    if code == 2 and [name for name in left if not name.endswith("-journal")]:
        yield "left behind"


def _count_debits(home: Path) -> int:
    """How many events the ledger has that spend; -1 if it cannot be read, as one that was mutated."""
    try:
        with sqlite3.connect(f"file:{home / 'clinic.ledger'}?mode=ro", uri=True) as connection:
            found = connection.execute(
                'SELECT count(*) FROM event WHERE body LIKE \'%"kind":"debit"%\''
            ).fetchone()
        connection.close()
        return int(found[0])
    except sqlite3.Error:
        return -1


def warm_up() -> None:
    """Import what children need, and assemble the commands once."""
    import importlib

    from discreet.doors.cli import commands

    for name in MODULES:
        importlib.import_module(name)
    commands.build()


def fuzz(
    *, seconds: float, seed: int, most: int = 10**9, kinds: tuple[str, ...] = (), plant: Plant | None = None,
    stop: bool = False, tell: Callable[[str], None] = lambda line: None,
) -> tuple[Counter[str], list[tuple[Trial, Outcome]]]:  # fmt: skip
    """Mutate for so long or so often; how inputs ended, by kind and code, and those that broke a property."""
    warm_up()
    chance, ended, broken = random.Random(seed), Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="discreet-fuzz-") as name:
        clinic, place = Path(name) / "clinic", Path(name)
        clinic.mkdir()
        _in_child(lambda: prepare(clinic), place / "said")
        began = time.perf_counter()
        while ended["inputs"] < most and time.perf_counter() - began < seconds and not (stop and broken):
            trials = [draw(clinic, chance, kinds) for _ in range(min(BATCH, most - ended["inputs"]))]
            for trial, outcome in zip(trials, try_out(trials, clinic, place, plant), strict=True):
                ended["inputs"] += 1
                ended[f"{trial.kind} {outcome.code}"] += 1
                ended.update(outcome.faults)
                if outcome.faults:
                    broken.append((trial, outcome))
                    words = " ".join(trial.command)[:90]
                    tell(
                        f"{trial.name} {trial.kind} {words!r}: {', '.join(outcome.faults)}: {outcome.told[:300]!r}"
                    )
            if ended["inputs"] % 500 < BATCH:
                tell(f"{ended['inputs']} inputs, {len(broken)} findings, {time.perf_counter() - began:.0f} s")
    return ended, broken


def _in_child(work: Callable[[], None], said: Path) -> None:
    """Do some work in a forked child, so that threads which it starts are not there when others fork; what it says."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with said.open("w") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            work()
            code = 0
        except Exception as problem:
            print(repr(problem), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    if os.waitpid(child, 0)[1] != 0:
        raise RuntimeError(f"the clinic could not be made: {said.read_text()[-1000:]}")


def keep(trial: Trial, what: str, corpus: Path = CORPUS) -> None:
    """Keep an input that broke something, for the tests to run again."""
    corpus.mkdir(exist_ok=True)
    (corpus / f"{trial.name}.bin").write_bytes(trial.data)
    note = {"kind": trial.kind, "command": list(trial.command), "what": what}
    (corpus / f"{trial.name}.json").write_text(json.dumps(note, indent=1) + "\n")


def read_corpus(corpus: Path = CORPUS) -> list[tuple[Trial, str]]:
    """What broke once, and how."""
    found = []
    for path in sorted(corpus.glob("*.json")):
        note = json.loads(path.read_text())
        found.append(
            (Trial(note["kind"], tuple(note["command"]), path.with_suffix(".bin").read_bytes()), note["what"])
        )
    return found


def main() -> int:
    """Fuzz for as long as told; exit code 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--inputs", type=int, default=10**9)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--kind", action="append", default=[], help="only inputs of this kind; may be repeated"
    )
    parser.add_argument("--keep", action="store_true", help="write what broke something into the corpus")
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    ended, broken = fuzz(
        seconds=given.seconds,
        seed=given.seed,
        most=given.inputs,
        kinds=tuple(given.kind),
        tell=lambda line: print(line, flush=True),
    )
    for trial, outcome in broken if given.keep else ():
        keep(trial, ", ".join(outcome.faults))
    for name, count in sorted(ended.items()):
        print(f"{name}: {count}")
    print(f"findings: {len(broken)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
