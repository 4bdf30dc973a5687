"""Help as a manual has it: options in groups, an example, exit codes, and pages on what no single command explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

from discreet.doors.cli.terminal import echo
from discreet.values.errors import DataError

MANY = 12
"""Options from which on they stand in groups."""
GROUPS = {
    "What it may cost": ("epsilon", "delta", "rho", "budget"),
    "Who is protected": ("unit", "person", "at_most", "per_person"),
    "The table": ("schema", "accept_guesses", "memory", "codes", "rows"),
    "The graph and its learner": ("graph", "learner", "prior", "plan_file", "target", "workload"),
    "Only privbayes": (
        *("encoding", "require", "forbid", "score", "beta", "k", "theta", "selection", "as_printed"),
    ),
    "The ledger": ("ledger", "account", "create_ledger", "request", "witness"),
    "What is written": ("out", "about", "as_json", "write", "custodians", "html", "report"),
}
PANELS = {
    "Begin": ("demo", "examples", "schema", "help"),
    "Make a release": ("plan", "release", "budget"),
    "Use a release": ("query", "synthesize", "explore", "report"),
    "Check a release": ("verify", "audit", "compare", "bounds"),
    "Publish it": ("statement", "keys", "sign", "combine", "catalog"),
    "Other networks": ("credal",),
}
PANEL_OF = {name: title for title, names in PANELS.items() for name in names}
CODES = "Exit codes: 0 done, 2 bad input (one line says what; nothing is spent or written), 130 interrupted."
PROBLEMS = {
    "verify": "1 something does not add up or could not be checked",
    "audit": "1 the attack gets more than is promised",
}
TOPICS = {
    "exit-codes": """\
0    done
1    a check found problems: `discreet verify`, `discreet budget verify`, `discreet audit`
2    bad input; one line on stderr names the thing, the value and what is allowed; nothing is spent or written
130  interrupted; a release that was interrupted is finished by the same command, which pays nothing twice""",
    "environment": """\
DISCREET_SECONDS    processor time that a document from elsewhere may take (default 300)
DISCREET_MEGABYTES  memory that it may take (default 6144)
DISCREET_TRACEBACK  set to 1, an error that nobody foresaw shows where it happened
NO_COLOR            set, nothing is coloured""",
    "files": """\
schema.toml    the public declaration of a table: `discreet schema draft`
plan.json      what several custodians measure: `discreet plan --write`
release.toml   your own words about a release: title, description, contact, licence … (--about)
*.ledger       the ledger of privacy budget: keep it, copy it elsewhere, never publish it
release.json   what is published: tables with noise, the network, the promise; `discreet verify` checks it
network.bif    the same network for other software
report.html, explorer.html   pages that need nothing else: one to read, one to click on""",
    "completion": """\
discreet --install-completion    for bash, zsh, fish or PowerShell, whichever is running
discreet --show-completion       prints it, to be put where your system keeps such files""",
}


class Command(TyperCommand):
    """A command whose help has its options in groups, and its exit codes at the end."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help; what it says about exit codes stands behind the example."""
        options = [option for option in self.params if isinstance(option, TyperOption)]
        if len(options) >= MANY:
            group = {name: title for title, names in GROUPS.items() for name in names}
            for option in options:
                option.rich_help_panel = group.get(str(option.name))
        more = PROBLEMS.get(str(ctx.info_name))
        codes = CODES.replace("0 done,", f"0 all is well, {more},") if more else CODES
        kept, self.epilog = self.epilog, "\n\n".join(filter(None, [self.epilog, codes]))
        try:
            super().format_help(ctx, formatter)
        finally:
            self.epilog = kept


def bind(app: typer.Typer, panels: Mapping[str, str] = PANEL_OF) -> None:
    """Give every command of an application this help, and the application's own help its panels."""
    for command in app.registered_commands:
        command.cls = Command
        assert command.callback is not None
        command.rich_help_panel = panels.get(command.name or command.callback.__name__)
    for group in app.registered_groups:
        assert group.typer_instance is not None
        group.rich_help_panel = panels.get(str(group.name))
        bind(group.typer_instance, {})


def help_(
    topic: Annotated[
        list[str] | None,
        typer.Argument(metavar="[COMMAND | TOPIC]", help=f"A command, or one of {', '.join(TOPICS)}."),
    ] = None,
) -> None:
    """Explain a command, or what no single command explains: exit codes, environment variables, files, completion."""
    from discreet.doors.cli.commands import app

    asked = topic or []
    if len(asked) == 1 and asked[0] in TOPICS:
        echo(TOPICS[asked[0]])
        return
    command: Any = typer.main.get_command(app)
    for name in asked:
        command = getattr(command, "commands", {}).get(name)
        if command is None:
            raise DataError(
                f"there is no help on {' '.join(asked)!r}; ask for a command, or for one of {', '.join(TOPICS)}"
            )
    app([*asked, "--help"], prog_name="discreet", standalone_mode=False)
    if not asked:
        echo(f"Topics: discreet help {' | '.join(TOPICS)}")
