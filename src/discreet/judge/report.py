"""The report on a release: one page for the people who decide, the people who use it, and the people who check it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from html import escape

from discreet.core.book import spell
from discreet.judge.audit import Audit
from discreet.judge.report_parts.audit_section import warn, write_audit
from discreet.judge.report_parts.figures_section import bound_families, write_figures
from discreet.judge.report_parts.graph_drawing import draw_graph
from discreet.judge.report_parts.page import assemble, draw_shares, figure
from discreet.judge.report_parts.power_plot import draw_ceiling
from discreet.judge.report_parts.probability_bars import Ends, draw_table
from discreet.networks.formats.made_from import digest_release
from discreet.networks.formats.release import Release, read_release
from discreet.networks.intervals import COVERAGE
from discreet.networks.network import Network
from discreet.networks.provenance import Provenance
from discreet.values.budget import ZCDP, Budget, Infinite, imply_approx, require_finite
from discreet.values.errors import DiscreetError, FormatError
from discreet.values.files import write_text
from discreet.values.graph import DAG
from discreet.values.statement import Statement
from discreet.values.unit import Unit

SMALL, LARGE = 0.02, 0.1
"""Expected errors below the first are called small, above the second large."""
WORST = 8
MOST_TABLES = 60
DRAWN_WHOLE = 24
"""A graph of up to so many attributes is drawn in one piece, those without arrows included."""


def write_report(
    release: Release | str | os.PathLike[str],
    path: str | os.PathLike[str],
    audit: Audit | None = None,
    doubt: str = "",
) -> None:
    """Write the report on a release, or on the one in a file, as one HTML file, all or nothing.

    `doubt` is why the release is not verified (see `judge.trust.doubt`): the page then shows that, and no promise.
    """
    known = release if isinstance(release, Release) else read_release(release)
    write_text(path, make_page(known, audit, doubt))


def make_page(release: Release, audit: Audit | None = None, doubt: str = "") -> str:
    """The report as HTML; the same release always gives the same text. One with an audit is for the custodian."""
    network, known = release.network, release.provenance
    if not known.paid:
        raise FormatError("without the statement of the account that paid for it nothing can be promised")
    loss, name = known.promised, known.name
    parts = [
        *([] if audit is None else [warn()]),
        _write_head(release, loss, name, doubt),
        *([] if doubt else [_write_meaning(known, loss)]),
        _write_graph(network, known),
        _write_worst(known),
        write_figures(network),
        _write_tables(network, *find_intervals(network)),
        "<h2 id='ledger'>The ledger</h2>",
        *(_write_ledger(said, part) for said, part in known.paid),
        *([] if audit is None else [write_audit(audit)]),
        _write_use(network, known),
        _write_foot(release),
    ]
    return assemble(f"A private release of {name}", parts, digest_release(release))


def find_intervals(network: Network) -> tuple[dict[str, Ends], str]:
    """For each node the least and the greatest table that the noise leaves open, and what that means; or why there are
    none."""
    from discreet.networks.credal import from_noise
    from discreet.networks.intervals import Whose

    policy = network._intervals
    try:
        if policy.default is Whose.TABLE and not policy.explain_lack(Whose.TABLE):
            return bound_families(policy), (
                f"The line through each bar is what is left open. {100 * COVERAGE:g} % sure, for all lines together: "
                "the share of the table's own rows lies on the line, whatever the graph leaves out."
            )
        credal = from_noise(network, COVERAGE)
    except DiscreetError as error:
        return {}, f"{str(error)[:1].upper()}{str(error)[1:]}."
    return {name: credal.ends(name) for name in network.nodes}, (
        f"The line through each bar is what the noise leaves open. {100 * COVERAGE:g} % sure, for all lines together: "
        "without the noise, the bar would end on its line."
    )


def grade(error: float) -> str:
    """The class of an expected error: good, fair or bad."""
    return "good" if error < SMALL else "fair" if error < LARGE else "bad"


def _write_head(release: Release, loss: Budget, name: str, doubt: str) -> str:
    network, known = release.network, release.provenance
    kind = "promise none" if doubt or isinstance(loss, Infinite) else "promise"
    promise = f"Not verified: {doubt}. What is promised is not shown." if doubt else release.promise
    errors = list(known.predicted_error.values())
    figures = [
        figure("not verified" if doubt else str(loss), "privacy loss of all that may ever be published"),
        figure(_name_unit(known.unit), f"hides {known.unit.hidden}"),
        figure(f"{len(network.declared)} · {len(network.list_arrows())}", "attributes · dependencies"),
        figure(str(len(known.measurements)), f"noisy tables, learner “{known.learner}”"),
    ]
    if errors:
        mean = sum(errors) / len(errors)
        figures.append(figure(f"± {mean:.3f}", "mean error that noise adds to a conditional (L1)"))
    return (
        f'<p class="kicker">Private release · {escape(name)}{_write_date(known)}</p>'
        "<h1>What was published, and what it cannot give away</h1>"
        f'<p class="{kind}">{escape(promise)}</p><div class="figures">{"".join(figures)}</div>'
    )


def _write_date(known: Provenance) -> str:
    times = [debit.day for said in known.statements for debit in said.debits]
    return f" · {escape(max(times))}" if times else ""


def _write_meaning(known: Provenance, loss: Budget) -> str:
    text = [f"<p>{sentence}</p>" for sentence in explain_loss(loss, known.unit)]
    text.append(
        "<p>This holds for every person, whatever they are like, and for every attacker, whatever they know and "
        "however much they compute. It does not say that nothing can be learned <em>about</em> a person: that smoking "
        "goes with lung disease is what a release is for, and it applies to people in the table and outside alike. "
        f"{_limit_rows(known.unit)}</p>"
    )
    caption = (
        "<p class='note'>No attack can get above the curve: whoever wants to find more members must accuse more "
        "strangers. Dashed: guessing.</p>"
    )
    return (
        f'<h2 id="promise">What the promise means</h2><div class="two"><div>{"".join(text)}</div>'
        f"<div>{draw_ceiling(loss)}{caption}</div></div>"
    )


def _limit_rows(unit: Unit) -> str:
    if unit.person:
        return "It is made to people, however many rows they have."
    return "And it protects each row: whoever has several rows is protected less."


def _name_unit(unit: Unit) -> str:
    return f"per person ({unit.person})" if unit.person else unit.value


def explain_loss(loss: Budget, unit: Unit) -> list[str]:
    """The privacy loss in sentences that need no mathematics."""
    if isinstance(loss, Infinite):
        return ["Rows were looked at without noise, so no bound can be given any more."]
    about = "a given person’s row is in the table"
    if unit.fixes_rows:
        about = "a given person’s row says a certain thing"
    elif unit.person:
        about = "a given person is in the table"
    if isinstance(loss, ZCDP):
        epsilon = float(imply_approx(loss, "1e-6").epsilon)
        slack = " except with a chance of one in a million"
    else:
        epsilon = float(loss.epsilon)
        delta = getattr(loss, "delta", Fraction(0))
        slack = f" except with a chance of {float(delta):.2g}" if delta else ""
    sure = 100 / (1 + math.exp(-min(epsilon, 700)))
    bound = math.ceil(10 * sure) / 10  # a ceiling is never rounded down
    shown = f"{bound:.1f} %" if bound < 100 else "practically certain"
    return [
        f"Suppose somebody thinks the odds are even, 50 %, that {about}. After seeing everything that may ever "
        f"be published from this account they can be at most <strong>{shown}</strong>"
        f"{' sure' if '%' in shown else ''}{slack}."
    ]


def _write_graph(network: Network, known: Provenance) -> str:
    shares = find_shares(network, known)
    captions, grades = {}, {}
    for name in network.nodes:
        parts = [shares[name]] if name in shares else []
        if name in known.predicted_error:
            error = known.predicted_error[name]
            parts.append(f"± {error:.3f}")
            grades[name] = grade(error)
        captions[name] = "  ·  ".join(parts)
    legend = (
        f'<p class="legend note"><span><i class="good"></i>expected error below {SMALL:g}</span>'
        f'<span><i class="fair"></i>up to {LARGE:g}</span><span><i class="bad"></i>above</span></p>'
        if grades
        else ""
    )
    return (
        "<h2>The network</h2><p>An arrow leads from an attribute to one that depends on it. Each attribute has a table "
        "of conditionals: its distribution for every combination of its parents’ levels. Below each name stand the "
        "budget of that table and the error that noise is expected to add to a conditional (L1: 0 is exact, 2 is all "
        f"wrong).</p>{_draw_parts(network.dag, captions, grades)}{legend}"
    )


def _draw_parts(dag: DAG, captions: Mapping[str, str], grades: Mapping[str, str]) -> str:
    """Each connected part of a large graph by itself, largest first, and what depends on nothing as a list."""
    if len(dag) <= DRAWN_WHOLE:
        return f'<div class="card graphbox">{draw_graph(dag, captions, grades)}</div>'
    parts = sorted(find_parts(dag), key=lambda part: -len(part))
    cards = [
        f'<div class="card graphbox">{draw_graph(_cut(dag, part), captions, grades)}</div>'
        for part in parts
        if len(part) > 1
    ]
    alone = [part[0] for part in parts if len(part) == 1]
    rest = "".join(
        f"<li>{escape(name)} <span class='note'>{escape(captions[name])}</span></li>" for name in alone
    )
    listed = (
        f"<h3>{len(alone)} attributes that depend on no other</h3><ul class='alone'>{rest}</ul>"
        if alone
        else ""
    )
    return f'<div class="parts">{"".join(cards)}</div>{listed}'


def find_parts(dag: DAG) -> list[tuple[str, ...]]:
    """The connected parts of a graph, arrows taken either way."""
    left, parts = set(dag.nodes), []
    near: dict[str, set[str]] = {name: set() for name in dag.nodes}
    for one, other in dag.edges():
        near[one].add(other)
        near[other].add(one)
    for name in dag.nodes:
        if name not in left:
            continue
        part, agenda = set(), [name]
        while agenda:
            found = agenda.pop()
            if found in left:
                left.discard(found)
                part.add(found)
                agenda += near[found]
        parts.append(tuple(other for other in dag.nodes if other in part))
    return parts


def _cut(dag: DAG, part: Sequence[str]) -> DAG:
    return DAG(tuple(part), tuple(dag.parents_of(name) for name in part))


def find_shares(network: Network, known: Provenance) -> dict[str, str]:
    """The budget of the smallest measured tables that hold each node's family, as text."""
    found = {}
    for name in network.nodes:
        family = set(network.dag.family(name))
        holders = [table for table in known.measurements if family <= set(table.axes)]
        if holders:
            least = min(table.cells for table in holders)
            costs = [table.cost.to_json() for table in holders if table.cells == least]
            if all("rho" in cost for cost in costs):
                found[name] = f"ρ {float(sum(Fraction(cost['rho']) for cost in costs)):.3g}"
            elif all(cost.get("epsilon", "infinite") != "infinite" for cost in costs):
                found[name] = f"ε {float(sum(Fraction(cost['epsilon']) for cost in costs)):.3g}"
    return found


