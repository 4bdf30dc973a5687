"""Make the golden releases: one of each learner, unit and kind of budget, with the answers that they give.

    python tests/golden/make.py          # answers only: from the releases that are here
    python tests/golden/make.py --draw   # new releases too: new noise, so every file changes

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
GRAPH = "age -> ill\nward -> ill\nsmoke -> ill\nage -> smoke\n"

RELEASES = {
    "planned": ["--epsilon", "1"],
    "planned-rho": ["--rho", "1/8", "--unit", "replace-one"],
    "planned-delta": ["--epsilon", "1", "--delta", "1e-6"],
    "independent": ["--learner", "independent", "--epsilon", "1"],
    "dependent": ["--learner", "dependent", "--epsilon", "2"],
    "adaptive": ["--epsilon", "2"],
    "adaptive-rho": ["--rho", "1/2"],
    "privbayes": ["--learner", "privbayes", "--epsilon", "2"],
    "privbayes-replace": ["--learner", "privbayes", "--epsilon", "2", "--unit", "replace-one"],
    "privbayes-binary": ["--learner", "privbayes", "--encoding", "binary", "--epsilon", "4"],
    "privbayes-hierarchical": ["--learner", "privbayes", "--encoding", "hierarchical", "--epsilon", "4"],
}
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


def draw_releases() -> None:
    """Write every release anew."""
    import numpy as np

    source = np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "schema.toml").write_text(SCHEMA)
        (place / "graph.txt").write_text(GRAPH)
        lines = ["age,ward,smoke,ill"]
        for _ in range(4000):
            age = source.uniform(0, 90)
            smoke = source.random() < 0.2 + 0.003 * age
            ward = source.choice(["medicine", "surgery", "eye"], p=[0.5, 0.3, 0.2])
            ill = source.choice(["no", "mild", "severe"], p=[0.5, 0.3, 0.2] if smoke else [0.8, 0.15, 0.05])
            lines.append(f"{age:.1f},{ward},{'yes' if smoke else 'no'},{ill}")
        (place / "rows.csv").write_text("\n".join(lines) + "\n")
        for name, options in RELEASES.items():
            graph = (
                ["--graph", place / "graph.txt"]
                if name.split("-")[0] in ("planned", "independent", "dependent")
                else []
            )
            run(
                "release", place / "rows.csv", "--schema", place / "schema.toml", *graph, *options,
                "--ledger", place / "ledger", "--create-ledger", "--account", name, "--out", HERE / f"{name}.json",
            )  # fmt: skip


def answer(path: Path) -> dict[str, object]:
    """What one release says: its answers, its network for other tools, its verdict, its synthetic rows."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.csv"
        run("synthesize", path, "--rows", 500, "--seed", 7, "--out", rows)
        drawn = hashlib.sha256(rows.read_bytes()).hexdigest()
    asked = [
        json.loads(line)
        for line in run("query", path, *QUESTIONS, "--interval", "none", "--json").splitlines()
    ]
    return {"answers": asked, "rows": drawn, "verify": json.loads(run("verify", path, "--json"))}


def main() -> None:
    """Write what is asked for."""
    if "--draw" in sys.argv[1:]:
        draw_releases()
    found = {name: answer(HERE / f"{name}.json") for name in RELEASES}
    (HERE / "answers.json").write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
