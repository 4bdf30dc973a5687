"""A release: one JSON document with the network, the noisy tables behind it, and what is promised about privacy.

    {"format": "discreet-release", "version": 1, "promise": "…", "network": {…}, "provenance": {…},
     "software": {…}, "about": {…}}

It holds no code and nothing private: every number in it was paid for, and `about`, which may be missing, is what the
custodian says. `judge.verify` re-derives what it can. `read`, `read_model` and `read_graph` take from a file whatever
it turns out to hold, told by its content and not by its name.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from discreet.networks.credal_network import CREDAL_NETWORK, CredalNetwork
from discreet.networks.formats.bif import parse_bif
from discreet.networks.formats.digits import round_network
from discreet.networks.formats.documents import (
    MAX_BYTES,
    Kind,
    describe_provenance,
    parse_document,
    restore_provenance,
)
from discreet.networks.formats.edges import parse_edges
from discreet.networks.network import NETWORK, Network
from discreet.networks.posterior import POSTERIOR, Posterior
from discreet.networks.provenance import DISJOINT, Provenance
from discreet.values.about import About
from discreet.values.budget import ZCDP, ApproxDP, Finite, Infinite, imply_approx
from discreet.values.errors import FormatError, GraphError
from discreet.values.files import read_text, require_own_file, write_text
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.statement import Statement
from discreet.values.text import list_some, require_keys, show

RELEASE = Kind(
    "a release", "discreet-release", ("promise", "network", "provenance", "software"), optional=("about",)
)
SOFTWARE = ("discreet", "numpy", "opendp")
SIMULATED = (
    "No ledger that lasts has written this down: what else is asked of the same rows comes on top, and nobody adds "
    "it up."
)
"""What a promise ends with if it was paid for from memory."""
ONCE_SIMULATED = (
    "No ledger that lasts has written this down, so nobody can tell what else was asked of the same rows: this is a "
    "simulation."
)
"""What it ended with in earlier releases, which stay valid."""
VERSION_TEXT = re.compile(
    r"[0-9]{1,4}(\.[0-9]{1,4}){1,3}((a|b|rc)[0-9]{1,2})?(\.post[0-9]{1,2})?(\.dev[0-9]{1,4})?|unknown"
)
"""Short version numbers, so that no message can pass as one; what an installation adds of its own is left out."""


ROWS = (".csv", ".tsv", ".parquet", ".arrow", ".feather", ".xlsx", ".dta", ".sas7bdat")
"""How files of rows end, which people confuse with a release."""


@dataclass(frozen=True, slots=True, eq=False)
class Release:
    """A published network and the words and versions that were written down with it."""

    network: Network
    promise: str
    software: Mapping[str, str]
    about: About | None = None
    """The custodian's own words, where there are any."""

    @property
    def provenance(self) -> Provenance:
        """Where the network comes from; a release always says."""
        assert self.network.provenance is not None
        return self.network.provenance


Model = Release | Network | CredalNetwork | Posterior
"""What a file may hold."""


def make_release(network: Network, about: About | None = None) -> Release:
    """The release of a network that was learned through an airlock, with what the custodian says about it."""
    if network.provenance is None:
        raise FormatError(
            "this network was not learned from private rows; write it with write_network or write_bif"
        )
    made = round_network(network)
    assert made.provenance is not None
    return Release(made, state_promise(made.provenance), list_software(), about)


def write_release(network: Network | Release, path: str | os.PathLike[str]) -> None:
    """Write a release, all or nothing; packed by gzip if the name ends in .gz."""
    release = network if isinstance(network, Release) else make_release(network)
    write_text(path, format_release(release))


