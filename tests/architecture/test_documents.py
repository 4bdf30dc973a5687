"""The documents tell the truth: their Python runs, their commands print what is shown, none is left out.

A document's blocks run in order, in one namespace and one temporary folder. A ```text block right after a
```python block is what it prints. In a ```console block each `$ discreet …` line runs, and the lines below it
are its output; a command that must fail ends in `# exits with 2`. `…` stands for anything, on a line of its
own for any number of lines. A name after the language (```toml clinic.toml) writes the block to that file;
`norun` leaves it alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from forked import split_command, start_forked

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [path for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))] if path.exists()]
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
SECONDS = 120


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block of a document."""

    language: str
    argument: str
    text: str
    line: int
    adjoins: bool
    """Whether nothing but blank lines stands between this block and the one before."""


def blocks(document: str) -> Iterator[Block]:
    """The fenced blocks of a Markdown text, in order."""
    opened: tuple[str, str, str, int] | None = None
    body: list[str] = []
    adjoins = False
    for number, line in enumerate(document.splitlines(), start=1):
        fence = re.match(r"^( *)(`{3,})\s*([\w+-]*)\s*(.*)$", line)
        if opened is None and fence:
            opened, body = (fence[2], fence[3], fence[4].strip(), number), []
        elif opened is not None and fence and fence[2] == opened[0] and not fence[3]:
            yield Block(opened[1], opened[2], "\n".join(body) + "\n", opened[3], adjoins)
            opened, adjoins = None, True
        elif opened is not None:
            body.append(line)
        elif line.strip():
            adjoins = False
    assert opened is None, f"line {opened[3]}: the block is never closed" if opened else ""


def matches(shown: str, printed: str) -> bool:
    """Whether the printed text is what the document shows; `…` is anything, trailing blanks are nothing."""
    pattern = ""
    for line in tidy(shown):
        if line.strip() == "…":
            pattern += r"(?:.*\n)*?"
        else:
            pattern += ".*?".join(re.escape(part) for part in line.split("…")) + r"\n"
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in tidy(printed))) is not None


def tidy(text: str) -> list[str]:
    """The lines without trailing blanks and without empty lines at either end."""
    return [line.rstrip() for line in text.strip("\n").rstrip().splitlines()]


def run_document(name: str, document: str) -> int:
    """Run every block of a document in the current folder and return how many ran."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    ran = 0
    for block in blocks(document):
        where = f"{name}:{block.line}"
        before, printed = printed, None
        if block.argument == "norun":
            continue
        if block.language == "python":
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(compile("\n" * block.line + block.text, name, "exec"), namespace)
            printed, ran = output.getvalue(), ran + 1
        elif block.language == "text" and block.adjoins and before is not None:
            assert matches(block.text, before), f"{where}: shown\n{block.text}\nprinted\n{before}"
        elif block.language == "console":
            ran += sum(run_command(where, command, shown) for command, shown in commands(block.text))
        elif block.argument:
            Path(block.argument).write_text(block.text, encoding="utf-8")
    return ran


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each `$ ` line of a console block with the output below it; a trailing backslash continues it."""
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"a console block begins with a command, not with {parts[0]!r}"
    for part in parts[1:]:
        found = re.match(r"((?:.*\\\n)*.*)\n?", part)
        assert found
        yield found[1].replace("\\\n", ""), part[found.end() :]


