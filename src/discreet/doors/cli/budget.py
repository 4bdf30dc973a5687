"""`discreet budget`: open an account, show what is spent, verify that nobody rewrote it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from discreet.doors.cli.terminal import (
    AsJson,
    AtMost,
    PerPerson,
    Person,
    echo,
    open_console,
    plain,
    print_json,
)
from discreet.values.errors import FormatError
from discreet.values.text import show_line

if TYPE_CHECKING:
    from discreet.core.book import Account, Entry
    from discreet.core.ledger import Ledger

app = typer.Typer(
    help="The ledger of privacy budget: open an account, show, verify. Example: discreet budget show my.ledger"
)

Place = Annotated[
    str, typer.Argument(metavar="LEDGER", help="A file, or an address postgresql://user@host/database.")
]

_DESCRIPTION_WIDTH = 60


@app.command(epilog="Example: discreet budget init clinic.ledger --account clinic-2024 --epsilon 1")
def init(
    ledger: Place,
    account: Annotated[str, typer.Option(help="The name of the dataset; each dataset has one account.")],
    epsilon: Annotated[str | None, typer.Option(help="Pure budget ε, e.g. 1 or 1/2.")] = None,
    rho: Annotated[str | None, typer.Option(help="Concentrated budget ρ (zCDP), e.g. 1/8.")] = None,
    delta: Annotated[str | None, typer.Option(help="δ, together with --epsilon, e.g. 1e-6.")] = None,
    unit: Annotated[
        str | None, typer.Option(help="What is protected: add-remove or replace-one. [default: add-remove]")
    ] = None,
    person: Person = None,
    at_most: AtMost = None,
    per_person: PerPerson = None,
) -> None:
    """Open an account with a budget that is set once; make the ledger if there is none."""
    from discreet.core.book import spell
    from discreet.core.ledger import require_line
    from discreet.entrance import open_ledger
    from discreet.values.budget import choose_budget
    from discreet.values.unit import Unit

    budget = choose_budget(epsilon=epsilon, delta=delta, rho=rho, what="give the budget as")
    kind = Unit.choose(unit, person, at_most, per_person) or Unit.ADD_REMOVE
    require_line("an account name", account)  # before the ledger is made: a refusal leaves nothing behind
    with open_ledger(ledger, create=True) as opened:
        made = opened.open_account(account, budget, kind)
        echo(f"account {made.name!r}: budget {spell(made.budget)}, unit {made.unit}")
        if made.allowance != made.budget:
            echo(
                f"it buys {spell(made.allowance)}, in which spends are counted; δ is paid once for all of them"
            )
        echo(f"ledger  {opened.description}")
        echo(f"anchor  {opened.head()}")


@app.command(epilog="Example: discreet budget show clinic.ledger --account clinic-2024")
def show(
    ledger: Place,
    account: Annotated[str | None, typer.Option(help="Only this account.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show every account: its budget, what is spent and left, each debit, and debits without an answer."""
    from discreet.entrance import open_ledger

    with open_ledger(ledger) as opened:
        accounts = opened.accounts() if account is None else (opened.account(account),)
        if as_json:
            print_json(_describe(opened, accounts))
        else:
            _print_tables(opened, accounts)


