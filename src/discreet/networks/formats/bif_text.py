"""The text of a BIF file: its tokens and blocks, where the numbers of each variable stand, and how one is written.

The language is the Interchange Format 0.15 (Cozman 1998) as public repositories write it. Commas are blanks.
Comments, `//` and `/* */`, begin anywhere outside quotes; `property` entries are skipped. A name is quoted
when it holds blanks or one of `{}()[];,|"`; between quotes a backslash escapes a quote or a backslash. Blocks
come in any order.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import NoReturn

from discreet.values.errors import FormatError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table, count_cells
from discreet.values.text import show

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

MAX_TABLE_CELLS = 2**24
"""The largest table that a file may declare; the largest in the public networks has 280,000 cells."""

MAX_TOTAL_CELLS = 2**25
"""The most cells that a file may declare in all: 256 MiB of float64."""

MAX_PARENTS = 63
"""An array has at most 64 axes."""


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

    def where(self, place: int) -> str:
        """The source and the line of a token."""
        begins = next(islice(_TOKEN.finditer(self._text), place, None)).start()
        line = self._text.count("\n", 0, begins) + 1
        return f"{self.source}, line {line}"

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


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable as its block declares it."""

    levels: tuple[str, ...]
    codes: dict[str, int]
    place: int


@dataclass(frozen=True, slots=True)
class Block:
    """A probability block: the parents, and from which token to which each entry of numbers goes."""

    parents: tuple[str, ...]
    entries: list[tuple[int, int]]
    place: int


def read_blocks(text: str, source: str) -> tuple[Tokens, dict[str, Variable], dict[str, Block]]:
    """The variables of a BIF text in order of declaration, and their blocks; the first fault is refused by its line."""
    tokens = Tokens(text, source)
    variables, blocks = _read_blocks(tokens)
    _require_graph(tokens, variables, blocks)
    _require_cells(tokens, variables, blocks)
    return tokens, variables, blocks


def _read_blocks(tokens: Tokens) -> tuple[dict[str, Variable], dict[str, Block]]:
    variables: dict[str, Variable] = {}
    blocks: dict[str, Block] = {}
    networks = 0
    while tokens.at < len(tokens):
        keyword = tokens.take()
        start = tokens.at
        if keyword == "variable":
            name, variable = _read_variable(tokens)
            if name in variables:
                tokens.refuse(start, f"variable {show(name)} is declared twice")
            variables[name] = variable
        elif keyword == "probability":
            name, block = _read_probability(tokens)
            if name in blocks:
                tokens.refuse(start, f"variable {show(name)} has two probability blocks")
            blocks[name] = block
        elif keyword == "network" and not networks:
            networks += 1
            _read_network(tokens)
        else:
            allowed = "'variable' or 'probability'" if networks else "'network', 'variable' or 'probability'"
            tokens.refuse(start - 1, f"found {show(keyword)} where {allowed} should begin a block")
    return variables, blocks


def _read_network(tokens: Tokens) -> None:
    while tokens.take() != "{":
        pass
    while (token := tokens.take()) != "}":
        if token != "property":
            tokens.refuse(
                tokens.at - 1, f"found {show(token)} in the network block; it holds only 'property'"
            )
        tokens.skip_entry()


def _read_variable(tokens: Tokens) -> tuple[str, Variable]:
    start = tokens.at
    name = tokens.take_name("the name of a variable")
    tokens.expect("{")
    levels: tuple[str, ...] = ()
    while (token := tokens.take()) != "}":
        if token == "property":
            tokens.skip_entry()
        elif token == "type" and not levels:
            levels = _read_levels(tokens, name)
        else:
            tokens.refuse(
                tokens.at - 1, f"found {show(token)} in variable {show(name)}; one 'type' line is all"
            )
    if not levels:
        tokens.refuse(start, f"variable {show(name)} has no 'type discrete' line")
    return name, Variable(levels, {level: code for code, level in enumerate(levels)}, start)


def _read_levels(tokens: Tokens, name: str) -> tuple[str, ...]:
    start = tokens.at
    tokens.expect("discrete")
    tokens.expect("[")
    count = tokens.take()
    tokens.expect("]")
    tokens.expect("{")
    levels: dict[str, None] = {}
    while tokens.peek() != "}":
        level = tokens.take_name(f"a state of {show(name)}")
        if level in levels:
            tokens.refuse(tokens.at - 1, f"variable {show(name)} lists the state {show(level)} twice")
        levels[level] = None
    tokens.expect("}")
    tokens.expect(";")
    if not levels or str(len(levels)) != count:
        tokens.refuse(start, f"variable {show(name)} declares {show(count)} states and lists {len(levels)}")
    return tuple(levels)


