"""`discreet schema draft`: it fits the rows that it was drafted from, marks every guess, and leaves identifiers out."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import discreet as dc
from discreet.doors.cli import main
from discreet.entrance import open_counter
from discreet.rows.draft import REVIEW, draft_schema
from discreet.rows.draft.profile import Column, Numbers
from discreet.rows.draft.proposal import _fit, merge_rare
from discreet.values.errors import DataError, PromiseWarning, SchemaError
from discreet.values.schema import Attribute
from discreet.values.schema.bins import Bins
from discreet.values.schema.edges import cut_dates, cut_quantiles
from discreet.values.schema.formats.toml import parse_toml

CELL = st.one_of(
    st.sampled_from(
        ["", "yes", "no", "?", "-", "--5", "+1", "007", "1e3", "inf", "nan", "a,b", 'say "no"', "=1+1"]
    ),
    st.integers(-50, 400).map(str),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: f"{number:.3f}"),
)


@given(rows=st.lists(st.tuples(CELL, CELL, st.sampled_from(["x", "y"])), min_size=2, max_size=60))
@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_draft_fits_the_rows_it_was_made_from(tmp_path: Path, rows: list[tuple[str, str, str]]) -> None:
    """Whatever is in the cells: the draft parses to the schema that it shows, and every row fits it."""
    table = pa.table({name: [row[i] for row in rows] for i, name in enumerate(["a", "b b", "ç"])})
    path = str(tmp_path / "t.csv")
    pyarrow.csv.write_csv(table, path)
    try:
        draft = draft_schema(path, most_levels=6, least=3)
        schema = draft.schema
    except SchemaError:
        return
    assert parse_toml(draft.format()) == schema
    assert draft.guesses == draft.format().count(REVIEW) >= len(schema)
    open_counter(path, schema).close()


@pytest.fixture
def clinic(tmp_path: Path) -> str:
    path = tmp_path / "clinic.parquet"
    rows = 300
    table = pa.table(
        {
            "name": [f"patient {i}" for i in range(rows)],
            "age": pa.array([20 + i % 60 for i in range(rows)], pa.int16()),
            "weight": [None if i % 9 == 0 else 50.0 + i / 7 for i in range(rows)],
            "smoker": [i % 3 == 0 for i in range(rows)],
            "stage": pa.array(["II", "I", "III"] * 100).dictionary_encode(),
            "grade": pa.array([[10, 9, 2][i // 3 % 3] for i in range(rows)]),
            "seen": pa.array([19000] * rows, pa.date32()),
            "only": ["x"] * rows,
        }
    )
    pyarrow.parquet.write_table(table, path)
    return str(path)


def test_columns_by_their_types(clinic: str) -> None:
    draft = draft_schema(clinic)
    schema = draft.schema
    assert schema.names == ("age", "weight", "smoker", "stage", "grade")
    age = schema["age"].bins
    assert age is not None and 10 <= len(age) <= 20 and schema["age"].type == "integer"
    assert schema["weight"].missing == "missing" and schema["weight"].type == "decimal"
    assert schema["smoker"].levels == ("false", "true") and schema["smoker"].type == "boolean"
    assert schema["grade"].levels == ("2", "9", "10") and schema["grade"].ordered
    open_counter(clinic, schema).close()
    text = draft.format()
    assert "patient 7" not in text, "no value of a column that is left out is shown"
    assert "'name' is left out" in text and "'seen' is left out" in text and "'only' is left out" in text


def plant(tmp_path: Path, rows: int = 600) -> str:
    """A table in which one patient stands out in every column."""
    path = tmp_path / "planted.csv"
    lines = ["visit_id,sex,age,lab,seen,town,remark"]
    for i in range(rows - 1):
        day = f"2024-{1 + i % 12:02}-{1 + i % 28:02}"
        lines.append(f"{i},{'fm'[i % 2]},{20 + i % 60},{4 + i % 40 / 10},{day},{'ABC'[i % 3]}town,fine")
    lines.append("777777,Zwitter,119,88888.5,1897-03-04,Hermitage,she lost her twin and drinks")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def test_nothing_is_written_that_fewer_rows_hold_than_the_threshold(tmp_path: Path) -> None:
    """A planted patient: neither her sentence, nor her town, nor an edge near her age, value or date."""
    path = plant(tmp_path)
    draft = draft_schema(path)
    text = draft.format()
    for secret in ("Zwitter", "119", "88888", "1897", "Hermitage", "twin"):
        assert secret not in text
    schema = draft.schema
    ends = {name: schema[name].bins.edges for name in ("age", "lab")}  # type: ignore[union-attr]
    assert ends["age"][-1] <= 85 and ends["lab"][-1] <= 9
    assert schema["seen"].bins is not None and schema["seen"].levels[0].startswith("[2023-12") is False
    assert schema["town"].other == "other" and schema["sex"].other == "other"
    assert "twin" in draft_schema(path, least=1).format() + "twin", (
        "with a threshold of 1 anything may be written"
    )
    open_counter(path, schema).close()


def test_a_threshold_of_people_is_not_one_of_rows(tmp_path: Path) -> None:
    """Forty rows of two people make a level of rows, and none of people; so do numbers and ends of ranges."""
    path = tmp_path / "visits.csv"
    lines = ["patient_id,town,score"]
    lines += [f"P{i % 90},{'AB'[i % 2]}town,{i % 50}" for i in range(400)]
    lines += [f"Q{i % 2},Hermitage,999" for i in range(40)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    rows, people = draft_schema(str(path)), draft_schema(str(path), person="patient_id")
    assert ("Hermitage" in rows.format() and "1000" in rows.format()) or "999" in rows.format()
    assert (
        "Hermitage" not in people.format() and "999" not in people.format() and "1000" not in people.format()
    )
    assert rows.repeated == "patient_id" and "--person patient_id" in rows.format()
    assert people.repeated is None and "patient_id" not in people.schema
    with pytest.raises(DataError, match="no column 'nobody'"):
        draft_schema(str(path), person="nobody")


def test_columns_that_are_no_attributes_are_left_out_with_a_word(tmp_path: Path) -> None:
    rows = 200
    table = pa.table(
        {
            "__index_level_0__": list(range(rows)),
            "Unnamed: 0": list(range(1, rows + 1)),
            "customer_id": [f"C{i % 70:04}" for i in range(rows)],
            "uuid": [f"{i * 7919:08x}" for i in range(rows)],
            "serial": [10_000 + i for i in range(rows)],
            "note": [f"saw patient number {i} on the ward today" for i in range(rows)],
            "country": ["DE"] * rows,
            "empty": pa.array([None] * rows, pa.string()),
            "nested": [[i] for i in range(rows)],
            "zip": [f"0{1000 + i % 4}" for i in range(rows)],
            "income": [1000.5 + i * 3 for i in range(rows)],
        }
    )
    path = str(tmp_path / "t.parquet")
    pyarrow.parquet.write_table(table, path)
    draft = draft_schema(path)
    assert draft.schema.names == ("zip", "income")
    assert draft.schema["zip"].type == "text", "a zip code is no number"
    reasons = {found.column: found.notes[0] for found in draft.proposals if found.attribute is None}
    for column, word in {
        "__index_level_0__": "numbers the rows", "Unnamed: 0": "numbers the rows", "customer_id": "id, and it repeats",
        "uuid": "id", "serial": "numbers the rows", "note": "free text", "country": "only one value",
        "empty": "empty", "nested": "type",
    }.items():  # fmt: skip
        assert word in reasons[column], reasons[column]


def test_spellings_of_one_value_are_one_level(tmp_path: Path) -> None:
    """Case and outer blanks make no levels where both spellings are frequent; times of the day are in order."""
    cells = ["m", "w", "M ", " W", "divers", "m", "w", "divers", "DIVERS"]
    hours = ["08:30", "07:15", "23:00"]
    rows = [f"{cells[i % 9]},{'aAb'[i % 3]},{hours[i % 3]},{'NA' if i % 2 else 'na'}" for i in range(270)]
    path = tmp_path / "t.csv"
    path.write_text("sex,grade,seen,odd\n" + "\n".join([*rows, "Zwitter,a,04:04,x"]) + "\n", "utf-8")
    draft = draft_schema(str(path))
    schema = draft.schema
    assert schema["sex"].values == ("divers", "m", "w") and schema["sex"].reading.ignore == (
        "blanks",
        "case",
    )
    assert schema["grade"].values == ("a", "b") and schema["grade"].reading.ignore == ("case",)
    assert schema["seen"].ordered and schema["seen"].values[:3] == ("07:15", "08:30", "23:00")
    assert "Zwitter" not in draft.format() and "04:04" not in draft.format()
    assert parse_toml(draft.format()) == schema
    counter = open_counter(str(path), schema)
    assert [int(n) for n in counter.count([("sex",)])[0].values] == [90, 90, 90, 1]
    counter.close()


def test_dates_with_slashes_and_the_year_first_are_dates_and_clocks_get_a_word(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [
        f"2024/{1 + i % 12:02}/{1 + i % 28:02} 10:{i % 60:02}:00,{i % 24:02}:{i % 59:02}:{i % 57:02}"
        for i in range(900)
    ]
    path.write_text("seen,clock\n" + "\n".join(rows) + "\n", "utf-8")
    draft = draft_schema(str(path))
    assert draft.schema.names == ("seen",) and draft.schema["seen"].type == "datetime"
    assert "times of the day; write them as texts of hours" in draft.proposals[1].notes[0]
    open_counter(str(path), draft.schema).close()


def test_days_that_came_as_moments_are_days() -> None:
    days = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(400) % 90, "D")
    frame = pd.DataFrame({"seen": days, "taken": days + pd.to_timedelta(np.arange(400) * 7, "min")})
    schema = draft_schema(frame).schema
    assert schema["seen"].type == "date" and schema["taken"].type == "datetime"
    open_counter(frame, schema).close()


def test_columns_of_one_name_are_left_out_and_the_others_drafted(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "a,ward,ward,,\n" + "".join(f"{i % 7},x,{i % 2},1,{i % 3}\n" for i in range(100)), "utf-8"
    )
    draft = draft_schema(str(path))
    assert draft.schema.names == ("a",)
    notes = [found.notes[0] for found in draft.proposals[1:]]
    assert all("several columns have this name" in note for note in notes[:2])
    assert all("it has no name" in note and "?header=2" in note for note in notes[2:])
    open_counter(str(path), draft.schema).close()
    with pytest.raises(DataError, match="several columns are called 'ward'"):
        draft_schema(str(path), person="ward")
    made = dc.synthesize(str(path), epsilon=100, rows=5, rng=1, quiet=True)
    assert len(made) == 5


def test_columns_that_follow_from_others_are_recognised(tmp_path: Path) -> None:
    school = ["primary", "secondary", "college", "doctorate"]
    state = {"Bayern": "Germany", "Hessen": "Germany", "Tirol": "Austria", "Wien": "Austria"}
    rows = 400
    table = pa.table(
        {
            "education": [school[i % 4] for i in range(rows)],
            "education_num": [i % 4 + 1 for i in range(rows)],
            "state": [list(state)[i // 7 % 4] for i in range(rows)],
            "country": [list(state.values())[i // 7 % 4] for i in range(rows)],
            "sex": ["fm"[i // 3 % 2] for i in range(rows)],
        }
    )
    path = str(tmp_path / "t.parquet")
    pyarrow.parquet.write_table(table, path)
    draft = draft_schema(path)
    assert draft.schema.names == ("education", "state", "sex")
    assert {(found.column, found.source) for found in draft.dependences} == {
        ("education_num", "education"), ("country", "state"),
    }  # fmt: skip
    assert parse_toml(draft.format()) == draft.schema
    assert draft.format().count("follows from") == 2


def test_many_equal_numbers_with_more_decimals_than_are_kept_get_a_bin() -> None:
    """Seven decimals are written as six: a bin of one step of the seventh would hold no number at all."""
    values = np.sort(np.append(np.arange(400) * 0.1234567, 7.8399963))
    held = np.where(values == 7.8399963, 300, 1)
    numbers = Numbers(values, held, float(values[0]), float(values[-1]))
    column = Column("affairs", "decimal", "double", int(held.sum()), decimals=7, numbers=numbers)
    bins = _fit(column, Bins((0.0, 5.0, 50.0)), 10)
    assert 7.8399963 in bins.edges and min(np.diff(bins.edges)) > 0.9e-6
    assert Attribute.binned("affairs", bins, type="decimal", decimals=6).size == len(bins)


def test_dates_that_are_in_order_in_every_row_stay_so(tmp_path: Path) -> None:
    """Admission, operation, discharge: the shortest chain is told, a birth years before is not, one odd row ends it."""
    day, rows = date(2020, 1, 1), 600
    admitted = [day + timedelta(days=i * 37 % 700) for i in range(rows)]
    table = {
        "born": [date(1950, 1, 1) + timedelta(days=i * 11) for i in range(rows)],
        "admitted": admitted,
        "operated": [
            None if i % 5 == 0 else found + timedelta(days=i % 3) for i, found in enumerate(admitted)
        ],
        "discharged": [found + timedelta(days=2 + i % 20) for i, found in enumerate(admitted)],
        "paid": [day + timedelta(days=i * 53 % 700) for i in range(rows)],
    }
    path = str(tmp_path / "stays.parquet")
    pyarrow.parquet.write_table(pa.table(table), path)
    draft = draft_schema(path)
    assert [str(found) for found in draft.orders] == ["admitted <= operated", "operated <= discharged"]
    assert parse_toml(draft.format()) == draft.schema
    assert draft.format().count("in every row that has both") == 2
    drawn = dc.release(path, draft.schema, epsilon=5).sample(500, rng=1).pandas()
    assert (drawn["admitted"] <= drawn["discharged"]).all()
    table["discharged"][7] = day - timedelta(days=1)
    pyarrow.parquet.write_table(pa.table(table), path)
    assert [str(found) for found in draft_schema(path).orders] == ["admitted <= operated"]


def test_edges_are_round_and_follow_the_quantiles() -> None:
    ages = [20 + 50 * i / 79 for i in range(80)]
    found = cut_quantiles(ages, 18, 77, grain=1.0)
    assert found is not None and 10 <= len(found) - 1 <= 22
    assert all(edge == int(edge) for edge in found) and found[0] <= 18 and found[-1] >= 77
    zeros = cut_quantiles([0.0] * 60 + [float(i * 10) for i in range(1, 21)], 0, 200, grain=1.0)
    assert zeros is not None and zeros[:2] == (0.0, 1.0), "a value that most rows hold has a bin of its own"
    assert cut_quantiles([5.0] * 80, 5, 5) is None
    assert cut_quantiles([], 0, 1) is None
    days = cut_dates([19_000 + 5.0 * i for i in range(80)], 19_000, 19_400, moments=False)
    assert days is not None and len(days) > 10


def test_rare_bins_are_merged_and_rare_ends_pulled_in() -> None:
    assert merge_rare((0, 1, 2, 3, 4), (20, 3, 15, 20), 10, False) == (0, 1, 3, 4)
    assert merge_rare((0, 1, 2, 3, 4), (20, 20, 20, 3), 10, False) == (0, 1, 2, 3)
    assert merge_rare((0, 1, 2, 3), (20, 3, 3), 10, False) is None
    assert merge_rare((0, 1, 2, 3), (9, 9, 9), 10, True) is None, "they may be the same nine people"


def test_a_release_of_unreviewed_guesses_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], clinic: str
) -> None:
    schema, ledger = tmp_path / "schema.toml", tmp_path / "ledger"
    assert main(["schema", "draft", clinic, "--out", str(schema)]) == 0
    command = [
        "release", clinic, "--schema", str(schema), "--epsilon", "1", "--account", "a", "--ledger", str(ledger),
        "--create-ledger", "--out", str(tmp_path / "r.json"),
    ]  # fmt: skip
    assert main(command) == 2
    assert "guesses" in capsys.readouterr().err and not ledger.exists()
    with pytest.raises(SchemaError, match="--accept-guesses"):
        dc.release(clinic, schema, epsilon=1)
    with pytest.raises(SchemaError, match="the draft still has"):
        dc.release(clinic, draft_schema(clinic), epsilon=1)
    assert main([*command, "--accept-guesses"]) == 0
    schema.write_text("".join(line for line in schema.open() if REVIEW not in line))
    assert main([*command, "--out", str(tmp_path / "again.json")]) == 0


def test_the_command_never_replaces_a_schema(
    clinic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "schema.toml"
    assert main(["schema", "draft", clinic, "--out", str(out)]) == 0
    assert "5 of 8 columns" in capsys.readouterr().out
    assert main(["schema", "check", str(out), clinic]) == 0
    assert "guesses of the draft are not reviewed yet" in capsys.readouterr().out
    before = out.read_bytes()
    assert main(["schema", "draft", clinic, "--out", str(out)]) == 2
    assert out.read_bytes() == before
    assert main(["schema", "draft", clinic]) == 0
    assert capsys.readouterr().out.encode() == before


@pytest.mark.parametrize(
    "text", ["a,a\n1,2\n", "", "a\n", "only\nx\nx\n", "id\n" + "".join(f"p{i}\n" for i in range(99))]
)
def test_what_cannot_be_drafted_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises((DataError, SchemaError)):
        _ = draft_schema(str(path)).schema


def test_whoever_protects_rows_of_people_is_told_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column of repeated ids beside the schema: the first release on a new account says so, the next does not."""
    rows = tmp_path / "visits.csv"
    rows.write_text(
        "patient_id,serial_no,x\n" + "".join(f"P{i % 40},{i},{'ab'[i % 2]}\n" for i in range(200)), "utf-8"
    )
    (tmp_path / "schema.toml").write_text('[attributes.x]\nlevels = ["a", "b"]\n', "utf-8")
    command = [
        "release", str(rows), "--schema", str(tmp_path / "schema.toml"), "--epsilon", "1", "--account", "a",
        "--ledger", str(tmp_path / "ledger"), "--create-ledger", "--out", str(tmp_path / "r.json"),
    ]  # fmt: skip
    assert main(command) == 0
    assert "'patient_id' repeats" in (said := capsys.readouterr().err) and "--person patient_id" in said
    assert main(command) == 0
    assert "repeats" not in capsys.readouterr().err
    people = [*command, "--person", "patient_id", "--at-most", "2"]
    people[people.index("a")] = "b"
    assert main(people) == 0
    said = capsys.readouterr()
    assert "repeats" not in said.err and "any one person" in said.out


