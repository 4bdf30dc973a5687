"""The reference of the library: every public name is there, with its parameters and its docstring's first line."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import discreet

PAGE = Path(__file__).parents[2] / "docs" / "reference-api.md"
ENTRY = re.compile(r"^\| `([\w.]+)(\(.*?\))?` \| (.*) \|$", re.MULTILINE)
ENTRIES = {name: (call, words) for name, call, words in ENTRY.findall(PAGE.read_text("utf-8"))}
MODULES = {"credal", "learn", "posterior"}


def find(name: str) -> Any:
    """The object behind a name of the page: of the package, of a class in it, or of a module by its full name."""
    parts = name.split(".")
    if parts[0] in discreet.__all__:
        found: Any = discreet
    else:
        depth = len(parts)
        while find_spec_of(parts[:depth]) is None:
            depth -= 1
        found, parts = import_module(".".join(parts[:depth])), parts[depth:]
    for part in parts:
        found = inspect.getattr_static(found, part) if inspect.isclass(found) else getattr(found, part)
    return found


def find_spec_of(parts: list[str]) -> ModuleSpec | None:
    """The module of a dotted name, if there is one."""
    try:
        return find_spec(".".join(parts))
    except ModuleNotFoundError:  # what stands before the last dot is no package
        return None


def describe(found: Any) -> tuple[str, str]:
    """The parameters of a function, without types and defaults, and the first line of a docstring."""
    words = (inspect.getdoc(found) or "").split("\n")[0].replace("|", "\\|")
    if (
        isinstance(found, property)
        or inspect.isclass(found)
        or not callable(getattr(found, "__func__", found))
    ):
        return "", words
    signature = inspect.signature(getattr(found, "__func__", found))
    shown, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            starred = True
            shown.append("*")
        shown.append(parameter.name)
    return f"({', '.join(shown)})", words


def test_every_public_name_is_on_the_page() -> None:
    wanted = {
        name
        for name in discreet.__all__
        if name not in (*MODULES, "__version__", "errors", "examples", "structure")
    }
    wanted |= {f"{module}.{name}" for module in MODULES for name in getattr(discreet, module).__all__}
    assert wanted <= set(ENTRIES), sorted(wanted - set(ENTRIES))


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_entry_is_true(name: str) -> None:
    assert ENTRIES[name] == describe(find(name))
