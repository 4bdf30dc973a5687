"""What importing costs: none of the heavy packages, and a smoke bound on the time."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import discreet

HEAVY = {"numba", "matplotlib", "duckdb", "opendp", "pyarrow", "pandas", "polars", "scipy", "sklearn", "ibis",
         "pyspark", "networkx", "pgmpy", "pyagrum", "psycopg"}  # fmt: skip
SECONDS = 1.5
"""Thrice the promise of 0.5 s, of a processor: other work does not count. `benchmarks/startup.py` prints the figure."""

PROBE = """
import json, sys, time
start = time.process_time()
{statement}
seconds = time.process_time() - start
print(json.dumps([seconds, sorted({{name.partition(".")[0] for name in sys.modules}})]))
"""


def probe(statement: str) -> tuple[float, set[str]]:
    """The seconds of a processor that a statement takes in a new interpreter, and the packages that it loads."""
    answer = subprocess.run(
        [sys.executable, "-c", PROBE.format(statement=statement)],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip
    seconds, packages = json.loads(answer.stdout)
    return seconds, set(packages)


@pytest.mark.parametrize(
    "statement", ["import discreet", "from discreet import *", "import discreet.doors.cli"]
)
def test_nothing_heavy_is_imported(statement: str) -> None:
    """The package, its public names and the command line load no engine before it is used."""
    _, packages = probe(statement)
    assert "discreet" in packages
    assert packages & HEAVY == set()


def test_the_probe_sees_a_heavy_import() -> None:
    """The check above can fail."""
    assert "duckdb" in probe("import duckdb")[1] & HEAVY


def test_import_is_quick() -> None:
    """The best of three imports stays below the smoke bound."""
    assert min(probe("import discreet")[0] for _ in range(3)) < SECONDS


def test_public_names_resolve() -> None:
    """Each name of `__all__` is there and listed by dir(); an unknown one is an AttributeError."""
    assert len(set(discreet.__all__)) == len(discreet.__all__)
    assert set(discreet.__all__) <= set(dir(discreet))
    for name in discreet.__all__:
        assert getattr(discreet, name) is not None
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = discreet.no_such_name


def test_type_checkers_see_the_same_names() -> None:
    """The imports under TYPE_CHECKING name exactly what is lazily there, from the same modules."""
    tree = ast.parse(Path(discreet.__file__).read_text(encoding="utf-8"))
    guarded = next(
        node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {}
    for node in guarded.body:
        assert isinstance(node, ast.ImportFrom)
        seen |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
    named = {
        name: f"{home}.{name}" for name, home in discreet._HOMES.items() if name not in discreet._MODULES
    }
    modules = {name: discreet._HOMES[name] for name in discreet._MODULES}
    assert {name: f"{module}.{found}" for name, (module, found) in seen.items()} == named | modules
    assert sorted(discreet.__all__) == sorted([*seen, "__version__"])
