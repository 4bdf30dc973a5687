"""Help as a manual has it: every command says what it does, with an example and exit codes; options are in groups."""

from __future__ import annotations

import re

import pytest
import typer
from typer.core import TyperOption

from discreet.doors.cli import commands, main
from discreet.doors.cli.options import manual
from discreet.doors.limits import MEGABYTES, MEGABYTES_NAME
from discreet.values.patience import SECONDS, SECONDS_NAME


def list_commands() -> list[list[str]]:
    found, agenda = [], [([], typer.main.get_command(commands.app))]
    while agenda:
        path, command = agenda.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            found.append(path)
        else:
            agenda += [([*path, name], part) for name, part in inner.items()]
    return found


def read_help(path: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["help", *path]) == 0
    return re.sub(r"\s+", " ", capsys.readouterr().out)


def test_every_command_has_a_manual_page(capsys: pytest.CaptureFixture[str]) -> None:
    """Usage, options, an example of the command itself, exit codes; those with a code of their own say so."""
    pages = {" ".join(path): read_help(path, capsys) for path in list_commands()}
    assert len(pages) > 25
    for name, page in pages.items():
        assert f"Usage: discreet {name}" in page and f"Example: discreet {name}" in page, name
        assert "Exit codes: 0" in page and "130 interrupted" in page, name
        assert ("1 something does not add up" in page) is name.endswith("verify"), name


def test_long_lists_of_options_stand_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing but --help is left without a group in `release`; a name in a group that no command has is found."""
    page = read_help(["release"], capsys)
    for title in manual.GROUPS:
        assert f"─ {title} ─" in page
    assert re.search(r"─ Options ─+╮ │ --help -h <bool> Show this message and exit. │ ╰", page)
    root = typer.main.get_command(commands.app)
    known = set()
    for path in list_commands():
        command = root
        for name in path:
            command = command.commands[name]
        known |= {option.name for option in command.params if isinstance(option, TyperOption)}
    assert {name for names in manual.GROUPS.values() for name in names} <= known


def test_every_command_is_on_a_panel(capsys: pytest.CaptureFixture[str]) -> None:
    """A new command must say where it belongs."""
    assert {path[0] for path in list_commands()} == set(manual.PANEL_OF)
    page = read_help([], capsys)
    assert [page.index(f"─ {title} ─") for title in manual.PANELS] == sorted(
        page.index(f"─ {title} ─") for title in manual.PANELS
    )
    assert "Topics: discreet help exit-codes | environment | files | completion" in page


def test_topics_say_what_is_so(capsys: pytest.CaptureFixture[str]) -> None:
    """The environment variables and their defaults are those of the code; what is no topic is refused in one line."""
    page = read_help(["environment"], capsys)
    for name, default in ((SECONDS_NAME, SECONDS), (MEGABYTES_NAME, MEGABYTES)):
        assert re.search(rf"{name} [^()]*\(default {default}\)", page)
    assert commands.TRACEBACK in page
    assert "130 interrupted" in read_help(["exit-codes"], capsys)
    for asked in (["nonsense"], ["budget", "nonsense"], ["release", "more"]):
        assert main(["help", *asked]) == 2
        assert "there is no help on" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "at", "found"),
    [("discreet re", 1, "release\nreport"), ("discreet statement --fo", 2, "--format")],
)
def test_the_shell_completes(
    words: str,
    at: int,
    found: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What bash asks, the command answers."""
    monkeypatch.setenv("_DISCREET_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(at))
    with pytest.raises(SystemExit) as ended:
        main([])
    assert not ended.value.code
    assert found in capsys.readouterr().out
