"""Where the nodes of a graph go: causes above effects, few crossings, arrows that go round what they do not touch.

The classic steps of a layered drawing [Sugiyama et al. 1981]: layers by the longest path, stand-ins where an arrow
passes a layer, orders by the mean place of the neighbours, then places that keep their distance.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from discreet.values.graph import DAG

SWEEPS = 12
"""How often the order is improved downwards and upwards; the best one seen is kept."""
GAP, STAND_IN = 26.0, 18.0
"""Between two nodes, and the width that a passing arrow gets."""

Point = tuple[float, float]
Slot = str | tuple[str, str, int]
"""A node, or the stand-in of an arrow (parent, child) in some layer."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Centres of the nodes, the way of each arrow from centre to centre, and the size of it all."""

    places: Mapping[str, Point]
    routes: Mapping[tuple[str, str], tuple[Point, ...]]
    width: float
    height: float


def lay_out(dag: DAG, widths: Mapping[str, float], layer_height: float) -> Layout:
    """A layered drawing of a graph whose nodes are so many units wide."""
    depth = assign_layers(dag)
    layers, above = _insert_stand_ins(dag, depth)
    layers = _order(layers, above)
    x = _place(layers, above, widths)
    left = min(x[slot] - _width(slot, widths) / 2 for layer in layers for slot in layer)
    right = max(x[slot] + _width(slot, widths) / 2 for layer in layers for slot in layer)
    spot = {
        slot: (x[slot] - left, (i + 0.5) * layer_height) for i, layer in enumerate(layers) for slot in layer
    }
    routes = {
        (parent, child): (
            spot[parent],
            *(spot[parent, child, i] for i in range(depth[parent] + 1, depth[child])),
            spot[child],
        )
        for parent, child in dag.edges()
    }
    places = {name: spot[name] for name in dag.nodes}
    return Layout(places, routes, right - left, len(layers) * layer_height)


def assign_layers(dag: DAG) -> dict[str, int]:
    """A layer for each node, every arrow leading down: the longest path from a root, then parts moved nearer.

    A part that hangs together by arrows of length 1 sinks as long as it has more arrows out than in.
    """
    depth: dict[str, int] = {}
    for name in dag.order:
        depth[name] = 1 + max((depth[parent] for parent in dag.parents_of(name)), default=-1)
    for _ in range(len(dag)):
        moved = False
        for parent, child in dag.edges():
            part = _find_tight_part(dag, depth, parent) if depth[child] - depth[parent] > 1 else set()
            leaving = [edge for edge in dag.edges() if edge[0] in part and edge[1] not in part]
            entering = [edge for edge in dag.edges() if edge[1] in part and edge[0] not in part]
            if child in part or not leaving or len(leaving) <= len(entering):
                continue
            for name in part:
                depth[name] += 1
            moved = True
        if not moved:
            break
    least = min(depth.values())
    return {name: depth[name] - least for name in dag.nodes}


def _find_tight_part(dag: DAG, depth: Mapping[str, int], start: str) -> set[str]:
    part, agenda = {start}, [start]
    while agenda:
        name = agenda.pop()
        near = [parent for parent in dag.parents_of(name) if depth[name] - depth[parent] == 1]
        near += [child for child in dag.children_of(name) if depth[child] - depth[name] == 1]
        new = [other for other in near if other not in part]
        part.update(new)
        agenda += new
    return part


def count_crossings(layers: Sequence[Sequence[Slot]], above: Mapping[Slot, Sequence[Slot]]) -> int:
    """How many pairs of arrows between neighbouring layers cross."""
    found = 0
    for i in range(1, len(layers)):
        rank = {slot: j for j, slot in enumerate(layers[i - 1])}
        ends = [rank[upper] for slot in layers[i] for upper in sorted(above[slot], key=rank.__getitem__)]
        found += sum(ends[j] > ends[k] for j in range(len(ends)) for k in range(j + 1, len(ends)))
    return found


def _insert_stand_ins(dag: DAG, depth: Mapping[str, int]) -> tuple[list[list[Slot]], dict[Slot, list[Slot]]]:
    layers: list[list[Slot]] = [[] for _ in range(1 + max(depth.values()))]
    above: dict[Slot, list[Slot]] = {}
    for name in dag.order:
        layers[depth[name]].append(name)
        above[name] = []
    for parent, child in dag.edges():
        last: Slot = parent
        for i in range(depth[parent] + 1, depth[child]):
            stand_in = (parent, child, i)
            layers[i].append(stand_in)
            above[stand_in] = [last]
            last = stand_in
        above[child].append(last)
    return layers, above


def _order(layers: list[list[Slot]], above: Mapping[Slot, Sequence[Slot]]) -> list[list[Slot]]:
    below: dict[Slot, list[Slot]] = {slot: [] for slot in above}
    for slot, uppers in above.items():
        for upper in uppers:
            below[upper].append(slot)
    best, least = layers, count_crossings(layers, above)
    current = layers
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        turned = [list(layer) for layer in current]
        indices: Iterable[int] = range(1, len(turned)) if down else range(len(turned) - 2, -1, -1)
        for i in indices:
            rank = {slot: j for j, slot in enumerate(turned[i - 1 if down else i + 1])}
            own = {slot: j for j, slot in enumerate(turned[i])}
            neighbours = above if down else below
            turned[i].sort(key=lambda slot: _mean([rank[n] for n in neighbours[slot]], own[slot]))
        current = turned
        crossings = count_crossings(current, above)
        if crossings < least:
            best, least = current, crossings
    return best


def _place(
    layers: Sequence[Sequence[Slot]], above: Mapping[Slot, Sequence[Slot]], widths: Mapping[str, float]
) -> dict[Slot, float]:
    neighbours: dict[Slot, list[Slot]] = {slot: list(uppers) for slot, uppers in above.items()}
    for slot, uppers in above.items():
        for upper in uppers:
            neighbours[upper].append(slot)
    x: dict[Slot, float] = {}
    for layer in layers:
        x |= _spread(layer, dict.fromkeys(layer, 0.0), widths)
    for sweep in range(2 * SWEEPS):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            wanted = {slot: _mean([x[other] for other in neighbours[slot]], x[slot]) for slot in layer}
            x |= _spread(layer, wanted, widths)
    return x


def _spread(
    layer: Sequence[Slot], wanted: Mapping[Slot, float], widths: Mapping[str, float]
) -> dict[Slot, float]:
    """The places nearest to the wanted ones, on average, at which nothing overlaps and the order stays."""
    offsets = [0.0]
    for one, other in zip(layer, layer[1:], strict=False):  # noqa: RUF007
        offsets.append(offsets[-1] + (_width(one, widths) + _width(other, widths)) / 2 + GAP)
    # With the room that must be kept taken away, only the order is left to keep: pool those that are out of order.
    groups: list[tuple[float, int]] = []
    for slot, offset in zip(layer, offsets, strict=True):
        groups.append((wanted[slot] - offset, 1))
        while len(groups) > 1 and groups[-2][0] > groups[-1][0]:
            (late, n), (early, m) = groups.pop(), groups.pop()
            groups.append(((late * n + early * m) / (n + m), n + m))
    levels = [level for level, count in groups for _ in range(count)]
    return {slot: level + offset for slot, level, offset in zip(layer, levels, offsets, strict=True)}


def _width(slot: Slot, widths: Mapping[str, float]) -> float:
    return widths[slot] if isinstance(slot, str) else STAND_IN


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
