"""The reference of the library: every public name is there, with its parameters and its docstring's first line."""

from __future__ import annotations

import pytest

from architecture.write_reference import ENTRY, PAGE, describe, find, list_public, write

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
