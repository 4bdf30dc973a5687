"""How far one machine and one cluster go: opening, counting, searching and writing from 10⁶ rows on.

The last lines are the figures promised:

- `open_ten_million_s` below 5: ten million rows of Alarm's 37 attributes from Parquet, every row checked and encoded,
  by the clock; `open_cores_s` is what all cores together spent on it, which a busy machine does not stretch.
- `csv_over_duckdb_scan` at most 3: seconds to open a CSV file over those of DuckDB's own scan of it.
- `spark_over_grouping_sets`: how many times as fast our kernel on Spark's executors counts twenty pairs as its grouping
  sets do; the more tables, the more so, because these multiply the rows by their number.
- `spark_over_embedded` at most 10: seconds of a search on Child's rows inside Spark over those of the embedded engine.
- `rows_max`, `peak_mb`, `linearity`: the largest folder of Parquet files that was released, with the graph and by
  search, the most memory that took, and seconds of the cores per row at the largest size over those at the smallest
  above 10⁶.
- `wide_over_narrow`: the candidates of a search on Child's rows, counted one by one over as margins of wide tables, in
  seconds of one core.
- `sample_mrows_per_s`: million synthetic rows of Alarm written to Parquet in a second, of a hundred million;
  `sample_mrows_per_core_s` by seconds of the cores, `sample_peak_mb` the most memory that took, `sample_over_disk` how
  many times as long it took as a plain copy of the same bytes to the same disk, until they were on it.
- `engines_agree`: 1 if embedded, Spark's executors and Spark's grouping sets agree cell by cell, people bounded too.

`--rows 1e9` grows the folder up to a billion rows: 4 GB of Parquet and 20 GB of codes, and an hour or more on a busy
machine. With `--folder` it stays, and so does what was measured: run it again, and it goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _aggregation_tree import show
from _running import progress
from _scale_parts import FEW_SETS, PART_ROWS, PARTS, spread

LARGE = "child"
"""The network of the large folder: twenty attributes, whose joint table no memory holds."""
BYTES_PER_ROW = 24
"""What a row of it takes on disk at most: 4 in Parquet, 20 as kept codes."""
KEPT_FREE = 40 * 10**9
"""Bytes of the disk that are left to others."""
MEMORY = "256MB"
"""The limit under which the large folder is released: codes of all but the smallest are read again for each pass."""


def run_part(name: str, *arguments: object) -> dict[str, Any]:
    """One part in a process of its own; what it says on the way is shown."""
    command = [sys.executable, __file__, "--part", json.dumps([name, *arguments])]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if answer.returncode:
        raise SystemExit(f"{name} failed")
    return dict(json.loads(answer.stdout.splitlines()[-1]))


def choose_sizes(most: int) -> list[int]:
    """Rows from 10⁶ on, ten times as many each, and `most`."""
    sizes = [10**6]
    while sizes[-1] * 10 <= most:
        sizes.append(sizes[-1] * 10)
    return sizes if sizes[-1] == most else [*sizes, most]


def write_folder(folder: Path, rows: int) -> None:
    """Parquet files with so many rows together, no two of them the same; those that are there stay."""
    missing = []
    for part in range(-(-rows // PART_ROWS)):
        size = min(PART_ROWS, rows - part * PART_ROWS)
        path = folder / f"part{part:04}-{size}.parquet"
        if not path.exists():
            for shorter in folder.glob(f"part{part:04}-*.parquet"):
                shorter.unlink()
            missing.append((size, str(path), part))
    if missing:
        needed = rows * BYTES_PER_ROW
        if shutil.disk_usage(folder).free < needed + KEPT_FREE:
            raise SystemExit(
                f"{rows:,} rows take {needed / 1e9:.0f} GB, and the disk has not {KEPT_FREE / 1e9:.0f} GB more"
            )
        made = run_part("write_parts", LARGE, missing)
        print(
            f"  {made['rows']:>13,} rows written  {made['clock']:.2f} s, cores {made['cores']:.2f} s, "
            f"peak {made['peak']:.0f} MB",
            flush=True,
        )


def release_sizes(folder: Path, most: int, step: Callable[[], None]) -> list[dict[str, Any]]:
    """A release with the graph, which keeps the codes, and one by search, which finds them, at every size."""
    known = folder / "measured.json"
    found: list[dict[str, Any]] = json.loads(known.read_text()) if known.exists() else []
    for rows in choose_sizes(most):
        for search in (False, True):
            part = next((one for one in found if (one["rows"], one["search"]) == (rows, search)), None)
            if part is None:
                (folder / "rows").mkdir(exist_ok=True)
                write_folder(folder / "rows", rows)
                part = run_part(
                    "release_rows", LARGE, str(folder / "rows"), MEMORY, search, str(folder / "codes")
                )
                part = {"rows": rows, "search": search, **part}
                found.append(part)
                known.write_text(json.dumps(found))
            way = "by search     " if search else "with the graph"
            print(
                f"  {rows:>13,} rows {way}  open {part['open']:8.2f} s  learn {part['learn']:8.2f} s  "
                f"cores {part['opened']:8.2f} + {part['learned']:8.2f} s  peak {part['peak']:.0f} MB",
                flush=True,
            )
            step()
    return [part for part in found if part["rows"] <= most]


def judge_linearity(found: list[dict[str, Any]]) -> float:
    """Seconds of the cores per row at the largest size over those at the smallest that is above 10⁶, the worse way."""
    ratios = []
    for search in (False, True):
        ways = [part for part in found if part["search"] == search]
        first = ways[1] if len(ways) > 2 else ways[0]
        ratios.append((ways[-1]["cores"] / ways[-1]["rows"]) / (first["cores"] / first["rows"]))
    return max(ratios)


def main() -> None:
    """Run every part, print what it found, and end with the figures as `name: value` lines."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, in less than a minute")
    parser.add_argument("--rows", type=float, default=1e8, help="rows of the largest folder, from 1e6 to 1e9")
    parser.add_argument(
        "--only",
        choices=["open", "count", "engines", "large", "write"],
        help="one part of it; figures of the others are those of earlier runs in --out",
    )
    parser.add_argument("--folder", type=Path, help="where the large folder is made, and stays")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder for the CSV")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        name, *rest = json.loads(arguments.part)
        print(json.dumps(PARTS[name](*rest)))
        return
    quick, only = arguments.quick, arguments.only
    most = 10**6 if quick else int(arguments.rows)
    if not 10**6 <= most <= 10**9:
        raise SystemExit(f"--rows must lie between 1e6 and 1e9, not {arguments.rows:g}")
    lines: list[tuple[str, float]] = []
    with (
        tempfile.TemporaryDirectory(dir=os.environ.get("TMPDIR")) as place,
        progress("scale", 4 + 2 * len(choose_sizes(most))) as step,
    ):
        folder = Path(place)
        if only in (None, "write", "open"):
            lines += write_and_open(folder, quick, step)
        if only in (None, "count"):
            counted = run_part("count_tables", LARGE, 5 * 10**5 if quick else 5 * 10**6)
            print(
                f"4,286 tables of {LARGE}: {counted['narrow']:.3g} rows·tables a second and core one by one, "
                f"{counted['wide']:.3g} as margins of wide ones"
            )
            lines += [("wide_over_narrow", counted["ratio"]), ("wide_agree", counted["agree"])]
        if only in (None, "engines"):
            lines += race(folder, quick, step)
        if only in (None, "large"):
            large = arguments.folder or folder / "large"
            large.mkdir(exist_ok=True)
            print(f"Releases of {LARGE}'s rows from Parquet, memory limit {MEMORY}:")
            found = release_sizes(large, most, step)
            lines += [
                ("rows_max", max(part["rows"] for part in found)),
                ("peak_mb", max(part["peak"] for part in found)),
                ("linearity", judge_linearity(found)),
            ]
    if only is None:
        print("\n".join(show()))
    kept = read_figures(arguments.out / "scale.csv") if only else {}
    figures = {**kept, **dict(lines)}
    if kept:
        print(
            f"from earlier runs: {', '.join(name for name in kept if name not in dict(lines)) or 'nothing'}"
        )
    arguments.out.mkdir(parents=True, exist_ok=True)
    with (arguments.out / "scale.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [("figure", "value"), *((name, f"{value:.6g}") for name, value in figures.items())]
        )
    for name, value in figures.items():
        print(f"{name}: {value:.6g}")