def _write_worst(known: Provenance) -> str:
    ranked = sorted(known.predicted_error.items(), key=lambda item: -item[1])[:WORST]
    if not ranked:
        return ""
    largest = max(ranked[0][1], 1e-12)
    lines = "".join(
        f'<li><b>{escape(name)}</b><i><u class="{grade(error)}" style="width:{100 * error / largest:.1f}%"></u></i>'
        f"<span>± {error:.4f}, {_describe(error)}</span></li>"
        for name, error in ranked
    )
    return (
        "<h2>Where the noise hurts most</h2><p>The expected error (L1) of an attribute’s conditionals, averaged by how "
        "often each applies. Conditionals for rare combinations of parents are less exact than this mean: look at "
        f'their intervals below before you rely on one.</p><ul class="hurts">{lines}</ul>'
    )


def _describe(error: float) -> str:
    return {"good": "small", "fair": "moderate", "bad": "large"}[grade(error)]


def _write_tables(network: Network, intervals: Mapping[str, Ends], words: str) -> str:
    cards = []
    for name in network.nodes[:MOST_TABLES]:
        parents = network.dag.parents_of(name)
        given = f" given {', '.join(parents)}" if parents else ""
        table = draw_table(network, name, intervals.get(name))
        cards.append(f'<div class="card"><h3>{escape(name)}{escape(given)}</h3>{table}</div>')
    rest = len(network.nodes) - MOST_TABLES
    more = f"<p class='note'>{rest} more tables are in the document.</p>" if rest > 0 else ""
    return f'<h2 id="tables">The tables</h2><p>{escape(words)}</p><div class="tables">{"".join(cards)}</div>{more}'


