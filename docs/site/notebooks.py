"""Notebooks that run: `python docs/site/notebooks.py` runs them all and keeps what they print; the site shows both.

A notebook is plain JSON (nbformat 4). Its cells run here one after the other in one namespace and an empty folder, as
Jupyter would run them, without Jupyter.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

PLACE = Path(__file__).parents[1] / "notebooks"


def run_cells(cells: list[dict[str, Any]]) -> None:
    """Run the code of a notebook and put what each cell prints, and the value of its last line, into its outputs."""
    known: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, cell in enumerate((cell for cell in cells if cell["cell_type"] == "code"), 1):
            said = io.StringIO()
            tree = ast.parse("".join(cell["source"]))
            last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
            with contextlib.redirect_stdout(said):
                exec(compile(tree, f"cell {number}", "exec"), known)
                if last is not None:
                    value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), known)
                    if value is not None:
                        print(value)
            text = said.getvalue()
            cell["execution_count"] = number
            cell["outputs"] = (
                [{"output_type": "stream", "name": "stdout", "text": text.splitlines(keepends=True)}]
                if text
                else []
            )


def read_notebook(path: Path) -> dict[str, Any]:
    """A notebook as plain values."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


def show_notebook(notebook: dict[str, Any]) -> str:
    """A notebook as a page: text, code, and what the code printed when it last ran."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        printed = "".join(line for output in cell["outputs"] for line in output["text"]).rstrip()
        if printed:
            parts.append(f"```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Run every notebook and write it back."""
    os.environ["COLUMNS"] = "100"
    for path in sorted(PLACE.glob("*.ipynb")):
        notebook = read_notebook(path)
        run_cells(notebook["cells"])
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
        print(path)


if __name__ == "__main__":
    main()
