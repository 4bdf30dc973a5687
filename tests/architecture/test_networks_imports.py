"""The room of networks has no import cycle, whether at the top of a module, inside a function or for types only."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

ROOM = Path(__file__).resolve().parents[2] / "src" / "discreet" / "networks"
PACKAGE = "discreet.networks"


def read_sources() -> dict[str, str]:
    """The text of every module of the room, by its dotted name."""
    found = {}
    for path in sorted(ROOM.rglob("*.py")):
        parts = path.relative_to(ROOM).with_suffix("").parts
        found[".".join((PACKAGE, *parts)).removesuffix(".__init__")] = path.read_text("utf-8")
    return found


def draw_imports(sources: Mapping[str, str]) -> dict[str, set[str]]:
    """For each module the modules of the room that it imports anywhere, with the packages that this loads first."""
    arrows: dict[str, set[str]] = {}
    for module, text in sources.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.module and not node.level, f"{module} imports by a relative name"
                named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                named |= {part.value for part in ast.walk(node) if isinstance(part, ast.Constant)}
        loaded = {".".join(name.split(".")[:k]) for name in named for k in range(1, name.count(".") + 2)}
        # A module's own package is there before it is.
        around = {".".join(module.split(".")[:k]) for k in range(1, module.count(".") + 1)}
        arrows[module] = (loaded & set(sources)) - {module} - around
    return arrows


def find_cycle(arrows: Mapping[str, set[str]]) -> list[str]:
    """Modules that cannot be put in an order in which each imports only earlier ones; empty if there is an order."""
    left = {module: set(named) for module, named in arrows.items()}
    while free := [module for module, named in left.items() if not named]:
        for module in free:
            del left[module]
        for named in left.values():
            named.difference_update(free)
    return sorted(left)


def test_no_module_imports_one_that_imports_it() -> None:
    arrows = draw_imports(read_sources())
    assert arrows[f"{PACKAGE}.network"], "no imports found: the check would pass on nothing"
    assert find_cycle(arrows) == []


def test_planted_cycles_are_found() -> None:
    """Lazily, for types, by name of a package, and around a corner."""
    sources = read_sources()
    planted = {
        "network": "\ndef write(path):\n    from discreet.networks.formats.bif import write_bif\n",
        "intervals": "\nif TYPE_CHECKING:\n    from discreet.networks.network import Network\n",
        "evidence": "\nfrom discreet.networks import question\n",
        "answer": '\ndef load():\n    return importlib.import_module("discreet.networks.credal")\n',
        "provenance": "\nimport discreet.networks.posterior\n",
    }
    for module, line in planted.items():
        name = f"{PACKAGE}.{module}"
        assert name in find_cycle(draw_imports({**sources, name: sources[name] + line})), module
