"""One law for every cell in every engine: spellings, dates and what is outside give the same tables everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from discreet.entrance import open_counter
from discreet.values.schema import Attribute, Schema
from readings import NUMBERS, TEXTS, by_hand


def counts(data: Any, attribute: Attribute) -> list[int]:
    counter = open_counter(data, Schema((attribute,)))
    try:
        return [int(count) for count in counter.count([(attribute.name,)])[0].values]
    finally:
        counter.close()


def forms(name: str, values: Any, folder: Path) -> dict[str, Any]:
    array = values if isinstance(values, pa.Array) else pa.array(values, pa.string())
    table = pa.table({name: array})
    pq.write_table(table, folder / "t.parquet")
    return {
        "arrow": table,
        "parquet": str(folder / "t.parquet"),
        "pandas": table.to_pandas(),
        "polars": pl.from_arrow(table),
        "lists": {name: array.to_pylist()},
    }


@pytest.mark.parametrize("name", TEXTS)
def test_texts_mean_the_same_everywhere(name: str, tmp_path: Path) -> None:
    attribute, values = TEXTS[name]
    wanted = by_hand(attribute, values)
    assert sum(wanted) == len(values) or attribute.leaves_out
    for form, data in forms(name, values, tmp_path).items():
        assert counts(data, attribute) == wanted, form
    table = pa.table({name: pa.array([value or "" for value in values], pa.string()), "x": [1] * len(values)})
    pa_csv.write_csv(table, tmp_path / "t.csv")
    assert counts(str(tmp_path / "t.csv"), attribute) == by_hand(attribute, [value or "" for value in values])


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_and_dates_mean_the_same_everywhere(name: str, tmp_path: Path) -> None:
    attribute, values = NUMBERS[name]
    wanted = by_hand(attribute, values)
    assert sum(wanted) == len(values) or attribute.leaves_out
    for form, data in forms(name, values, tmp_path).items():
        assert counts(data, attribute) == wanted, form
