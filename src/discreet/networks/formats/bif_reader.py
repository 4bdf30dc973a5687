"""From the text of a BIF file to declarations: what a file says, checked, before any network is made of it.

The language is the Interchange Format 0.15 (Cozman 1998) as public repositories write it. Commas are blanks.
Comments, `//` and `/* */`, begin anywhere outside quotes; `property` entries are skipped. A name is quoted
when it holds blanks or one of `{}()[];,|"`; between quotes a backslash escapes a quote or a backslash. Blocks
and rows come in any order, and `default` fills the rows not listed. A flat `table` counts through the child,
then the first to the last parent, the last fastest, as the specification, pgmpy and pyAgrum have it.
"""

from __future__ import annotations

from dataclasses import dataclass

from discreet.networks.formats.bif_tables import TableReader
from discreet.networks.formats.bif_tokens import Tokens
from discreet.values.errors import TooLarge
from discreet.values.table import Array, count_cells
from discreet.values.wording import show

MAX_TABLE_CELLS = 2**24
"""The largest table that a file may declare; the largest in the public networks has 280,000 cells."""

MAX_TOTAL_CELLS = 2**25
"""The most cells that a file may declare in all: 256 MiB of float64."""

MAX_PARENTS = 63
"""An array has at most 64 axes."""


@dataclass(frozen=True, slots=True)
class Declaration:
    """One variable as a file declares it; `values` has one axis per parent, in order, then the child's."""

    name: str
    levels: tuple[str, ...]
    parents: tuple[str, ...]
    values: Array
    line: int


@dataclass(frozen=True, slots=True)
class _Variable:
    levels: tuple[str, ...]
    codes: dict[str, int]
    place: int


@dataclass(frozen=True, slots=True)
class _Block:
    parents: tuple[str, ...]
    entries: list[tuple[int, int]]
    place: int


def read_declarations(text: str, source: str) -> list[Declaration]:
    """Every variable of a BIF text, in order of declaration; the first fault is refused with its line."""
    tokens = Tokens(text, source)
    variables, blocks = _read_blocks(tokens)
    _require_graph(tokens, variables, blocks)
    _require_cells(tokens, variables, blocks)
    lines = tokens.lines([variable.place for variable in variables.values()])
    found = []
    for (name, variable), line in zip(variables.items(), lines, strict=True):
        block = blocks[name]
        codes = [(parent, variables[parent].codes) for parent in block.parents]
        values = TableReader(tokens, name, len(variable.levels), codes, block.place).read(block.entries)
        found.append(Declaration(name, variable.levels, block.parents, values, line))
    return found


def _read_blocks(tokens: Tokens) -> tuple[dict[str, _Variable], dict[str, _Block]]:
    variables: dict[str, _Variable] = {}
    blocks: dict[str, _Block] = {}
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


def _read_variable(tokens: Tokens) -> tuple[str, _Variable]:
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
    return name, _Variable(levels, {level: code for code, level in enumerate(levels)}, start)


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


def _read_probability(tokens: Tokens) -> tuple[str, _Block]:
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
            tokens.refuse(place, f"found '}}' where ';' should end a row of {show(child)}")
        entries.append((start, stop))
    return child, _Block(tuple(parents), entries, begin)


def _require_graph(tokens: Tokens, variables: dict[str, _Variable], blocks: dict[str, _Block]) -> None:
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


def _require_cells(tokens: Tokens, variables: dict[str, _Variable], blocks: dict[str, _Block]) -> None:
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