def _read_probability(tokens: Tokens) -> tuple[str, Block]:
    tokens.expect("(")
    begin = tokens.at
    child = tokens.take_name("the name of a variable")
    if tokens.peek() == "|":
        tokens.take()
    parents: list[str] = []
    while tokens.peek() != ")":
        parents.append(tokens.take_name("the name of a parent"))
    tokens.expect(")")
    tokens.expect("{")
    entries: list[tuple[int, int]] = []
    while (token := tokens.take()) != "}":
        start, stop = tokens.skip_entry()
        if token == "property":
            continue
        if "}" in tokens.words[start:stop]:
            place = tokens.find("}", start, stop)
            tokens.refuse(place, f"found '}}' where ';' should end a conditional of {show(child)}")
        entries.append((start, stop))
    return child, Block(tuple(parents), entries, begin)


def _require_graph(tokens: Tokens, variables: dict[str, Variable], blocks: dict[str, Block]) -> None:
    if not variables:
        tokens.refuse(len(tokens) - 1, "no variable is declared")
    for name, variable in variables.items():
        if name not in blocks:
            tokens.refuse(variable.place, f"variable {show(name)} has no probability block")
    children: dict[str, list[str]] = {name: [] for name in variables}
    for name, block in blocks.items():
        if name not in variables:
            tokens.refuse(block.place, f"a probability block is about {show(name)}, which is not declared")
        for parent in block.parents:
            if parent not in variables:
                tokens.refuse(block.place, f"variable {show(name)} has the unknown parent {show(parent)}")
            children[parent].append(name)
        if len({name, *block.parents}) <= len(block.parents):
            tokens.refuse(block.place, f"variable {show(name)} names a parent twice, or itself as a parent")
    waiting = {name: len(block.parents) for name, block in blocks.items()}
    ready = [name for name, count in waiting.items() if not count]
    while ready:
        name = ready.pop()
        del waiting[name]
        for child in children[name]:
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if waiting:
        name = next(iter(waiting))
        tokens.refuse(blocks[name].place, f"the graph has a cycle; {show(name)} is on it or below it")


def _require_cells(tokens: Tokens, variables: dict[str, Variable], blocks: dict[str, Block]) -> None:
    total = 0
    for name, block in blocks.items():
        if len(block.parents) > MAX_PARENTS:
            raise TooLarge(
                f"{tokens.where(block.place)}: variable {show(name)} has {len(block.parents):,} parents; "
                f"at most {MAX_PARENTS} are allowed"
            )
        cells = count_cells(len(variables[member].levels) for member in (*block.parents, name))
        total += cells
        if cells > MAX_TABLE_CELLS:
            raise TooLarge(
                f"{tokens.where(block.place)}: the table of {show(name)} with {len(block.parents)} parents "
                f"would have {cells:,} cells; at most {MAX_TABLE_CELLS:,} are allowed"
            )
        if total > MAX_TOTAL_CELLS:
            raise TooLarge(
                f"{tokens.where(block.place)}: with the table of {show(name)} there are {total:,} cells; "
                f"at most {MAX_TOTAL_CELLS:,} are allowed"
            )


def format_bif_text(schema: Schema, dag: DAG, cpts: Sequence[Table], made_from: str = "") -> str:
    """A network as BIF text, with the shortest decimals that read back as the same floats.

    `made_from` is the SHA-256 of the document that it was made from, and becomes a property of the network.
    """
    return "".join(_write_blocks(schema, dag, cpts, made_from))


def _write_blocks(schema: Schema, dag: DAG, cpts: Sequence[Table], made_from: str) -> Iterator[str]:
    names = {attribute.name: _write_name(attribute.name) for attribute in schema}
    levels = {attribute.name: [_write_name(level) for level in attribute.levels] for attribute in schema}
    origin = f"  property made_from = sha256-{made_from} ;\n" if made_from else ""
    yield f"network unknown {{\n{origin}}}\n"
    for name in dag.nodes:
        states = ", ".join(levels[name])
        yield f"variable {names[name]} {{\n  type discrete [ {len(levels[name])} ] {{ {states} }};\n}}\n"
    for name, parents, cpt in zip(dag.nodes, dag.parents, cpts, strict=True):
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        yield f"probability ( {names[name]}{given} ) {{\n"
        # The first parent runs fastest, as in the public repositories: reverse the parents' axes.
        values = cpt.values.transpose([*reversed(range(len(parents))), len(parents)])
        lines = (values.reshape(-1, values.shape[-1]) + 0.0).tolist()  # + 0.0 turns -0.0 into 0.0
        for head, line in zip(_write_heads([levels[parent] for parent in parents]), lines, strict=True):
            yield f"  {head} {', '.join(map(repr, line))};\n"
        yield "}\n"


def _write_heads(levels: list[list[str]]) -> Iterator[str]:
    for labels in product(*reversed(levels)):
        yield f"({', '.join(reversed(labels))})" if labels else "table"


def _write_name(name: str) -> str:
    if len(name) > MAX_NAME:
        raise FormatError(f"{show(name)} has {len(name):,} characters; BIF names have at most {MAX_NAME:,}")
    return quote(name)
