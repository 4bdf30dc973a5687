"""A simulation of one pass on a cluster: partitions are counted, and their tables added up in a tree.

Time is that of list scheduling: a task starts on the core that is free first, and a level of the tree starts when the
last task of the one before has ended, as Spark's stages do. `measure_constants` measures what can be measured on this
machine; those of the network are assumptions, and named so.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from discreet.rows.engines.covering import cover
from discreet.rows.engines.spark_tasks import add_slice

FAN = 32
"""Tables that one task adds up, as in `discreet.rows.engines.ways`."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """What one executor can do."""

    counted: float
    """Rows·wide tables that a core counts in a second: measured."""
    added: float
    """Cells that a core adds to others in a second: measured."""
    executors: int = 100
    cores: int = 4
    overhead: float = 0.05
    """Seconds to start a task: an assumption, Spark's own order of magnitude."""
    network: float = 1.25e9
    """Bytes that an executor, or the driver, takes in a second: an assumption, ten gigabits."""
    spread: float = 0.2
    """The deviation of the logarithm of a task's time: an assumption; stragglers are part of any cluster."""


def list_candidates() -> tuple[list[int], list[tuple[int, ...]]]:
    """The sizes of Child's attributes, and what a search counts: all pairs, and 4,096 sets of three and four."""
    from discreet.networks import examples

    schema = examples.child().schema
    sizes = [attribute.size for attribute in schema]
    wider = [members for width in (3, 4) for members in combinations(range(len(sizes)), width)]
    wider.sort(key=lambda members: math.prod(sizes[i] for i in members))
    return sizes, [*combinations(range(len(sizes)), 2), *wider[:4096]]


def count_wide(sizes: list[int], sets: list[tuple[int, ...]]) -> int:
    """The number of wide tables that are counted for these."""
    return len(cover(sizes, sets, 10**9, 2**22))


def measure_constants() -> Cluster:
    """What one core of this machine counts and adds in a second of its own time."""
    from discreet.networks import examples
    from discreet.rows.engines.kernels import Tally

    rows, child = 2**20, examples.child()
    codes = list(child.sample(rows, rng=1).codes().values())
    sizes, sets = list_candidates()
    Tally(sizes, sets, threads=1, rows=rows).add([column[:64] for column in codes])
    tally, start = Tally(sizes, sets, threads=1, rows=rows), time.process_time()
    tally.add(codes)
    counted = rows * count_wide(sizes, sets) / (time.process_time() - start)
    sums, cells = {}, np.ones(2**22, dtype=np.int64).tobytes()
    add_slice(sums, 0, cells)
    start = time.process_time()
    for _ in range(8):
        add_slice(sums, 0, cells)
    return Cluster(counted, 8 * 2**22 / (time.process_time() - start))


def schedule(seconds: np.ndarray, cores: int) -> float:
    """When the last of these tasks ends, if each starts on the core that is free first."""
    free = [0.0] * cores
    for task in seconds:
        heapq.heapreplace(free, free[0] + float(task))
    return max(free)


def simulate(
    cluster: Cluster, rows: float, partitions: int, tables: int, cells: int, seed: int = 1
) -> dict[str, float]:
    """Seconds of counting, of each way to add up, and gigabytes that travel."""
    rng = np.random.default_rng(seed)
    cores, size = cluster.executors * cluster.cores, 8.0 * cells

    def vary(each: float, tasks: int) -> np.ndarray:
        return cluster.overhead + each * rng.lognormal(0.0, cluster.spread, tasks)

    counting = schedule(vary(rows / partitions * tables / cluster.counted, partitions), cores)
    parts, adding, moved = partitions, 0.0, 0.0
    while parts > FAN:
        fewer = -(-parts // FAN)
        moved += parts * size
        busy = min(cores, fewer)
        taking = FAN * size / (cluster.network * cluster.executors / min(cluster.executors, busy))
        adding += schedule(vary(FAN * cells / cluster.added + taking, fewer), cores)
        parts = fewer
    adding += parts * (size / cluster.network + cells / cluster.added)
    flat = partitions * (size / cluster.network + cells / cluster.added)
    return {"counting": counting, "tree": adding, "flat": flat, "moved_gb": (moved + parts * size) / 1e9}


def list_cases() -> list[tuple[str, int, int]]:
    """What is counted in one pass: a name, how many wide tables, how many cells those asked for have together."""
    sizes, sets = list_candidates()
    cells = [math.prod(sizes[i] for i in members) for members in sets]
    return [
        ("190 pairs of Child", count_wide(sizes, sets[:190]), sum(cells[:190])),
        ("4,286 candidates of a search", count_wide(sizes, sets), sum(cells)),
        ("tables of 22 million cells", 40, 22_000_000),
    ]


def show(rows: float = 1e11, partitions: int = 10_000) -> list[str]:
    """A line for each case."""
    cluster = measure_constants()
    lines = [
        f"{rows:.0e} rows in {partitions:,} partitions, {cluster.executors} executors of {cluster.cores} cores, "
        f"each {cluster.counted:.2g} rows·wide tables and {cluster.added:.2g} cells per second (simulated):",
        f"  {'one pass for':<32} {'counting':>10} {'tree':>10} {'all to the driver':>18} {'moved':>10}",
    ]
    for name, tables, cells in list_cases():
        found = simulate(cluster, rows, partitions, tables, cells)
        lines.append(
            f"  {name:<32} {found['counting']:>8.0f} s {found['tree']:>8.2f} s {found['flat']:>16.1f} s "
            f"{found['moved_gb']:>7.1f} GB"
        )
    return lines


if __name__ == "__main__":
    print("\n".join(show()))
