"""The four networks that papers in this field run on, inside the package: no download, no other package."""

from __future__ import annotations

from importlib import resources

from discreet.networks.formats.bif import parse_bif
from discreet.networks.network import Network
from discreet.values.errors import NetworkError

_NAMES = ("asia", "sachs", "child", "alarm")


def names() -> tuple[str, ...]:
    """The names of the networks, smallest first."""
    return _NAMES


def load(name: str) -> Network:
    """The network of this name."""
    if name not in _NAMES:
        raise NetworkError(f"unknown example {name!r}; there are {', '.join(_NAMES)}")
    file = f"{name}.bif"
    return parse_bif(resources.files(__name__).joinpath(file).read_text(encoding="utf-8"), file)


def asia() -> Network:
    """Chest clinic: 8 nodes, 8 arcs, 18 parameters (Lauritzen and Spiegelhalter 1988)."""
    return load("asia")


def sachs() -> Network:
    """Protein signalling: 11 nodes, 17 arcs, 178 parameters (Sachs et al. 2005)."""
    return load("sachs")


def child() -> Network:
    """Heart disease of the newborn: 20 nodes, 25 arcs, 230 parameters (Spiegelhalter and Cowell 1992)."""
    return load("child")


def alarm() -> Network:
    """Monitoring of patients: 37 nodes, 46 arcs, 509 parameters (Beinlich et al. 1989)."""
    return load("alarm")
