"""What a custodian says about a release in their own words: what it is, about whom, whom to ask, what others may do."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import date
from typing import Any

from discreet.values.errors import FormatError
from discreet.values.files import read_text
from discreet.values.text import load_toml, require_keys, show

MOST_LETTERS = 2000
"""The longest text of one field."""
MOST_BYTES = 2**17
ADDRESS = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class About:
    """Words of the custodian, all of them optional and all of them public; nothing in them is read off the rows."""

    title: str = ""
    description: str = ""
    population: str = ""
    """Whom the table is about."""
    period: str = ""
    collection: str = ""
    """How the rows were collected."""
    contact: str = ""
    licence: str = ""
    custodian: str = ""
    """Who publishes it; several, separated by semicolons."""
    use: str = ""
    """What it is meant for."""
    region: str = ""
    sector: str = ""
    published: str = ""
    """The day, as 2026-11-17."""
    url: str = ""
    """Where it can be found."""
    preparation: str = ""
    """What was done to the rows beforehand, and which looks at them decided something."""
    reasons: str = ""
    """Why this unit and this budget."""
    authors: str = ""
    """Who wrote these words; several, separated by semicolons."""

    def __post_init__(self) -> None:
        for name, text in self.to_json(everything=True).items():
            if not isinstance(text, str) or len(text) > MOST_LETTERS or not _is_plain(text):
                raise FormatError(
                    f"the {name} of a release must be plain text of at most {MOST_LETTERS} characters, not {show(text)}"
                )
        if self.published and not _is_day(self.published):
            raise FormatError(
                f"the published of a release is a day, such as 2026-11-17, not {show(self.published)}"
            )
        if self.url and not ADDRESS.fullmatch(self.url):  # others make links of it
            raise FormatError(f"the url of a release begins with https:// or http://, not {show(self.url)}")

    @classmethod
    def read(cls, given: About | Mapping[str, Any] | str | os.PathLike[str] | None) -> About | None:
        """What is meant: the words themselves, a mapping of them, or the path of a TOML file; None if all are empty."""
        if isinstance(given, str | os.PathLike):
            source = os.fspath(given)
            text = read_text(given, MOST_BYTES)
            try:
                return cls.from_json(load_toml(text))
            except FormatError as error:
                raise FormatError(f"{source}: {error}") from None
        if given is None or isinstance(given, About):
            return given if given != cls() else None
        return cls.from_json(given)

    @classmethod
    def from_json(cls, document: object) -> About | None:
        """The words that `to_json` wrote; other keys are refused, because nobody would have looked at them."""
        names = tuple(field.name for field in fields(cls))
        found = cls(**require_keys(document, "what is said about a release", (), names))
        return found if found != cls() else None

    def fill(self, more: About | None) -> About:
        """These words, with those of `more` where it has any."""
        return self if more is None else replace(self, **more.to_json())

    def to_json(self, *, everything: bool = False) -> dict[str, str]:
        """The words by field, without the empty ones."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return found if everything else {name: text for name, text in found.items() if text}

    def list_facts(self) -> list[tuple[str, str]]:
        """Each word with its heading, in the order in which people read them."""
        return [(name.capitalize(), text) for name, text in self.to_json().items()]


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_plain(text: str) -> bool:
    return all(char.isprintable() or char == "\n" for char in text)