def read_release(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Release:
    """The release in a file, checked for form; whether its figures add up is for `discreet.verify` to say."""
    path = find_document(path)
    return parse_release(read_text(path, max_bytes), os.fspath(path))


def find_document(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The file that is meant: of a folder that a release was written into, the document in it."""
    inside = Path(path) / "release.json"
    if not Path(path).is_dir() or not os.path.lexists(inside):
        return path
    require_own_file(inside)
    return inside


def read(path: str | os.PathLike[str]) -> Model:
    """The release, network, credal network or posterior in a JSON or BIF file, plain or gzip; told by its content.

    Of a folder that a release was written into, the release.
    """
    path = find_document(path)
    if Path(path).suffix.lower() in ROWS:
        raise FormatError(
            f"{os.fspath(path)}: a table of rows, by its name; a release or a network (.json, .bif) is needed"
        )
    return parse(read_text(path, MAX_BYTES), os.fspath(path))


def parse(text: str, source: str) -> Model:
    """What a text of any of these formats holds; `source` is how messages call it."""
    if not text.lstrip().startswith("{"):
        return parse_bif(text, source)
    return parse_document(text, source, _restore)


def format_release(release: Release) -> str:
    """A release as JSON text, a part to a line; the same release always gives the same text."""
    document = RELEASE.describe(
        promise=release.promise,
        network=release.network.to_json(),
        provenance=describe_provenance(release.provenance),
        software={name: release.software[name] for name in SOFTWARE if name in release.software},
        about=None if release.about is None else release.about.to_json(),
    )
    return RELEASE.format_text(document)


def parse_release(text: str, source: str = "JSON text") -> Release:
    """The release in a JSON text; `source` is how messages call it."""
    return parse_document(text, source, _restore_release)


def _restore(document: object) -> Model:
    named = document.get("format") if isinstance(document, Mapping) else None
    if not isinstance(named, str) or named not in _RESTORE:
        raise FormatError(f"the key 'format' is {show(named)}; discreet reads {list_some(_RESTORE)}")
    return _RESTORE[named](document)


def _restore_release(document: object) -> Release:
    """The release in a document; anything else is refused."""
    found = RELEASE.check(document)
    software = found["software"]
    if not isinstance(software, Mapping) or not all(
        isinstance(value, str) and VERSION_TEXT.fullmatch(value) for value in software.values()
    ):
        raise FormatError('software must list short version numbers, such as "2.3.1"')
    require_keys(software, "the software", SOFTWARE)
    if not isinstance(found["promise"], str):
        raise FormatError("the promise must be text")
    network = Network.from_json(found["network"])
    provenance = restore_provenance(found["provenance"], network.schema)
    about = About.from_json(found["about"]) if "about" in found else None
    return Release(replace(network, provenance=provenance), found["promise"], dict(software), about)


def state_promise(provenance: Provenance) -> str:
    """The privacy promise in words that a board understands: what the whole account may ever give away.

    What one release cost is a part of that, and says nothing of the others, of which there may be more tomorrow.
    """
    if provenance.parts:
        return _state_joint(provenance)
    said = provenance.statement
    if said is None:
        raise FormatError("without the statement of the account that paid for it nothing can be promised")
    promised = said.promised
    if isinstance(promised, Infinite):
        return "No privacy is promised: rows of this table were looked at without noise."
    return (
        f"This release hides {provenance.unit.hidden}. All that may ever be published from the same account together "
        f"{_limit(promised)}. This release is {provenance.cost} of {_name_whole(said)}."
        + ("" if said.durable else f" {SIMULATED}")
    )


def _state_joint(provenance: Provenance) -> str:
    """The promises of several custodians, side by side: each for its own rows, and what they are worth together."""
    told = provenance.statements
    names = [said.account for said in told]
    open_rows = [said.account for said in told if isinstance(said.promised, Infinite)]
    if open_rows:
        return f"No privacy is promised: rows of {open_rows[0]} were looked at without noise."
    promised = [said.promised for said in told if not isinstance(said.promised, Infinite)]
    same = len({str(found) for found in promised}) == 1
    each = (
        f"All that may ever be published from the account of any one of them together {_limit(promised[0])}."
        if same
        else "All that may ever be published together "
        + "; ".join(
            f"from the account {name} {_limit(found)}" for name, found in zip(names, promised, strict=True)
        )
        + "."
    )
    if provenance.details.get("people") == DISJOINT:
        whom = "The custodians say that nobody is in two of their tables, so everybody has one of these promises."
    else:
        whom = (
            f"Somebody may be in several tables: to whoever is in all {len(told)}, the promises add up to "
            f"{provenance.promised}."
        )
    lasting = "" if all(said.durable for said in told) else f" {SIMULATED}"
    return (
        f"This release adds up what {len(told)} custodians have measured, each in a table of its own: "
        f"{list_some(names)}. Each hides {provenance.unit.hidden}. {each} {whom} This release cost nobody more than "
        f"{provenance.cost}.{lasting}"
    )


def _name_whole(said: Statement) -> str:
    return "it" if said.allowance is None else f"the {said.allowance} that this budget buys"


def describe_words(about: About | None, software: Mapping[str, str]) -> dict[str, Any]:
    """What a release says that follows from no answer: the custodian's own words, and what it was made with."""
    return {"about": {} if about is None else about.to_json(), "software": dict(software)}


def _limit(promised: Finite) -> str:
    if isinstance(promised, ZCDP):
        epsilon = float(imply_approx(promised, "1e-6").epsilon)
        return (
            f"is ρ-zero-concentrated differentially private with ρ = {promised.rho} "
            f"(for δ = 10⁻⁶, ε is at most {epsilon:.3g})"
        )
    chance = (
        f", up to a chance of δ = {promised.delta}"
        if isinstance(promised, ApproxDP) and promised.delta
        else ""
    )
    likelier = say_likelier(float(promised.epsilon))
    return f"makes nothing that anyone could conclude more than {likelier} (ε = {promised.epsilon}){chance}"


def say_likelier(epsilon: float) -> str:
    """e^ε in words: 0.1 % more likely, 2.72 times as likely, 10^347 times as likely."""
    if epsilon <= 0.1:
        return f"{100 * math.expm1(epsilon):.2g} % more likely"
    if epsilon <= 20:
        return f"{math.exp(epsilon):.3g} times as likely"
    return f"10^{epsilon / math.log(10):.0f} times as likely"


def list_software() -> dict[str, str]:
    """The versions that made a release, as short numbers."""
    found = {}
    for name in SOFTWARE:
        try:
            public = version(name).partition("+")[0]
        except PackageNotFoundError:
            public = "unknown"
        found[name] = public if VERSION_TEXT.fullmatch(public) else "unknown"
    return found


_RESTORE: dict[str, Callable[[object], Model]] = {
    RELEASE.format: _restore_release,
    NETWORK.format: Network.from_json,
    CREDAL_NETWORK.format: CredalNetwork.from_json,
    POSTERIOR.format: Posterior.from_json,
}


def read_model(path: str | os.PathLike[str]) -> Network:
    """The network in a file: as it is, of a release, or of the means of a posterior."""
    return find_network(read(path), os.fspath(path))


def find_network(model: Model, source: str) -> Network:
    """The one network that a model stands for; a credal network stands for many and is refused."""
    if isinstance(model, CredalNetwork):
        raise FormatError(
            f"{source}: this is a credal network, a whole set of networks; one network is needed"
        )
    if isinstance(model, Release):
        return model.network
    return model.network() if isinstance(model, Posterior) else model


def read_graph(path: str | os.PathLike[str], schema: Schema) -> DAG:
    """The graph in a file over the attributes of a schema: of any model, or lines such as "smoke -> lung"."""
    path = find_document(path)
    text, name = read_text(path, MAX_BYTES), os.fspath(path)
    if not text.lstrip().startswith("{") and not _looks_like_bif(text):
        try:
            return parse_edges(text, schema, name)
        except GraphError as error:
            raise GraphError(str(error) if str(error).startswith(name) else f"{name}: {error}") from None
    model = parse(text, name)
    try:
        return (model.network if isinstance(model, Release) else model).dag.arrange(schema.names)
    except GraphError as error:
        raise GraphError(f"{name}: {error}") from None


def read_network(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Network:
    """The network in a JSON file, plain or gzip."""
    return parse_network(read_text(path, max_bytes), os.fspath(path))


def write_network(network: Network, path: str | os.PathLike[str]) -> None:
    """Write a network as JSON, all or nothing; packed by gzip if the name ends in .gz."""
    network.write(path)


def parse_network(text: str, source: str = "JSON text") -> Network:
    """The network in a JSON text; `source` is how messages call it."""
    return parse_document(text, source, Network.from_json)


def _looks_like_bif(text: str) -> bool:
    # No class may match a newline: each line is then looked at once, however many of them are blank.
    return re.search(r"^[ \t]*(network|variable|probability)\b[^\n{(]*[{(]", text, re.MULTILINE) is not None
