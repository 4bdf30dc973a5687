"""One line from an untidy frame to rows: what the custodian is told, and what comes back."""

from __future__ import annotations

import datetime
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import discreet as dc
from discreet.doors.presence import find_never_missing, forbid_missing
from discreet.networks.formats.release import ONCE_SIMULATED, SIMULATED
from discreet.values.errors import DataError, PromiseWarning, SchemaError


def make_visits(rows: int = 800) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame({"patient_id": rng.integers(0, 200, rows), "a": rng.choice(["x", "y"], rows)})


@pytest.mark.parametrize("given", ["nothing", "schema", "ledger"])
def test_whoever_has_several_rows_is_spoken_of_to_the_custodian_only(given: str, tmp_path: Path) -> None:
    choices: dict[str, dict[str, Any]] = {
        "nothing": {},
        "schema": {"schema": {"a": ["x", "y"]}},
        "ledger": {"ledger": tmp_path / "l", "account": "visits"},
    }
    with pytest.warns(PromiseWarning) as said:
        made = dc.Synthesizer(4, **choices[given]).fit(make_visits())
    people = [str(found.message) for found in said if "repeats" in str(found.message)]
    assert len(people) == 1 and 'person="patient_id", at_most=4' in people[0] and "--" not in people[0]
    assert "repeats" not in made.explain() and "repeats" not in made.release_.promise


def test_nobody_is_warned_who_protects_people_or_whose_ids_are_unique() -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        dc.Synthesizer(4, person="patient_id", at_most=4).fit(make_visits())
        dc.Synthesizer(4).fit(make_visits().drop_duplicates("patient_id"))
    assert not [found for found in said if "repeats" in str(found.message)]


def test_messages_speak_python_and_show_no_column_that_was_added() -> None:
    with pytest.raises(DataError, match=r"^the frame: no column 'patient_id'; it has 'a'$"):
        dc.synthesize(make_visits()[["a"]], epsilon=1, person="patient_id", at_most=3)
    frame = make_visits()
    with pytest.raises(SchemaError, match="accept_guesses=True"):
        dc.release(frame, dc.Schema.draft(frame), epsilon=1)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_times_of_day_and_durations_do_not_refuse_a_frame() -> None:
    frame = make_visits()[["a"]]
    frame["at"] = pd.Series([datetime.time(10, 30), datetime.time(11)] * (len(frame) // 2))
    frame["lasted"] = pd.to_timedelta(np.arange(len(frame)), "s")
    made = dc.Synthesizer(8).fit(frame)
    assert set(made.sample(50, rng=1)["at"].dropna()) <= {"10:30:00", "11:00:00", "other"}
    assert made.draft_ is not None and "duration" in made.draft_.left_out["lasted"]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_release_without_a_ledger_says_that_nobody_adds_up() -> None:
    made = dc.release(make_visits(), {"a": ["x", "y"]}, epsilon=1)
    assert made.promise.endswith("nobody adds it up.") and "simulation" not in made.promise
    earlier = dc.Release(made.network, made.promise.replace(SIMULATED, ONCE_SIMULATED), made.software)
    assert dc.verify(earlier).sound


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_only_columns_with_missing_cells_come_back_with_some() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"full": rng.integers(0, 5, 400), "gaps": rng.integers(0, 5, 400)})
    frame["gaps"] = frame["gaps"].where(rng.random(400) > 0.25)
    made = dc.Synthesizer(40).fit(frame)
    told = made.draft_.missing if made.draft_ is not None else {}
    assert abs(told["full"][0]) < 8 * told["full"][1] ** 0.5 and told["gaps"][0] > 50
    sure = {"full": (0.0, 1e-9), "gaps": (100.0, 1e-9)}
    assert find_never_missing(made.release_, sure) == ["full"]
    assert find_never_missing(made.release_, {**sure, "full": (9.0, 1e-9)}) == []
    drawn = made.sample(400, rng=1)
    assert abs(drawn["gaps"].isna().sum() - frame["gaps"].isna().sum()) < 20
    never = forbid_missing(made.release_.network, ["full"]).sample(400, rng=1).pandas()
    assert not never["full"].isna().any() and never["gaps"].isna().any()


def test_a_conditional_without_missing_cells_adds_up_to_one() -> None:
    schema = dc.Schema((dc.Attribute.of("x", ["0", "1"]), dc.Attribute.of("y", ["a", "b"], missing="none")))
    cpts: dict[str, Any] = {"x": [0.5, 0.5], "y": [[0.2, 0.3, 0.5], [0.0, 0.0, 1.0]]}
    network = forbid_missing(dc.Network.build(schema, {"x": [], "y": ["x"]}, cpts), ["y"])
    assert np.allclose(network.cpt("y").values, [[0.4, 0.6, 0.0], [0.4, 0.6, 0.0]])
    assert forbid_missing(network, []).close_to(network, 0.0)


def make_numbers(rows: int = 600) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    return pd.DataFrame({"score": rng.integers(1, 6, rows).astype(float), "age": rng.integers(20, 60, rows)})


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_types_that_are_declared_come_back() -> None:
    """Nullable types hold missing cells, so none of them changes the type; NumPy's come back where they are public."""
    given = make_numbers().astype({"score": "Float32", "age": "Int32"})
    drawn = dc.synthesize(given, epsilon=20, rows=50, rng=1, quiet=True)
    assert drawn.dtypes.to_dict() == given.dtypes.to_dict()
    given = make_numbers().astype({"age": "int32"})
    drawn = dc.synthesize(given, epsilon=20, rows=50, rng=1, quiet=True, keep_types=True)
    assert drawn.dtypes.to_dict() == given.dtypes.to_dict()


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_missing_cell_does_not_show_in_the_type_of_whole_numbers() -> None:
    """With a missing cell pandas' integers are floats: neither type may come back unless somebody calls it public."""
    whole = make_numbers()[["age"]]
    gap = whole.assign(age=whole["age"].where(whole.index > 0))
    assert whole["age"].dtype != gap["age"].dtype
    types = [
        dc.synthesize(frame, epsilon=20, rows=50, rng=1, quiet=True)["age"].dtype for frame in (whole, gap)
    ]
    assert types[0] == types[1]
