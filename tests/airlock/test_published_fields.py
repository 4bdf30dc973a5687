"""Every field that is published is listed in docs/published.md with the reason why it may be."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RELEASES = sorted(path for path in (ROOT / "tests/golden").glob("*.json") if path.name != "answers.json")
AMOUNTS = {"epsilon", "rho", "delta"}


def walk(value: Any, path: str, names: set[str]) -> Iterator[str]:
    """The fields of a document; an attribute's name is *, an amount of privacy is one field."""
    if path.endswith(("taxonomy[]", "aliases")) or (
        isinstance(value, dict) and value and set(value) <= AMOUNTS
    ):
        yield path
    elif isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from walk(inner, f"{path}.{'*' if key in names else key}".strip("."), names)
    elif isinstance(value, list) and value:
        for inner in value:
            yield from walk(inner, path if path.endswith("[]") else f"{path}[]", names)
    else:
        yield f"{path}[]" if value == [] and not path.endswith("[]") else path


def list_fields(document: Any) -> set[str]:
    names = {attribute["name"] for attribute in document["network"]["schema"]["attributes"]}
    found = walk(document, "", names)  # what a part of a combined release has is what a release has
    return {field.replace("provenance.parts[].", "provenance.") for field in found}


def read_page() -> set[str]:
    rows = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/published.md").read_text("utf-8"), re.MULTILINE)
    return {field for row in rows for field in re.findall(r"`([^`]+)`", row)}


def test_every_field_is_on_the_page_and_none_that_no_release_has() -> None:
    assert len(RELEASES) >= 10
    found = set().union(*(list_fields(json.loads(path.read_text("utf-8"))) for path in RELEASES))
    assert found == read_page()


def test_a_new_field_is_caught() -> None:
    document = json.loads(RELEASES[0].read_text("utf-8"))
    document["provenance"]["statement"]["took seconds"] = 5.4
    assert list_fields(document) - read_page() == {"provenance.statement.took seconds"}