def run_command(where: str, command: str, shown: str) -> bool:
    """Run a `discreet` command and compare; other commands (make, pip, git) are for the reader."""
    if not re.match(r"discreet\b", command):
        return False
    expected = re.search(r"#\s*exits with (\d+)", command)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONUTF8": "1"}
    environment = {**os.environ, **plain, "PATH": path}
    arguments = None if where.startswith("README") else split_command(command.partition("#")[0])
    if (
        arguments is None
    ):  # the README's are run as a reader does: by a shell, which finds the installed script
        answer = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command], env=environment, timeout=SECONDS, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        code, printed = answer.returncode, answer.stdout.decode("utf-8")
    else:
        code, printed = start_forked().run(arguments, Path.cwd(), environment, SECONDS)
    assert code == int(expected[1] if expected else 0), f"{where}: $ {command}\n{printed}"
    if shown.strip():
        assert matches(shown, printed), f"{where}: $ {command}\nshown\n{shown}\nprinted\n{printed}"
    return True


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every example of a document runs from an empty folder and prints what the document shows."""
    monkeypatch.chdir(tmp_path)
    document = path.read_text(encoding="utf-8")
    runnable = [
        block for block in blocks(document) if block.argument != "norun" and block.language == "python"
    ]
    assert run_document(str(path.relative_to(ROOT)), document) >= len(runnable)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(path: Path) -> None:
    """Each relative link of a document names a file that is there, and a heading of it."""
    document = path.read_text(encoding="utf-8")
    targets = re.findall(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)", document)
    assert [target for target, _ in targets if not (path.parent / target).exists()] == []
    headings = {
        target: list_anchors(document if not target else (path.parent / target).read_text("utf-8"))
        for target, anchor in targets
        if anchor
    }
    assert [(target, anchor) for target, anchor in targets if anchor and anchor not in headings[target]] == []


def list_anchors(document: str) -> set[str]:
    """The anchors that a forge gives to the headings of a document, and those that it has itself."""
    prose = re.sub(r"^```.*?^```", "", document, flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r"""<a (?:id|name)=["']([^"']+)""", document))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_test_that_a_document_names_exists(path: Path) -> None:
    """Where a document says that a test demonstrates something, there is a test of that name."""
    there = set(re.findall(r"def (test_\w+)", "\n".join(file.read_text("utf-8") for file in TESTS)))
    assert set(re.findall(r"`(test_\w+)`", path.read_text(encoding="utf-8"))) - there == set()


def find_unshown(errata: str) -> list[str]:
    """The errata (paragraphs that begin in bold) that name no test."""
    paragraphs = re.split(r"\n\s*\n", errata)
    return [found for found in paragraphs if found.startswith("**") and "`test_" not in found]


def test_every_erratum_names_a_test() -> None:
    """A wrong erratum costs more than none: each one names what would fail if it were wrong."""
    errata = (ROOT / "docs" / "errata.md").read_text("utf-8")
    assert errata.count("\n**") > 30
    assert not find_unshown(errata)
    assert len(find_unshown(errata + "\n\n**Eq. 99 is wrong.** Believe us.\n")) == 1


@pytest.mark.parametrize(
    "document",
    [
        "```python\n1 / 0\n```\n",
        "```python\nprint(1)\n```\n\n```text\n2\n```\n",
        "```python\nprint(1); print(2)\n```\n```text\n…3\n```\n",
        "```console\n$ discreet no-such-command\n```\n",
        "```python\nprint(1)\n",
    ],
)
def test_the_runner_rejects_what_is_wrong(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner that cannot fail is no check: an error, another output or an unclosed block is reported."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run_document("planted", document)


def test_the_runner_accepts_what_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names live on from block to block, files are written, `…` matches within a line and over lines."""
    monkeypatch.chdir(tmp_path)
    document = (
        "```toml a.toml\nx = 1\n```\n```python\nx = open('a.toml').read()\n```\n"
        "```python\nprint(x, 2.345)\nprint('a\\nb\\nend')\n```\n\n```text\nx = 1\n 2.3…\n…\nend\n```\n"
        "```python norun\nraise SystemExit\n```\n"
    )
    assert run_document("planted", document) == 2


def cli_commands() -> dict[str, Any]:
    """Every command of the command line by its full name, `discreet budget show` as `budget show`."""
    import typer.main

    from discreet.doors.cli import commands

    found: dict[str, Any] = {}
    agenda: list[tuple[str, Any]] = [("", typer.main.get_command(commands.app))]
    while agenda:
        name, command = agenda.pop()
        if hasattr(command, "commands"):
            agenda += [(f"{name} {part}".strip(), inner) for part, inner in command.commands.items()]
        elif not command.hidden:
            found[name or "discreet"] = command
    return found


def test_every_command_has_help_with_an_example() -> None:
    """`discreet COMMAND --help` says what it does and shows a line to copy."""
    wanting = {
        name: command.help
        for name, command in cli_commands().items()
        if not command.help or f"discreet {name}" not in f"{command.help} {command.epilog or ''}"
    }
    assert wanting == {}


def test_every_command_is_documented() -> None:
    """The README or a page of docs/ mentions each command by its full name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    assert [name for name in cli_commands() if f"discreet {name}" not in text] == []