def test_check_lists_every_misfit_with_the_line_that_mends_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All attributes in one run, with counts; after the lines are written, nothing is refused."""
    from discreet.doors.cli import main

    rows = "sex,age,day\nf,3,2019-05-01\nF ,70,31/12/2019\nx,NA,2018-01-01\nm,-99,soon\n,5,\n"
    (tmp_path / "rows.csv").write_text(rows)
    sex, age = 'levels = ["f", "m"]\n', "edges = [0, 18, 65]\n"
    day = 'type = "date"\nby = "year"\nfrom = 2019-01-01\nto = 2020-12-31\n'
    for mends, code in (
        (("", "", ""), 2),
        (
            (
                'ignore = ["case", "blanks"]\nother = "other"\nmissing = "missing"\n',
                'nulls = ["NA", -99]\nmissing = "missing"\noutside = "nearest"\n',
                'order = "dmy"\nmissing = "missing"\noutside = "missing"\n',
            ),
            0,
        ),
    ):
        text = "".join(
            f"[attributes.{name}]\n{declared}{mend}"
            for name, declared, mend in zip(("sex", "age", "day"), (sex, age, day), mends, strict=True)
        )
        (tmp_path / "schema.toml").write_text(text)
        assert main(["schema", "check", str(tmp_path / "schema.toml"), str(tmp_path / "rows.csv")]) == code
        said = capsys.readouterr()
        if code:
            for line in (
                "[attributes.sex]  # 3 rows outside; a release refuses them",
                "'F ' in 1 row: ignore",
                "'x' in 1 row: other",
                'None in 1 row: missing = "missing"',
                "'NA' in 1 row: nulls",
                "'70' in 1 row: outside",
                "'31/12/2019' in 1 row: order",
                "'2018-01-01' in 1 row: outside",
            ):
                assert line in said.out, said.out
            assert "3 attributes do not fit" in said.err
        else:
            assert "total" in said.out and "row:" not in said.out
    assert (
        main(["schema", "check", str(tmp_path / "schema.toml"), str(tmp_path / "rows.csv"), "--values"]) == 0
    )
    assert "they become 'other'" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["mapping", "frame", "sqlite", "engine"])
def test_whoever_protects_rows_of_people_in_python_or_a_database_is_told(kind: str, tmp_path: Path) -> None:
    """Before the account is opened, whose unit is for good; a column without repetitions is not named."""
    visits = pd.DataFrame(
        {"serial_no": range(6), "patient_id": [1, 1, 2, 2, None, None], "x": list("ababab")}
    )
    data: Any = visits
    if kind == "mapping":
        data = {name: visits[name].tolist() for name in visits}
    elif kind == "sqlite":
        with closing(sqlite3.connect(tmp_path / "visits.sqlite")) as connection:
            visits.to_sql("visits", connection, index=False)
        data = f"{tmp_path / 'visits.sqlite'}::visits"
    elif kind == "engine":
        engine = ibis.duckdb.connect()
        engine.con.register("visits", pa.Table.from_pandas(visits))
        data = engine.table("visits")
    asked = {"epsilon": 1, "ledger": tmp_path / "ledger", "account": "a", "create": True}
    with pytest.warns(PromiseWarning, match="'patient_id' repeats"):
        dc.release(data, {"x": ["a", "b"]}, {"x": []}, **asked)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PromiseWarning)
        dc.release(data, {"x": ["a", "b"]}, {"x": []}, **asked)


def test_a_draft_of_a_file_fits_the_frame_that_it_was_written_from_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    """Pandas writes 1.0 where a frame holds 1, and levels with a fraction are bins in both."""
    n = np.arange(600)
    frame = pd.DataFrame(
        {
            "grade": np.where(n % 7, n % 3 + 1.0, np.nan),
            "flag": (n % 2).astype(float),
            "dose": (n % 3) + 0.5,
        }
    )
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    counts = []
    for drafted in (str(path), frame):
        schema = draft_schema(drafted).schema
        for rows in (str(path), frame):
            counter = open_counter(rows, schema)
            found = counter.count([(name,) for name in schema.names])
            counts.append([table.values.tolist() for table in found])
            counter.close()
    assert counts[0] == [[171, 171, 172, 86], [300, 300], [200, 200, 200]]
    assert all(found == counts[0] for found in counts)


def test_one_number_in_several_spellings_is_one_level(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "grade\n" + "\n".join(["1.0"] * 40 + ["1"] * 30 + ["1.00"] * 20 + ["2"] * 25) + "\n", "utf-8"
    )
    draft = draft_schema(str(path))
    assert draft.schema["grade"].values == ("1.0", "2")
    assert parse_toml(draft.format()) == draft.schema
    counter = open_counter(str(path), draft.schema)
    assert counter.count([("grade",)])[0].values.tolist() == [90, 25]
    counter.close()


def test_times_of_the_day_get_the_same_word_from_every_file() -> None:
    clock = pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(900) * 61, "s")
    draft = draft_schema(pd.DataFrame({"clock": clock.time, "ward": np.arange(900) % 4}))
    assert draft.schema.names == ("ward",) and "such as 11:30" in draft.proposals[0].notes[0]


def test_days_that_a_program_wrote_as_moments_are_days() -> None:
    """Every text ends with midnight: hours that nobody recorded would be made up."""
    days = pd.date_range("2021-01-01", periods=600).strftime("%Y-%m-%d 00:00:00")
    hours = pd.date_range("2021-01-01", periods=600, freq="7h").strftime("%Y-%m-%dT%H:%M")
    draft = draft_schema(pd.DataFrame({"day": days, "hour": hours, "ward": np.arange(600) % 4}))
    assert draft.schema["day"].type == "date" and draft.schema["hour"].type == "datetime"


def test_a_schema_that_is_named_last_is_asked_for_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "check", "rows.csv", "schema.toml"]) == 2
    assert "discreet schema check schema.toml rows.csv" in capsys.readouterr().err
