"""Taxonomies: a tree over the levels of an attribute, and the coarser levels that cutting it gives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from discreet.values.errors import SchemaError
from discreet.values.text import list_some, require_label, require_name, show

MAX_HEIGHT = 32
"""The tallest tree accepted: 2³² levels in pairs of pairs, and far below Python's recursion limit."""


@dataclass(frozen=True, slots=True)
class Group:
    """A named set of levels and smaller groups."""

    label: str
    members: tuple[str | Group, ...]

    def __post_init__(self) -> None:
        require_name("taxonomy group", self.label)
        if not self.members:
            raise SchemaError(f"taxonomy group {show(self.label)} is empty; it needs at least one member")


@dataclass(frozen=True, slots=True)
class Taxonomy:
    """A tree whose leaves are levels; `members` are its topmost groups and the levels in no group."""

    members: tuple[str | Group, ...]

    def __post_init__(self) -> None:
        leaves: set[str] = set()
        groups: set[str] = set()
        for node in self._walk():
            if isinstance(node, Group):
                if node.label in groups:
                    raise SchemaError(f"the taxonomy names the group {show(node.label)} twice")
                groups.add(node.label)
            else:
                require_label("taxonomy member", node)
                if node in leaves:
                    raise SchemaError(f"the taxonomy lists the level {show(node)} twice")
                leaves.add(node)
        if not groups:
            raise SchemaError("the taxonomy has no groups; leave it out or group some levels")
        both = sorted(leaves & groups)
        if both:
            raise SchemaError(
                f"{show(both[0])} is both a level and a group of the taxonomy; rename the group"
            )

    @classmethod
    def halve(cls, levels: Sequence[str]) -> Taxonomy:
        """The tree that joins neighbours in pairs, then pairs of pairs, as for numbers in PrivBayes [004]."""
        row: list[tuple[str, str, str | Group]] = [(level, level, level) for level in levels]
        if len(row) < 3:
            raise SchemaError(f"{len(row)} levels are too few to halve; at least 3 are needed")
        while len(row) > 2:
            pairs = [
                (left[0], right[1], Group(f"{left[0]} … {right[1]}", (left[2], right[2])))
                for left, right in zip(row[0::2], row[1::2], strict=False)
            ]
            row = pairs + row[len(row) - len(row) % 2 :]
        return cls(tuple(node for _, _, node in row))

    @property
    def leaves(self) -> tuple[str, ...]:
        """Every level in the tree, in the order written."""
        return tuple(node for node in self._walk() if isinstance(node, str))

    @property
    def height(self) -> int:
        """The number of cuts, the one at the leaves included: the longest path from the root to a leaf."""
        return max(len(path) for path in self.paths().values())

    def paths(self) -> dict[str, tuple[str, ...]]:
        """For each leaf, the labels from the topmost group down to the leaf itself."""
        found: dict[str, tuple[str, ...]] = {}

        def descend(nodes: tuple[str | Group, ...], above: tuple[str, ...]) -> None:
            for node in nodes:
                if isinstance(node, Group):
                    descend(node.members, (*above, node.label))
                else:
                    found[node] = (*above, node)

        descend(self.members, ())
        return found

    def cut(self, depth: int) -> dict[str, str]:
        """What each leaf is called after climbing `depth` steps from the deepest leaves; 0 changes nothing.

        The cut runs at one distance from the root, so a leaf in a shallow branch stays itself until the cut
        reaches it, and the partitions of successive depths nest.
        """
        paths = self.paths()
        height = max(len(path) for path in paths.values())
        if not 0 <= depth < height:
            raise SchemaError(
                f"generalisation depth {depth} is not allowed; the taxonomy has depths 0 to {height - 1}"
            )
        return {leaf: path[min(height - depth, len(path)) - 1] for leaf, path in paths.items()}

    def require_levels(self, levels: Sequence[str], missing: str | None) -> None:
        """Refuse a tree that leaves out a level or has an undeclared one; `missing` may be left out."""
        leaves = self.leaves
        declared = set(levels)
        unknown = next((leaf for leaf in leaves if leaf not in declared), None)
        if unknown is not None:
            raise SchemaError(
                f"the taxonomy lists the unknown level {show(unknown)}; declared are {list_some(levels)}"
            )
        present = {*leaves, missing}
        absent = [level for level in levels if level not in present]
        if absent:
            raise SchemaError(f"the taxonomy leaves out {list_some(absent)}; every level must be in it")
        clash = next(
            (node.label for node in self._walk() if isinstance(node, Group) and node.label == missing), None
        )
        if clash is not None:
            raise SchemaError(
                f"{show(clash)} is both the missing level and a group of the taxonomy; rename the group"
            )

    def _walk(self) -> Iterator[str | Group]:
        agenda: list[tuple[str | Group, int]] = [(node, 1) for node in reversed(self.members)]
        while agenda:
            node, depth = agenda.pop()
            if depth > MAX_HEIGHT:
                raise SchemaError(f"the taxonomy is more than {MAX_HEIGHT} groups deep")
            yield node
            if isinstance(node, Group):
                agenda += [(member, depth + 1) for member in reversed(node.members)]
