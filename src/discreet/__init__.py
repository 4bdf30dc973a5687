"""discreet publishes what a sensitive table knows, and not who is in it."""

from __future__ import annotations

TYPE_CHECKING = (
    False  # not imported: nothing is, so that Ctrl-C in the first moments finds a command that handles it
)
if TYPE_CHECKING:
    from discreet import learners as learn
    from discreet.core.airlock import Airlock
    from discreet.core.ledger import Ledger
    from discreet.doors.draft import draft
    from discreet.doors.library import audit, plan, sign, verify
    from discreet.doors.publishing import agree, combine
    from discreet.doors.release import Release, read, release
    from discreet.doors.synthesis import Synthesizer, synthesize
    from discreet.entrance import open_airlock, open_ledger
    from discreet.learning import greedy as structure
    from discreet.networks import credal, examples
    from discreet.networks.ensemble import pool
    from discreet.networks.formats.bif import read_bif, write_bif
    from discreet.networks.formats.release import read_network, read_release, write_network, write_release
    from discreet.networks.network import Network
    from discreet.networks.synthetic import Rows
    from discreet.papers import posterior
    from discreet.values import errors
    from discreet.values.budget import ZCDP, ApproxDP, PureDP
    from discreet.values.graph import DAG
    from discreet.values.measurement import Measurement
    from discreet.values.schema import Attribute, Reading, Schema
    from discreet.values.schema.bins import Bins
    from discreet.values.schema.taxonomy import Taxonomy
    from discreet.values.table import Table
    from discreet.values.unit import Unit

__version__ = "0.2.0"

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
    "Reading",
    "Release",
    "Rows",
    "Schema",
    "Synthesizer",
    "Table",
    "Taxonomy",
    "Unit",
    "__version__",
    "agree",
    "audit",
    "combine",
    "credal",
    "draft",
    "errors",
    "examples",
    "learn",
    "open_airlock",
    "open_ledger",
    "plan",
    "pool",
    "posterior",
    "read",
    "read_bif",
    "read_network",
    "read_release",
    "release",
    "sign",
    "structure",
    "synthesize",
    "verify",
    "write_bif",
    "write_network",
    "write_release",
]

# The module where each public name lives; loaded on first use, so that `import discreet` costs nothing.
_HOMES = {
    name: f"discreet.{module}"
    for module, names in {
        "core.airlock": "Airlock",
        "core.ledger": "Ledger",
        "doors.library": "audit plan sign verify",
        "doors.publishing": "agree combine",
        "doors.release": "Release read release",
        "doors.synthesis": "Synthesizer synthesize",
        "doors.draft": "draft",
        "entrance": "open_airlock open_ledger",
        "learners": "learn",
        "learning.greedy": "structure",
        "networks.credal": "credal",
        "networks.ensemble": "pool",
        "networks.examples": "examples",
        "networks.formats.bif": "read_bif write_bif",
        "networks.formats.release": "read_network read_release write_network write_release",
        "networks.network": "Network",
        "networks.synthetic": "Rows",
        "papers.posterior": "posterior",
        "values.budget": "ApproxDP PureDP ZCDP",
        "values.errors": "errors",
        "values.graph": "DAG",
        "values.measurement": "Measurement",
        "values.schema": "Attribute Reading Schema",
        "values.schema.bins": "Bins",
        "values.schema.taxonomy": "Taxonomy",
        "values.table": "Table",
        "values.unit": "Unit",
    }.items()
    for name in names.split()
}

_MODULES = frozenset({"credal", "errors", "examples", "learn", "posterior", "structure"})

if not TYPE_CHECKING:  # a type checker that saw this function would believe in every name

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise AttributeError(f"module 'discreet' has no attribute {name!r}")
        from importlib import import_module

        found = import_module(_HOMES[name])
        found = getattr(found, name) if name not in _MODULES else found
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES} - {"TYPE_CHECKING"})
