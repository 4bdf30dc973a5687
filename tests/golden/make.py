"""Make the golden releases: one of each learner, unit and kind of budget, with the answers that they give.

    python tests/golden/make.py          # answers only: from the releases that are here
    python tests/golden/make.py --draw   # new releases too: new noise, so every file changes
    python tests/golden/make.py --draw planned-delta adaptive   # only these

The releases are kept, because their noise cannot be drawn again; `answers.json` is what they must go on saying.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent

SCHEMA = """
[attributes.age]
edges = [0, 20, 40, 60, 90]
missing = "unknown"

[attributes.ward]
levels = ["medicine", "surgery", "eye"]
taxonomy = { clinic = ["medicine", "surgery"], other = ["eye"] }

[attributes.smoke]
levels = ["yes", "no"]

[attributes.ill]
levels = ["no", "mild", "severe"]
ordered = true
"""
TYPED = """
[attributes.age]
type = "integer"
edges = [0, 20, 40, 60, inf]
highest = 90
missing = "unknown"
nulls = ["NA", -9]
outside = "nearest"

[attributes.ward]
levels = ["medicine", "surgery", "eye"]
other = "another"
aliases = { surgery = ["Chirurgie"] }
ignore = ["case", "blanks"]

[attributes.smoke]
levels = ["yes", "no"]
other = "?"

[attributes.ill]
levels = ["no", "mild", "severe"]
ordered = true
missing = "unknown"
outside = "missing"

[attributes.dose]
edges = [-inf, 1, 2, 5]
points = [1.5]
lowest = 0
decimals = 1
outside = "leave out"

[attributes.visit]
type = "date"
by = "quarter"
from = 2025-01-01
to = 2025-12-31
order = "dmy"
other = "else"

[[constraints]]
if = { smoke = "no" }
then = { ill = "!= severe" }

[[constraints]]
holds = ["age", "<=", "age limit"]

[[constraints]]
columns = ["smoke", "ward"]
combinations = [["yes", "medicine"], ["yes", "surgery"], ["yes", "eye"], ["no", "medicine"], ["no", "eye"]]

[attributes."age limit"]
type = "integer"
edges = [0, 50, 90]
outside = "leave out"

