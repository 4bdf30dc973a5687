"""The notebooks of the documents run, and the site shows what is in them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def load(name: str) -> ModuleType:
    """A script of docs/site."""
    found = importlib.util.spec_from_file_location(name, ROOT / "docs" / "site" / f"{name}.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_there_are_notebooks_and_each_is_in_the_site() -> None:
    assert len(NOTEBOOKS) >= 2
    pages = (ROOT / "mkdocs.yml").read_text("utf-8")
    assert all(f"notebooks/{path.stem}.md" in pages for path in NOTEBOOKS)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_prints_as_much_as_it_shows(path: Path) -> None:
    runner = load("notebooks")
    notebook = runner.read_notebook(path)
    shown = [bool(cell["outputs"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    runner.run_cells(notebook["cells"])
    printed = [
        "".join(cell["outputs"][0]["text"]) if cell["outputs"] else ""
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    assert [bool(text) for text in printed] == shown and any(shown)
    page = runner.show_notebook(notebook)
    assert page.startswith("# ") and all(text.rstrip() in page for text in printed)
    assert "it adds up" in printed[-1]


def test_a_notebook_that_fails_is_caught() -> None:
    runner = load("notebooks")
    with pytest.raises(ZeroDivisionError):
        runner.run_cells([{"cell_type": "code", "source": ["1 / 0"], "outputs": []}])
