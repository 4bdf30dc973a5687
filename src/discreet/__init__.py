"""discreet publishes what a sensitive table knows, and not who is in it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from discreet.learning import learn, posterior, structure
    from discreet.models import credal, examples
    from discreet.models.bif import read_bif, write_bif
    from discreet.models.network import Network
    from discreet.models.network_json import read_network, write_network
    from discreet.models.release import read_release, write_release
    from discreet.models.rows import Rows
    from discreet.privacy.airlock import Airlock
    from discreet.privacy.budget import ZCDP, ApproxDP, PureDP, Unit
    from discreet.privacy.ledger import Ledger, open_ledger
    from discreet.vocabulary import errors
    from discreet.vocabulary.bins import Bins
    from discreet.vocabulary.graph import DAG
    from discreet.vocabulary.measurement import Measurement
    from discreet.vocabulary.schema import Attribute, Schema
    from discreet.vocabulary.table import Table
    from discreet.vocabulary.taxonomy import Taxonomy

__version__ = "0.1.0"

__all__ = [
    "DAG",
    "ZCDP",
    "Airlock",
    "ApproxDP",
    "Attribute",
    "Bins",
    "Ledger",
    "Measurement",
    "Network",
    "PureDP",
    "Rows",
    "Schema",
    "Table",
    "Taxonomy",
    "Unit",
    "__version__",
    "credal",
    "errors",
    "examples",
    "learn",
    "open_ledger",
    "posterior",
    "read_bif",
    "read_network",
    "read_release",
    "structure",
    "write_bif",
    "write_network",
    "write_release",
]

# The module where each public name lives; loaded on first use, so that `import discreet` costs nothing.
_HOMES = {
    "Airlock": "discreet.privacy.airlock",
    "ApproxDP": "discreet.privacy.budget",
    "Attribute": "discreet.vocabulary.schema",
    "Bins": "discreet.vocabulary.bins",
    "DAG": "discreet.vocabulary.graph",
    "Ledger": "discreet.privacy.ledger",
    "Measurement": "discreet.vocabulary.measurement",
    "Network": "discreet.models.network",
    "PureDP": "discreet.privacy.budget",
    "Rows": "discreet.models.rows",
    "Schema": "discreet.vocabulary.schema",
    "Table": "discreet.vocabulary.table",
    "Taxonomy": "discreet.vocabulary.taxonomy",
    "Unit": "discreet.privacy.budget",
    "ZCDP": "discreet.privacy.budget",
    "credal": "discreet.models",
    "errors": "discreet.vocabulary",
    "examples": "discreet.models",
    "learn": "discreet.learning",
    "open_ledger": "discreet.privacy.ledger",
    "posterior": "discreet.learning",
    "read_bif": "discreet.models.bif",
    "read_network": "discreet.models.network_json",
    "read_release": "discreet.models.release",
    "structure": "discreet.learning",
    "write_bif": "discreet.models.bif",
    "write_network": "discreet.models.network_json",
    "write_release": "discreet.models.release",
}

if not TYPE_CHECKING:  # a type checker that saw this function would believe in every name

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module 'discreet' has no attribute {name!r}")
        home = import_module(_HOMES[name])
        found = getattr(home, name) if hasattr(home, name) else import_module(f"{home.__name__}.{name}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
