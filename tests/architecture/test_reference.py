"""The reference of the library: every public name is there, with its parameters and its docstring's first line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from architecture.write_reference import ENTRY, PAGE, describe, find, list_public, write

ROOT = PAGE.parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
ENTRIES = {name: (call, words) for name, call, words in ENTRY.findall(PAGE.read_text("utf-8"))}


def test_every_public_name_is_on_the_page() -> None:
    assert list_public() <= set(ENTRIES), sorted(list_public() - set(ENTRIES))


@pytest.mark.parametrize("name", sorted(ENTRIES))
def test_an_entry_is_true(name: str) -> None:
    """`python tests/architecture/write_reference.py` makes it so."""
    assert ENTRIES[name] == describe(find(name))


def test_the_writer_fills_mends_and_removes_entries() -> None:
    """What is already right stays as it is, so the page is a fixed point of its writer."""
    page = PAGE.read_text("utf-8")
    assert write(page) == page
    damaged = "| `read` | |\n| `plan(data)` | Wrong. |\n| `gone` | Nothing. |\n"
    assert [name for name, _, _ in ENTRY.findall(write(damaged))] == ["read", "plan"]
    assert all(line in page for line in write(damaged).splitlines())


@pytest.mark.parametrize(
    "name",
    [
        "discreet.judge.attacks.recovery.recover_counts",
        "discreet.judge.verify.verify",
        "Schema.of",
        "learn.plan",
    ],
)
def test_names_are_found_at_any_depth(name: str) -> None:
    assert find(name).__name__ == name.rpartition(".")[2]


def find_stale(text: str) -> list[str]:
    """The files and full names in backticks that are not there; a path counts from the root or from the package."""
    files = re.findall(r"`([\w/-]+/[\w-]+\.py)`", text)
    stale = [
        file for file in files if not any((top / file).exists() for top in (ROOT, ROOT / "src/discreet"))
    ]
    for name in re.findall(r"`(discreet(?:\.\w+)+)[`(]", text):
        try:
            find(name)
        except AttributeError:
            stale.append(name)
    return stale


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_names_is_there(path: Path) -> None:
    """A module that moved is found on the page that still has its old name."""
    assert find_stale(path.read_text("utf-8")) == []


def test_the_search_finds_what_is_gone() -> None:
    """The check above can fail."""
    text = "`judge/audit.py` `judgement/ceiling.py` `discreet.judge.audit.Audit` `discreet.privacy.airlock`"
    assert find_stale(text) == ["judgement/ceiling.py", "discreet.privacy.airlock"]
