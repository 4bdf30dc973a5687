"""The tokens of a BIF text under a cursor; where one stands is worked out only when it is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from discreet.values.errors import FormatError
from discreet.values.wording import show

MAX_NAME = 4096
"""The longest name of a variable or a state."""

# A quote that is never closed swallows the rest as one token, so that time stays linear in the text.
_STRING = rf'"[^"\\]*(?:\\.[^"\\]*){{0,{MAX_NAME}}}"'
_WORD = r'[^\s{}()\[\];,|"]+'
_TOKEN = re.compile(rf'{_WORD}|[{{}}()\[\];|]|{_STRING}|".*', re.DOTALL)
_COMMENT = re.compile(rf'{_STRING}|".*|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_CLOSED = re.compile(_STRING, re.DOTALL)
_PLAIN = re.compile(_WORD)
_ESCAPE = re.compile(r'\\(["\\])')
STRUCTURE = frozenset("{}()[];|")


class Tokens:
    """A cursor over the tokens of a text; every refusal is a `FormatError` with the source and the line."""

    __slots__ = ("_text", "at", "source", "words")

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self._text = self._blank_comments(text) if "//" in text or "/*" in text else text
        self.words: list[str] = _TOKEN.findall(self._text)
        self.at = 0
        if not self.words:
            raise FormatError(f"{source}, line 1: nothing in the file; a BIF file declares variables")
        if self.words[-1].startswith('"') and not _CLOSED.fullmatch(self.words[-1]):
            self.refuse(len(self.words) - 1, "a quoted name is never closed")

    def __len__(self) -> int:
        return len(self.words)

    def peek(self) -> str:
        """The token under the cursor."""
        if self.at >= len(self.words):
            self.refuse(len(self.words) - 1, "the file ends inside a block")
        return self.words[self.at]

    def take(self) -> str:
        """The token under the cursor, which moves on."""
        token = self.peek()
        self.at += 1
        return token

    def expect(self, token: str) -> None:
        """Move over this very token."""
        if (found := self.take()) != token:
            self.refuse(self.at - 1, f"found {show(found)} where {token!r} should be")

    def take_name(self, what: str) -> str:
        """A name, quoted or not, and the cursor behind it."""
        token = self.take()
        if token in STRUCTURE:
            self.refuse(self.at - 1, f"found {token!r} where {what} should be")
        name = unquote(token)
        if len(name) > MAX_NAME:
            self.refuse(self.at - 1, f"{what} has {len(name):,} characters; at most {MAX_NAME:,} are allowed")
        return name

    def skip_entry(self) -> tuple[int, int]:
        """Move behind the next ';'; the places of the token before the cursor and of that ';'."""
        start = self.at - 1
        stop = self.find(";", start, len(self.words))
        self.at = stop + 1
        return start, stop

    def find(self, token: str, start: int, stop: int) -> int:
        """The first place of a token in a range that has to hold it."""
        try:
            return self.words.index(token, start, stop)
        except ValueError:
            self.refuse(start, f"{show(self.words[start])} begins an entry that lacks its {token!r}")

    def lines(self, places: Sequence[int]) -> list[int]:
        """The lines on which the tokens at these ascending places begin."""
        found: list[int] = []
        line, seen, wanted = 1, 0, iter(places)
        target = next(wanted, None)
        for place, match in enumerate(_TOKEN.finditer(self._text)):
            if target is None:
                break
            if place == target:
                line += self._text.count("\n", seen, match.start())
                seen = match.start()
                found.append(line)
                target = next(wanted, None)
        return found

    def where(self, place: int) -> str:
        """The source and the line of a token."""
        return f"{self.source}, line {self.lines([place])[0]}"

    def refuse(self, place: int, message: str) -> NoReturn:
        """Raise a `FormatError` about the token at this place."""
        raise FormatError(f"{self.where(place)}: {message}")

    def _blank_comments(self, text: str) -> str:
        def blank(match: re.Match[str]) -> str:
            found = match[0]
            if found.startswith("/*") and (len(found) < 4 or not found.endswith("*/")):
                line = text.count("\n", 0, match.start()) + 1
                raise FormatError(f"{self.source}, line {line}: a comment is never closed")
            # Line breaks stay, or the lines in later messages would be wrong.
            return found if found.startswith('"') else " " + "\n" * found.count("\n")

        return _COMMENT.sub(blank, text)


def unquote(token: str) -> str:
    """What a token stands for: itself, or what is between its quotes."""
    return _ESCAPE.sub(r"\1", token[1:-1]) if token[0] == '"' else token


def quote(name: str) -> str:
    """The token that stands for a name: itself where it can, else in quotes."""
    if _PLAIN.fullmatch(name) and "//" not in name and "/*" not in name:
        return name
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
