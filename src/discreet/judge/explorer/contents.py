"""What an explorer page carries: the network, its intervals, and what is promised about it, as plain JSON values."""

from __future__ import annotations

import re
from math import log2
from typing import Any

from discreet.compute.triangulation import find_order, interaction_graph
from discreet.core.book import spell
from discreet.judge.explorer.ensemble import draw_ensemble, pack_ensemble
from discreet.judge.report import explain_loss
from discreet.networks.credal_network import CredalNetwork
from discreet.networks.formats.release import Model, Release, find_network
from discreet.networks.intervals import COVERAGE, bound_tables, explain_lack, state_guarantee
from discreet.networks.network import Network
from discreet.values.about import About
from discreet.values.budget import Infinite, require_finite
from discreet.values.errors import DiscreetError
from discreet.values.table import Table

Ends = tuple[tuple[Table, ...], tuple[Table, ...]]

NOT_PRIVATE = (
    "This file does not say how its network was learned: the bars have no intervals, and nothing is promised."
)
SIMULATED = (
    "The ledger was kept in memory only: nothing remembers this cost, and nobody adds up what else is asked of the "
    "same rows."
)


def describe_model(model: Model, file: str, report: str | None, doubt: str = "") -> dict[str, Any]:
    """The contents of the page of a model; `file` is how commands call it, `report` the address of its report."""
    network = model.centre if isinstance(model, CredalNetwork) else find_network(model, file)
    return {
        **_describe_words(model, file, report, doubt),
        **_describe_network(network),
        **_describe_intervals(model, network, file),
        "file": file,
    }


def _describe_network(network: Network) -> dict[str, Any]:
    index = {name: v for v, name in enumerate(network.nodes)}
    families = [[index[member] for member in network.dag.family(name)] for name in network.nodes]
    sizes = [network.schema[name].size for name in network.nodes]
    graph = interaction_graph(families, len(sizes))
    declared = set(network.declared.names)
    return {
        "attributes": [
            {
                "name": name,
                "levels": list(network.schema[name].levels),
                **({} if name in declared else {"auxiliary": True}),
            }
            for name in network.nodes
        ],
        "parents": [family[:-1] for family in families],
        "cpts": [cpt.values.ravel().tolist() for cpt in network.cpts],
        "order": find_order(graph, [log2(size) for size in sizes], range(len(sizes))),
    }


def _describe_intervals(model: Model, network: Network, file: str) -> dict[str, Any]:
    """The ends of all conditionals and an ensemble of networks, or in words why there are none."""
    if isinstance(model, CredalNetwork):
        tight = model.tighten()
        return _pack((tight.lower, tight.upper), model.meaning, None, "", noisy=True)
    if network.provenance is None:
        return _pack(None, "", None, NOT_PRIVATE, noisy=False)
    if explain_lack(network.dag, network.provenance):
        found = _bound_unconditionally(network)
        lack = (
            "Once something is assumed, this page cannot work out how far the noise may have moved a bar; "
            f"“discreet query {file}” can."
        )
        return {**_pack(None, "", None, lack, noisy=True), "unconditional": found}
    ends, ensemble, reasons = None, None, []
    try:
        ends = bound_tables(network.schema, network.dag, network.provenance)
    except DiscreetError as error:
        reasons.append(_begin_sentence(error))
    try:
        ensemble = pack_ensemble(draw_ensemble(network))
    except DiscreetError as error:
        reasons.append(_begin_sentence(error))
    return _pack(ends, state_guarantee(COVERAGE), ensemble, " ".join(reasons), noisy=True)


def _bound_unconditionally(network: Network) -> dict[str, Any] | None:
    """Guaranteed intervals of the table's own answers while nothing is assumed, where these are quick."""
    ends: list[list[list[float]] | None] = []
    for name in network.nodes:
        answer = network.query(name, of="table")
        ends.append(
            None
            if answer.lower is None or answer.upper is None
            else [answer.lower.tolist(), answer.upper.tolist()]
        )
    meaning = (
        f"{100 * COVERAGE:g} % sure, for all lines together: the table’s own answer lies on the line, whatever the "
        "graph leaves out."
    )
    return {"ends": ends, "meaning": meaning} if any(ends) else None