def _write_ledger(said: Statement, known: Provenance) -> str:
    lines = "".join(
        f"<tr><td>{escape(debit.day)}</td><td>{escape(debit.verb)}</td>"
        f"<td class='amount'>{debit.tables or ''}</td><td class='amount'>{escape(spell(debit.cost))}</td>"
        f"<td class='hash'><code>{escape(debit.request)}</code></td></tr>"
        for debit in said.debits
    )
    heads = "<th>day (UTC)</th><th>what</th><th>tables</th><th>cost</th><th>request</th>"
    lasting = (
        ""
        if said.durable
        else " The ledger was kept in memory only: nothing remembers this cost, and nobody adds up what else is asked "
        "of the same rows."
    )
    bought = (
        ""
        if said.allowance is None
        else f" (the ρ that the whole budget, {escape(spell(said.budget))}, buys)"
    )
    return (
        f"<p>Account <strong>{escape(said.account)}</strong>: "
        f"{escape(spell(said.spent))} spent of {escape(spell(said.whole))}{bought}, "
        f"of which {escape(spell(known.cost))} on this release.{lasting}</p>"
        f"{draw_shares(_cut_budget(said, known))}"
        f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'
        f"<p class='note hash'>Ledger <code>{escape(said.ledger)}</code>, anchor "
        f"<code>{said.events}:{escape(said.head)}</code>. The ledger is a hash chain: whoever "
        "keeps this anchor can tell if an earlier line is ever changed.</p>"
    )


