"""discreet publishes what a sensitive table knows, and not who is in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.vocabulary import errors
    from discreet.vocabulary.graph import DAG
    from discreet.vocabulary.table import Table

__version__ = "0.1.0"

__all__ = ["DAG", "Table", "__version__", "errors"]

# Where each public name lives: its module, or (module, name there). Imported on first use, so that
# `import discreet` costs nothing but this file.
_HOMES: dict[str, str | tuple[str, str]] = {
    "DAG": "discreet.vocabulary.graph",
    "Table": "discreet.vocabulary.table",
    "errors": "discreet.vocabulary",
}

if not TYPE_CHECKING:  # a type checker that saw this function would believe in every name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'discreet' has no attribute {name!r}")
        home = _HOMES[name]
        module, inner = home if isinstance(home, tuple) else (home, name)
        holder = import_module(module)
        found = getattr(holder, inner) if hasattr(holder, inner) else import_module(f"{module}.{inner}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