def read_figures(path: Path) -> dict[str, float]:
    """The figures of earlier runs, so that the parts can be run one by one."""
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {row["figure"]: float(row["value"]) for row in csv.DictReader(file)}


def write_and_open(folder: Path, quick: bool, step: Callable[[], None]) -> list[tuple[str, float]]:
    """Synthetic rows of Alarm to Parquet and CSV, and both opened."""
    rows, lines_of_csv = (10**6, 10**5) if quick else (10**7, 10**6)
    rounds = 2 if quick else 3
    path = folder / "alarm.parquet"
    written = run_part("write", "alarm", rows, str(path), 1)
    if not quick:  # the file to open, and then a hundred million rows
        written = run_part("write", "alarm", 10 * rows, str(folder / "many.parquet"), 1)
        (folder / "many.parquet").unlink()
    step()
    opened = run_part("open_rows", "alarm", str(path), rounds)
    path.unlink()
    step()
    plain = folder / "alarm.csv"
    run_part("write", "alarm", lines_of_csv, str(plain), 2)
    scanned = run_part("open_csv", "alarm", str(plain), rounds)
    plain.unlink()
    step()
    speed = written["bytes"] / written["clock"] / 1e6
    print(
        f"Alarm, {written['rows']:,} rows: written in {written['clock']:.2f} s ({written['cores']:.2f} s of the cores, "
        f"{written['bytes'] / 1e6:.0f} MB at {speed:.0f} MB/s, the disk takes {written['disk'] / 1e6:.0f} MB/s), "
        f"peak {written['peak']:.0f} MB"
    )
    print(
        f"  {rows:,} rows opened from Parquet in {opened['clock']:.2f} s ({opened['cores']:.2f} s of the cores), "
        f"peak {opened['peak']:.0f} MB"
    )
    print(f"  CSV of {lines_of_csv:,} rows: {spread(scanned['ratios'])} times DuckDB's own scan")
    times = 10**7 // rows
    if times > 1:
        print(f"  the figures of ten million rows below are those of {rows:,}, times {times}")
    return [
        ("open_ten_million_s", opened["clock"] * times),
        ("open_cores_s", opened["cores"] * times),
        ("csv_over_duckdb_scan", statistics.median(scanned["ratios"])),
        ("sample_mrows_per_s", written["rows"] / 1e6 / written["clock"]),
        ("sample_mrows_per_core_s", written["rows"] / 1e6 / written["cores"]),
        ("sample_over_disk", written["disk"] / speed * 1e-6),
        ("sample_peak_mb", written["peak"]),
    ]


def race(folder: Path, quick: bool, step: Callable[[], None]) -> list[tuple[str, float]]:
    """The same tables by every engine, and a search inside Spark and embedded."""
    path = folder / "engines.parquet"
    run_part("write", LARGE, 10**5 if quick else 2 * 10**6, str(path), 3)
    raced = run_part("race_engines", LARGE, str(path), 20 if quick else 190, not quick)
    path.unlink()
    step()
    seconds = raced["seconds"]
    print(f"{LARGE}, {'100,000' if quick else '2,000,000'} rows, {'20' if quick else '190'} tables of pairs:")
    for name, value in seconds.items():
        print(f"  {name:<30} {value:8.2f} s")
    lines = [
        (
            "spark_over_grouping_sets",
            seconds[f"Spark, grouping sets: {FEW_SETS} of them"]
            / seconds[f"Spark, our kernel: {FEW_SETS} of them"],
        ),
        ("engines_agree", raced["agree"]),
    ]
    if not quick:
        lines.append(
            ("spark_over_embedded", seconds["Spark, our kernel: search"] / seconds["embedded: search"])
        )
    else:
        print("  a search takes longer than --quick allows: spark_over_embedded comes with a full run")
    return lines


if __name__ == "__main__":
    main()
