"""What a format needs and only the custodian knows: asked for in one line, never filled in."""

from __future__ import annotations

from collections.abc import Sequence

from discreet.networks.formats.release import Release
from discreet.values.about import About
from discreet.values.errors import FormatError


def find_words(release: Release, more: About | None, needed: Sequence[str], what: str) -> About:
    """The custodian's words, those said since first; refused if one is missing that the format cannot do without."""
    words = (release.about or About()).fill(more)
    missing = [name for name in needed if not getattr(words, name)]
    if missing:
        raise FormatError(
            f"{what} needs what only the custodian knows: {', '.join(missing)}; put it into a TOML file, such as "
            f'{missing[0]} = "…", and give it with --about FILE'
        )
    return words


def split_names(text: str) -> list[str]:
    """Names that are separated by semicolons."""
    return [name.strip() for name in text.split(";") if name.strip()]
