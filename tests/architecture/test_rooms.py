"""The arrows of the architecture: the import contracts hold, and a planted arrow back breaks them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PLANTED = {
    "a table that opens the core's drawer": ("values/table.py", "import discreet.core.noise"),
    "a core that reads files by itself": ("core/airlock.py", "import discreet.rows.limits"),
    "a core that knows where its ledger lies": ("core/ledger.py", "import discreet.stores.sqlite"),
    "a core that computes": ("core/queries.py", "import discreet.compute.consistency"),
    "a computation that imports the room of networks": (
        "compute/__init__.py",
        "import discreet.networks.network",
    ),
    "an estimate that goes back to the rows": ("networks/network.py", "import discreet.rows.limits"),
    "a network that asks what it cost": ("networks/network.py", "import discreet.core.ledger"),
    "a learner that opens the rows itself": ("learning/planned.py", "import discreet.entrance"),
    "a learner that draws its own noise": ("learning/adaptive.py", "import discreet.core.noise"),
    "noise drawn outside core.noise": ("values/budget.py", "import opendp.prelude"),
    "rows queried outside rows": ("networks/network.py", "import duckdb"),
    "an audit that draws noise": ("judge/__init__.py", "import discreet.core.noise"),
    "an audit that spends budget": ("judge/__init__.py", "import discreet.core.airlock"),
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the contracts of `folder/pyproject.toml` over the package in `folder/src`."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "COLUMNS": "200"}
    return subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_import_contracts_hold() -> None:
    """Every module imports only what its layer may."""
    answer = lint_imports(ROOT)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "0 broken" in answer.stdout


@pytest.mark.parametrize("offence", PLANTED)
def test_a_planted_import_breaks_a_contract(offence: str, tmp_path: Path) -> None:
    """A contract that cannot fail is no contract: each forbidden arrow, once drawn, is reported."""
    module, line = PLANTED[offence]
    for name in (module, target_file(line)):
        assert not name or (ROOT / "src/discreet" / name).exists(), (
            f"{name} is gone: plant the offence elsewhere"
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "src/discreet" / module).open("a", encoding="utf-8") as source:
        source.write(f"\n{line}\n")
    answer = lint_imports(tmp_path)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert "BROKEN" in answer.stdout


def target_file(line: str) -> str:
    """The file or folder that an import line names, if it is one of ours."""
    name = line.removeprefix("import ")
    if not name.startswith("discreet."):
        return ""
    relative = name.removeprefix("discreet.").replace(".", "/")
    return relative if (ROOT / "src/discreet" / relative).is_dir() else f"{relative}.py"