@app.command(epilog="Example: discreet budget verify clinic.ledger --anchor 12:5f1d…")
def verify(
    ledger: Place,
    releases: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RELEASE",
            help="Releases, files of anchors, or folders of them, which the ledger must still know.",
        ),
    ] = None,
    anchor: Annotated[
        str | None,
        typer.Option(metavar="COUNT:HASH", help="An anchor from a release or from your own notes."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check the whole ledger: exit code 0 if it is sound, 1 if anything was changed, cut off or damaged."""
    from discreet.core.chain import ORIGIN, Anchor, Damaged, Verdict
    from discreet.entrance import open_ledger
    from discreet.judge.trust.witness import Witness, find_conflict, read_witnesses

    witnesses = [] if anchor is None else [Witness("", Anchor.parse(anchor), "the anchor")]
    for path in releases or []:
        found = read_witnesses(path)
        if not found:
            raise FormatError(f"{path}: no release and no anchor is there")
        witnesses += found
    outside = bool(witnesses)
    try:
        with open_ledger(ledger) as opened:
            verdict = opened.verify(*(found.anchor for found in witnesses[: anchor is not None]))
            conflict = find_conflict(opened, witnesses, strict=True) if verdict.sound else None
            if conflict is not None:
                verdict = Verdict(verdict.anchor, (conflict,))
    except Damaged as damage:
        verdict = Verdict(Anchor(0, ORIGIN), (str(damage),))
    if as_json:
        report = {"sound": verdict.sound, "anchor": str(verdict.anchor), "problems": list(verdict.problems)}
        print_json(report)
    elif verdict.sound:
        echo(f"sound: {verdict.anchor.count} events" + _name_witnesses(len(witnesses)))
        echo(f"anchor {verdict.anchor}")
        if not outside:
            echo("without --anchor a ledger that was cut back to an earlier state looks sound as well")
    else:
        for problem in verdict.problems:
            echo(f"problem: {problem}")
    if not verdict.sound:
        raise typer.Exit(1)


@app.command(epilog="Example: discreet budget salvage spoilt.ledger new.ledger")
def salvage(
    ledger: Place,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The ledger to make: a file, or an address.")],
    as_json: AsJson = False,
) -> None:
    """Take over what is sound of a ledger that was spoilt into a new one; nothing that was spent is given back.

    Debits behind the fault are made again if they can be read. Requests whose answer is lost cannot be asked again.
    """
    from dataclasses import asdict

    from discreet.entrance import salvage_ledger

    found = salvage_ledger(ledger, new)
    if as_json:
        print_json(asdict(found))
        return
    echo(f"{found.copied} events are sound, and in {new}")
    for what, names in (("debited again", found.debited), ("without an answer any more", found.lost)):
        if names:
            echo(show_line(f"{what}: {', '.join(names[:8])}{', …' * (len(names) > 8)}"))
    for line in found.dropped:
        echo(show_line(f"left out: {line}"))


def _name_witnesses(count: int) -> str:
    return (
        "" if not count else ", and the anchor matches" if count == 1 else f", and all {count} anchors match"
    )


def _describe(ledger: Ledger, accounts: tuple[Account, ...]) -> dict[str, Any]:
    return {
        "ledger": {
            "place": ledger.description,
            "id": ledger.id,
            "anchor": str(ledger.head()),
            "durable": ledger.durable,
        },
        "accounts": [
            {
                "name": account.name,
                "opened": account.time,
                "unit": account.unit.value,
                "budget": account.budget.to_json(),
                "allowance": account.allowance.to_json(),
                "spent": account.spent.to_json(),
                "remaining": account.remaining.to_json(),
                "loss": account.loss.to_json(),
                "reveals": [{"time": reveal.time, "reason": reveal.reason} for reveal in account.reveals],
                "debits": [_describe_entry(entry) for entry in ledger.entries(account.name)],
            }
            for account in accounts
        ],
    }


def _describe_entry(entry: Entry) -> dict[str, Any]:
    return {
        "request": entry.request,
        "time": entry.time,
        "cost": entry.cost.to_json(),
        "description": entry.description,
        "answered": entry.answered,
        "digest": entry.digest,
    }


def _print_tables(ledger: Ledger, accounts: tuple[Account, ...]) -> None:
    from rich.table import Table

    from discreet.core.book import spell
    from discreet.core.chain import canonical

    console = open_console()
    console.print(plain(f"ledger {ledger.description}\nanchor {ledger.head()}"))
    if not accounts:
        console.print("no account yet; open one with `discreet budget init`")
    for account in accounts:
        console.print(plain(f"\naccount {account.name}, unit {account.unit}", style="bold"))
        console.print(plain(f"  budget    {spell(account.budget)}"))
        if account.allowance != account.budget:
            console.print(plain(f"  buys      {spell(account.allowance)}"))
        console.print(plain(f"  spent     {spell(account.spent)}"))
        console.print(plain(f"  remaining {spell(account.remaining)}"))
        for reveal in account.reveals:
            line = f"  ε = ∞: looked at without noise on {reveal.time[:10]}: {reveal.reason}"
            console.print(plain(line, style="bold red"))
        entries = ledger.entries(account.name)
        if not entries:
            continue
        table = Table("time (UTC)", "request", "cost", "for", "answered", box=None, pad_edge=True)
        for entry in entries:
            question = canonical(entry.description) if entry.description else ""
            short = (
                question if len(question) <= _DESCRIPTION_WIDTH else question[: _DESCRIPTION_WIDTH - 1] + "…"
            )
            cells = [entry.time[:19].replace("T", " "), entry.request, spell(entry.cost), short]
            table.add_row(
                *map(plain, cells), plain("yes") if entry.answered else plain("NO", style="bold red")
            )
        console.print(table)
        waiting = sum(not entry.answered for entry in entries)
        if waiting:
            console.print(
                f"  {waiting} paid but without an answer: the program crashed, or is still running; "
                "run the same command again, it costs nothing more"
            )