def _cut_budget(said: Statement, known: Provenance) -> Sequence[tuple[str, float]]:
    whole, spent, here = said.whole.amounts[0], said.spent.amounts[0], require_finite(known.cost).amounts[0]
    return [("before", float((spent - here) / whole)), ("here", float(here / whole))]


def _write_use(network: Network, known: Provenance) -> str:
    last = network.dag.order[-1]
    above = network.dag.parents_of(last)
    given = f" | {above[0]}={network.schema[above[0]].levels[0]}" if above else ""
    commands = (
        f'discreet query release.json "P({last}{given})"\n'
        "discreet synthesize release.json --rows 10000 --seed 7 --out synthetic.csv\n"
        "discreet verify release.json"
    )
    anchors = ", ".join(f"{said.events}:{said.head[:12]}…" for said in known.statements)
    what = f"A differentially private Bayesian network of {known.name}"
    cite = f"{what}, published with discreet, ledger anchor {anchors}."
    return (
        "<h2 id='use'>How to use, check and cite it</h2><p>The network is in <code>release.json</code>, and in "
        "<code>network.bif</code> for other Bayesian-network tools. Queries and synthetic rows cost no more privacy, "
        f"however many.</p><pre>{escape(commands)}</pre><p>Cite as: {escape(cite)}</p>"
    )


def _write_foot(release: Release) -> str:
    software = ", ".join(f"{escape(name)} {escape(found)}" for name, found in release.software.items())
    return f"<footer>Made with {software}. This page fetches nothing and runs nothing.</footer>"