def _begin_sentence(error: DiscreetError) -> str:
    text = str(error).partition(";")[0]  # what to type instead is for the command line
    return f"{text[:1].upper()}{text[1:]}."


def _pack(
    ends: Ends | None, meaning: str, ensemble: dict[str, Any] | None, lack: str, *, noisy: bool
) -> dict[str, Any]:
    guaranteed = None
    if ends is not None:
        guaranteed = {
            "lower": [table.values.ravel().tolist() for table in ends[0]],
            "upper": [table.values.ravel().tolist() for table in ends[1]],
            "meaning": meaning.replace("lie in [ ]", "lie on the line"),
        }
    return {"guaranteed": guaranteed, "ensemble": ensemble, "lack": lack, "noisy": noisy}


def _describe_words(model: Model, file: str, report: str | None, doubt: str) -> dict[str, Any]:
    if not isinstance(model, Release) or not model.provenance.paid:
        return {
            "title": file,
            "kicker": "A Bayesian network",
            "short": "No promise of privacy is known",
            "broken": False,
            "sentences": [NOT_PRIVATE],
            "shares": None,
            "facts": [],
            "links": [],
            "source": f"the network {file}.",
        }
    known, told, about = model.provenance, model.provenance.statements, model.about or About()
    promised = known.promised
    broken = bool(doubt) or isinstance(promised, Infinite)
    days = [debit.day for said in told for debit in said.debits]
    anchors = [f"{said.events}:{said.head}" for said in told]
    title = about.title or f"What {known.name} {'show' if known.parts else 'shows'}"
    hidden = known.unit.hidden
    facts = [(label, text) for label, text in about.list_facts() if label != "Title"]
    facts += [
        ("Unit of privacy", f"{known.unit}: {hidden}"),
        ("This release", spell(known.cost)),
        *(("Account", f"{said.account}: {spell(said.spent)} spent of {spell(said.whole)}") for said in told),
        ("Learner", known.learner),
        *(("Ledger anchor", anchor) for anchor in anchors),
        ("Made with", ", ".join(f"{name} {version}" for name, version in model.software.items())),
    ]
    lasting = [] if all(said.durable for said in told) else [SIMULATED]
    links = [
        (text, f"{report}#{anchor}")
        for text, anchor in (
            ("What the promise means", "promise"),
            ("The tables behind it", "tables"),
            ("The ledger", "ledger"),
            ("How to check and cite it", "use"),
        )
        if report
    ]
    return {
        "title": title,
        "kicker": " · ".join(["Private release", known.name, *([max(days)] if days else [])]),
        "short": "Not verified"
        if doubt
        else "No privacy is promised"
        if broken
        else f"Hides {hidden} · {spell(promised)} in all",
        "broken": broken,
        "sentences": [f"Not verified: {doubt}. What is promised is not shown."]
        if doubt
        else [model.promise, *(_plain(text) for text in explain_loss(promised, known.unit)), *lasting],
        "shares": None if broken or known.parts else _share_budget(model),
        "facts": facts,
        "links": links,
        "source": f"{title}, a differentially private network ({spell(known.cost)}), ledger anchor "
        f"{', '.join(anchor.partition(':')[0] + ':' + anchor.partition(':')[2][:12] for anchor in anchors)}.",
    }


def _share_budget(release: Release) -> dict[str, Any]:
    known, said = release.provenance, release.provenance.statement
    assert said is not None
    whole, spent = said.whole.amounts[0], said.spent.amounts[0]
    here = require_finite(known.cost).amounts[0]
    parts = [("before", float((spent - here) / whole)), ("here", float(here / whole))]
    words = (
        f"Of the whole budget of this account, {100 * parts[1][1]:.3g} % went into this release"
        f"{f' and {100 * parts[0][1]:.3g} % into others' if parts[0][1] else ''}."
    )
    return {"parts": parts, "words": words}


def _plain(text: str) -> str:
    """A sentence of the report without its emphasis."""
    return re.sub(r"</?[a-z]+>", "", text)
