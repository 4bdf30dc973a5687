"""How much a reviewer has to read: the trusted core stays small, and one job passes through few files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_CORE_LINES = 2000
MOST_FILES = {"release": 51, "search": 56, "query": 33}
MOST_MODULES = 13
"""Of one folder, its `__init__` left out."""


def load(name: str) -> ModuleType:
    """A script of the benchmarks."""
    found = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def paths() -> dict[str, list[str]]:
    """The files that each job enters."""
    found: dict[str, list[str]] = load("_paths").trace()
    return found


def test_the_core_is_read_in_an_hour() -> None:
    """At most 2,000 lines that are not blank, in one folder without folders in it."""
    folder = ROOT / "src" / "discreet" / "core"
    modules = sorted(folder.rglob("*.py"))
    assert {path.parent for path in modules} == {folder} and folder / "airlock.py" in modules
    lines = sum(1 for path in modules for line in path.read_text("utf-8").splitlines() if line.strip())
    assert lines == load("_paths").count_lines("core")
    assert 1000 < lines <= MOST_CORE_LINES


def test_no_folder_has_too_many_modules() -> None:
    """About a dozen at one level; more is a folder that nobody can take in."""
    folders = {path.parent for path in (ROOT / "src" / "discreet").rglob("*.py")}
    assert len(folders) > 10
    counts = {str(folder.relative_to(ROOT)): len(list(folder.glob("[!_]*.py"))) for folder in folders}
    assert {name: count for name, count in counts.items() if count > MOST_MODULES} == {}


@pytest.mark.parametrize("job", MOST_FILES)
def test_a_job_passes_through_few_files(paths: dict[str, list[str]], job: str) -> None:
    """Counted by running it; each job enters what it must, so a trace that saw nothing fails as well."""
    must = {"release": "core/airlock.py", "search": "core/scores.py", "query": "networks/network.py"}[job]
    assert must in paths[job]
    assert len(paths[job]) <= MOST_FILES[job], paths[job]


def test_the_page_lists_the_paths_as_they_are(paths: dict[str, list[str]]) -> None:
    """`python benchmarks/size.py --write` writes them."""
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    assert load("_paths").format_paths(paths) in page
