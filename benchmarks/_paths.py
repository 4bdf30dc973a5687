"""Which files of ours one job passes through: a new interpreter runs it, and every function that is entered is noted.

Bodies of modules and classes do not count: that a file is imported says nothing of whether it does anything.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

PREPARE = """
import discreet as dc
clinic = dc.examples.asia()
clinic.sample(10_000, rng=1).write("patients.parquet")
clinic.schema.write("schema.toml")
clinic.write_bif("graph.bif")
"""
JOBS = {
    "release": """
import discreet as dc
made = dc.release(
    "patients.parquet", "schema.toml", "graph.bif", epsilon=1, ledger="l", account="a", create=True
)
made.write("r.json")
""",
    "search": """
import discreet as dc
dc.release("patients.parquet", "schema.toml", rho="1/8", ledger="m", account="a", create=True).write("s.json")
""",
    "query": """
import discreet as dc
dc.read("r.json").query("lung", given={"smoke": "yes"})
""",
}
"""A release with a graph, one by search, and a query with intervals of the first; each from files to its answer."""

TRACER = """
import json, sys, threading
seen = {{}}
def note(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith({root!r}):
        seen.setdefault(code.co_filename[len({root!r}) + 1:], None)
job = compile({job!r}, "job", "exec")
threading.setprofile(note)
sys.setprofile(note)
exec(job, {{}})
sys.setprofile(None)
print(json.dumps(list(seen)))
"""


def trace() -> dict[str, list[str]]:
    """The files of `src/discreet` that each job enters, in the order in which it does."""
    root = str(ROOT / "src" / "discreet")
    with tempfile.TemporaryDirectory() as folder:
        _run(PREPARE, folder)
        return {
            name: json.loads(_run(TRACER.format(root=root, job=job), folder).splitlines()[-1])
            for name, job in JOBS.items()
        }


def count_lines(folder: str = "") -> int:
    """The lines of all modules below a folder of `src/discreet`, blank ones left out."""
    modules = (ROOT / "src" / "discreet" / folder).rglob("*.py")
    return sum(1 for path in modules for line in path.read_text("utf-8").splitlines() if line.strip())


def format_paths(paths: dict[str, list[str]]) -> str:
    """The paths as Markdown, a list for each job."""
    titles = {
        "release": "A release with a graph",
        "search": "A release by search in ρ",
        "query": "A query with intervals",
    }
    parts = []
    for name, files in paths.items():
        rooms: dict[str, list[str]] = {}
        for file in files:
            room, _, rest = file.rpartition("/")
            rooms.setdefault(room or ".", []).append(rest.removesuffix(".py"))
        lines = [
            f"| `{room}` | {', '.join(f'`{module}`' for module in found)} |" for room, found in rooms.items()
        ]
        parts.append(
            f"**{titles[name]}**: {len(files)} files\n\n| room | modules, as they are entered |\n|---|---|\n"
            + "\n".join(lines)
        )
    return "\n\n".join(parts) + "\n"


def _run(code: str, folder: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=300
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout
