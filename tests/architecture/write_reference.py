"""Write the reference of the library: `python tests/architecture/write_reference.py` after a public name changed.

The page decides what is listed and where; what an entry says comes from the code. To list a name, add the line
| `name` | |
where it belongs and run this. An entry whose name is gone is removed; a public name without one is refused.
"""

from __future__ import annotations

import inspect
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import discreet

PAGE = Path(__file__).parents[2] / "docs" / "reference-api.md"
ENTRY = re.compile(r"^\| `([\w.]+)(\(.*?\))?` \| ?(.*?) ?\|$", re.MULTILINE)
LISTED = ("credal", "learn", "posterior")
"""Modules of which every public name is on the page, too."""


def find(name: str) -> Any:
    """The object behind a name of the page: of the package, of a class in it, or of a module at any depth."""
    parts = name.split(".")
    found: Any = discreet
    if parts[0] == "discreet":
        depth = 1
        while depth < len(parts) and inspect.ismodule(found) and _is_module(parts[: depth + 1]):
            depth += 1
            found = import_module(".".join(parts[:depth]))
        parts = parts[depth:]
    for part in parts:
        found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
    return found


def _is_module(parts: list[str]) -> bool:
    try:
        return find_spec(".".join(parts)) is not None
    except ModuleNotFoundError:  # what stands before the last dot is no package
        return False


def describe(found: Any) -> tuple[str, str]:
    """The parameters of a function, without types and defaults, and the first line of a docstring."""
    words = (inspect.getdoc(found) or "").split("\n")[0].replace("|", "\\|")
    function = getattr(found, "__func__", found)
    if isinstance(found, property) or inspect.isclass(found) or not callable(function):
        return "", words
    shown, starred = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            shown.append("*")
        shown.append(parameter.name)
    return f"({', '.join(shown)})", words


def list_public() -> set[str]:
    """Every name that the page must have."""
    inner = {f"{module}.{name}" for module in LISTED for name in getattr(discreet, module).__all__}
    return set(discreet.__all__) - {"__version__"} | inner


def write(page: str) -> str:
    """The page with every entry as the code has it."""
    lines = []
    for line in page.splitlines():
        entry = ENTRY.match(line)
        if entry is None:
            lines.append(line)
            continue
        try:
            call, words = describe(find(entry[1]))
        except AttributeError:
            print(f"removed: {entry[1]} is gone")
            continue
        lines.append(f"| `{entry[1]}{call}` | {words} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    written = write(PAGE.read_text("utf-8"))
    PAGE.write_text(written, "utf-8")
    missing = sorted(list_public() - {entry[0] for entry in ENTRY.findall(written)})
    sys.exit(f"not on the page yet: {', '.join(missing)}" if missing else 0)