[follows.building]
from = "ward"
map = { medicine = "old", surgery = "new" }
type = "text"
"""
GRAPH = "age -> ill\nward -> ill\nsmoke -> ill\nage -> smoke\n"

PARTS = {"north": [], "south": ["--rho", "1/8"]}
"""The custodians of the combined release, and what each spends instead of what was planned."""
RELEASES = {
    "combined": [],
    "planned": ["--epsilon", "1"],
    "planned-rho": ["--rho", "1/8", "--unit", "replace-one"],
    "planned-delta": ["--epsilon", "1", "--delta", "1e-6"],
    "independent": ["--learner", "independent", "--epsilon", "1"],
    "dependent": ["--learner", "dependent", "--epsilon", "2"],
    "laplace": ["--learner", "laplace", "--epsilon", "1"],
    "fourier": ["--learner", "fourier", "--epsilon", "2", "--unit", "replace-one"],
    "posterior-sample": ["--learner", "posterior-sample", "--epsilon", "8"],
    "map": ["--learner", "map", "--prior", "1/2", "--rho", "1"],
    "adaptive": ["--epsilon", "2"],
    "adaptive-noisy": ["--epsilon", "1/4"],
    "adaptive-rho": ["--rho", "1/2"],
    "adaptive-typed": ["--epsilon", "4"],
    "privbayes": ["--learner", "privbayes", "--epsilon", "2"],
    "privbayes-replace": ["--learner", "privbayes", "--epsilon", "2", "--unit", "replace-one"],
    "privbayes-binary": ["--learner", "privbayes", "--encoding", "binary", "--epsilon", "4"],
    "privbayes-hierarchical": ["--learner", "privbayes", "--encoding", "hierarchical", "--epsilon", "4"],
}
ABOUT = """
title = "A golden release"
description = "One of each learner, unit and kind of budget."
population = "Nobody: the rows are made up"
period = "2026"
collection = "Drawn at random"
contact = "data@example.org"
licence = "CC0 1.0"
custodian = "Nobody"
use = "Tests"
region = "Nowhere"
sector = "Education"
published = "2026-11-17"
url = "https://example.org/golden"
preparation = "None"
reasons = "To have one of each"
authors = "The developers"
"""
QUESTIONS = [
    "P(ill)",
    "P(ill | smoke=yes)",
    "P(ill=severe | ward=eye)",
    "P(smoke, ward | ill=mild)",
    "MPE(ill=severe)",
]


def run(*arguments: object) -> str:
    """What a command prints; it must succeed."""
    from discreet.doors.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main([str(argument) for argument in arguments])
    if code != 0:
        raise RuntimeError(f"{arguments} ended with {code}")
    return said.getvalue()


def draw_releases(names: list[str]) -> None:
    """Write these releases anew, or all."""
    import numpy as np

    source = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "schema.toml").write_text(SCHEMA)
        (place / "typed.toml").write_text(TYPED)
        (place / "graph.txt").write_text(GRAPH)
        (place / "about.toml").write_text(ABOUT)
        lines = ["age,ward,smoke,ill,dose,visit,age limit"]
        for _ in range(4000):
            age = source.uniform(0, 90)
            smoke = source.random() < 0.2 + 0.003 * age
            ward = source.choice(["medicine", "surgery", "eye"], p=[0.5, 0.3, 0.2])
            ill = source.choice(["no", "mild", "severe"], p=[0.5, 0.3, 0.2] if smoke else [0.8, 0.15, 0.05])
            rest = f"{age / 20:.1f},{1 + int(age) % 28}.{1 + int(age) % 12}.2025,{int(age)}"
            lines.append(f"{age:.1f},{ward},{'yes' if smoke else 'no'},{ill},{rest}")
        (place / "rows.csv").write_text("\n".join(lines) + "\n")
        for name in names or RELEASES:
            if name == "combined":
                combine_parts(place)
                continue
            options = RELEASES[name]
            graph = (
                ["--graph", place / "graph.txt"]
                if name.split("-")[0] not in ("adaptive", "privbayes")
                else []
            )
            schema = "typed.toml" if name.endswith("typed") else "schema.toml"
            words = ["--about", place / "about.toml"] if name == "planned" else []
            run(
                "release", place / "rows.csv", "--schema", place / schema, *graph, *options, *words,
                "--ledger", place / "ledger", "--create-ledger", "--account", name, "--out", HERE / f"{name}.json",
            )  # fmt: skip


def combine_parts(place: Path) -> None:
    """The release of two custodians, by a plan that they share."""
    plan = place / "plan.json"
    run(
        "plan", "--schema", place / "schema.toml", "--graph", place / "graph.txt", "--epsilon", "1", "--write", plan,
        "--custodians", ",".join(PARTS),
    )  # fmt: skip
    for name, options in PARTS.items():
        run(
            "release", place / "rows.csv", "--plan", plan, *options, "--ledger", place / f"{name}.ledger",
            "--create-ledger", "--account", name, "--out", place / f"{name}.json",
        )  # fmt: skip
    run("combine", *(place / f"{name}.json" for name in PARTS), "--out", HERE / "combined.json")


def answer(path: Path) -> dict[str, object]:
    """What one release says: its answers, its network for other tools, its verdict, its synthetic rows."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        run("synthesize", path, "--rows", 500, "--seed", 7, "--labels", "--out", rows)
        drawn = hashlib.sha256(rows.read_bytes()).hexdigest()
    asked = [
        json.loads(line)
        for line in run("query", path, *QUESTIONS, "--interval", "none", "--json").splitlines()
    ]
    return {"answers": asked, "rows": drawn, "verify": json.loads(run("verify", path, "--json"))}


def main() -> None:
    """Write what is asked for."""
    if sys.argv[1:2] == ["--draw"]:
        draw_releases(sys.argv[2:])
    found = {name: answer(HERE / f"{name}.json") for name in RELEASES}
    (HERE / "answers.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
