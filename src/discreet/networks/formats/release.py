"""A release: one JSON document with the network, the noisy tables behind it, and what is promised about privacy.

    {"format": "discreet-release", "version": 1, "promise": "…", "network": {…}, "provenance": {…},
     "software": {…}}

It holds no code and nothing private: every number in it was paid for. `judgement.verify` re-derives what it can.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from discreet.networks.formats.network_json import MAX_BYTES, describe_network, load_strictly, restore_network
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import ZCDP, ApproxDP, Infinite
from discreet.values.errors import DiscreetError, FormatError, TooLarge
from discreet.values.files import read_text, write_text
from discreet.values.measurement import Measurement, read_cost, read_unit
from discreet.values.statement import Statement
from discreet.values.unit import Unit
from discreet.values.wording import list_some, show

FORMAT = "discreet-release"
VERSION = 1
KEYS = ("format", "version", "promise", "network", "provenance", "software")
SOFTWARE = ("discreet", "numpy", "opendp")
VERSION_TEXT = re.compile(r"[0-9A-Za-z.+!_-]{1,60}")


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A published network and the words and versions that were written down with it."""

    network: Network
    promise: str
    software: Mapping[str, str]

    @property
    def provenance(self) -> Provenance:
        """Where the network comes from; a release always says."""
        assert self.network.provenance is not None
        return self.network.provenance


def make_release(network: Network) -> Release:
    """The release of a network that was learned through an airlock."""
    if network.provenance is None:
        raise FormatError(
            "this network was not learned from private rows; write it with write_network or write_bif"
        )
    return Release(network, state_promise(network.provenance), _list_software())


def write_release(network: Network | Release, path: str | os.PathLike[str]) -> None:
    """Write a release, all or nothing; packed by gzip if the name ends in .gz."""
    release = network if isinstance(network, Release) else make_release(network)
    write_text(path, format_release(release))


def read_release(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Release:
    """The release in a file, checked for form; whether its figures add up is for `judgement.verify` to say."""
    return parse_release(read_text(path, max_bytes), os.fspath(path))


def format_release(release: Release) -> str:
    """A release as JSON text, a part to a line; the same release always gives the same text."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "promise": release.promise,
        "network": describe_network(release.network),
        "provenance": describe_provenance(release.provenance),
        "software": dict(release.software),
    }
    parts = (
        f'"{key}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}'
        for key, value in document.items()
    )
    return "{" + ",\n".join(parts) + "}\n"


def parse_release(text: str, source: str = "JSON text") -> Release:
    """The release in a JSON text; `source` is how messages call it."""
    try:
        return _restore(load_strictly(text))
    except TooLarge as error:
        raise TooLarge(f"{source}: {error}") from None
    except DiscreetError as error:
        raise FormatError(f"{source}: {error}") from None


def describe_provenance(provenance: Provenance) -> dict[str, Any]:
    """Provenance as plain JSON values."""
    return {
        "learner": provenance.learner,
        "unit": provenance.unit.value,
        "cost": provenance.cost.to_json(),
        "measurements": [measurement.to_json() for measurement in provenance.measurements],
        "predicted error": dict(provenance.predicted_error),
        "details": dict(provenance.details),
        "statement": {} if provenance.statement is None else provenance.statement.to_json(),
    }


def state_promise(provenance: Provenance) -> str:
    """The privacy promise in words that a board understands; it covers everything paid for from the account."""
    if provenance.statement is None:
        raise FormatError("without the statement of the account that paid for it nothing can be promised")
    loss = provenance.statement.loss
    hidden = {
        Unit.ADD_REMOVE: "whether any one row is in the table or not",
        Unit.REPLACE_ONE: "what any one row of the table says",
    }[provenance.unit]
    if isinstance(loss, Infinite):
        return "No privacy is promised: rows of this table were looked at without noise."
    if isinstance(loss, ZCDP):
        rho = float(loss.rho)
        return (
            f"This release hides {hidden}: together with all else that was paid for from the same account it is "
            f"ρ-zero-concentrated differentially private with ρ = {loss.rho} "
            f"(for δ = 10⁻⁶, ε is at most {rho + 2 * math.sqrt(rho * math.log(1e6)):.3g})."
        )
    delta = f" up to a chance of δ = {loss.delta}" if isinstance(loss, ApproxDP) and loss.delta else ""
    return (
        f"This release hides {hidden}: together with all else that was paid for from the same account, it makes "
        f"nothing that anyone could conclude more than {math.exp(float(loss.epsilon)):.3g} times as likely "
        f"(ε = {loss.epsilon}){delta}."
    )


def _restore(document: object) -> Release:
    if not isinstance(document, Mapping) or document.get("format") != FORMAT:
        raise FormatError(f"not a release of discreet: the key 'format' must be {FORMAT!r}")
    found = document.get("version")
    if type(found) is not int or found < 1:
        raise FormatError(f"version {show(found)} is not a whole number above 0")
    if found > VERSION:
        raise FormatError(f"version {found} was written by a newer discreet; this one reads up to {VERSION}")
    if set(document) != set(KEYS):
        raise FormatError(f"the keys are {list_some(sorted(document))}; a release has {list_some(KEYS)}")
    software = document["software"]
    if not isinstance(software, Mapping) or not all(
        isinstance(value, str) and VERSION_TEXT.fullmatch(value) for value in software.values()
    ):
        raise FormatError("software must list versions as text")
    _refuse_strange("software", software, SOFTWARE)
    if not isinstance(document["promise"], str):
        raise FormatError("the promise must be text")
    network = restore_network(document["network"])
    provenance = _restore_provenance(document["provenance"], network)
    return Release(replace(network, provenance=provenance), document["promise"], dict(software))


def _restore_provenance(document: object, network: Network) -> Provenance:
    keys = {"learner", "unit", "cost", "measurements", "predicted error", "details", "statement"}
    if not isinstance(document, Mapping) or set(document) != keys:
        raise FormatError(f"the provenance of a release has the keys {list_some(sorted(keys))}")
    for key, kind in {
        "learner": str,
        "measurements": list,
        "cost": dict,
        "details": dict,
        "statement": dict,
    }.items():
        if not isinstance(document[key], kind):
            raise FormatError(f"the {key} of a release cannot be {show(document[key])}")
    errors = document["predicted error"]
    if not isinstance(errors, dict) or not all(isinstance(value, float | int) for value in errors.values()):
        raise FormatError("the predicted errors of a release are numbers by attribute")
    measurements = tuple(Measurement.from_json(found) for found in document["measurements"])
    for measurement in measurements:
        for name, size in measurement.noisy.sizes.items():
            if name not in network.schema or network.schema[name].size != size:
                raise FormatError(
                    f"a measurement over {show(name)} with {size} levels does not fit the schema"
                )
    return Provenance(
        document["learner"],
        read_unit(document["unit"]),
        read_cost(document["cost"]),
        measurements,
        errors,
        document["details"],
        Statement.from_json(document["statement"]) if document["statement"] else None,
    )


def _refuse_strange(what: str, document: object, known: Collection[str]) -> None:
    strange = [key for key in document if key not in known] if isinstance(document, Mapping) else []
    if strange:
        raise FormatError(f"{what} has the key {show(strange[0])}; known are {list_some(sorted(known))}")


def _list_software() -> dict[str, str]:
    found = {}
    for name in SOFTWARE:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
