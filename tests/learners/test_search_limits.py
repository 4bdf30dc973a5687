"""A search that looks at less than θ allows says so."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import discreet as dc
from discreet.learning.greedy import greedy
from discreet.values.errors import SearchWarning


def test_a_degree_that_is_cut_is_told() -> None:
    """Fifty bits and so large a budget that θ allows more parents than can be searched."""
    schema = dc.Schema.of({f"x{i:02d}": ["0", "1"] for i in range(50)})
    codes = np.zeros(2000, dtype=np.int64)
    rows = {name: np.array(["0", "1"])[codes] for name in schema.names}
    with (
        dc.open_airlock(rows, schema, budget="10000000", unit="replace-one") as airlock,
        pytest.warns(SearchWarning, match="θ = 4 allows k = .*; with 50 attributes k = 3 is the most"),
    ):
        greedy(
            airlock,
            spend="1000000",
            order=schema.names,
            start=dc.DAG.build({n: [] for n in schema.names[:48]}),
        )
    few = dc.Schema.of({f"x{i}": ["0", "1"] for i in range(4)})
    with (
        dc.open_airlock(dict.fromkeys(few.names, rows["x00"]), few, budget="10") as airlock,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", SearchWarning)
        greedy(airlock, spend="1")
