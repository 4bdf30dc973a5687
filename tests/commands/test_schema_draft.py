"""`discreet schema draft`: it fits the rows that it was drafted from, marks every guess, and leaves identifiers out."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet.doors.cli import main
from discreet.entrance import open_counter
from discreet.rows.draft import REVIEW, cut_round, draft_schema
from discreet.values.errors import DataError, SchemaError
from discreet.values.schema.document import parse_toml

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
        draft = draft_schema(path, most_levels=6)
        schema = draft.schema
    except SchemaError:
        return
    assert parse_toml(draft.format()) == schema
    assert draft.format().count(REVIEW) >= len(schema)
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
            "grade": pa.array([10, 9, 2] * 100),
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
    assert schema["age"].bins is not None and schema["age"].bins.edges[0] == float("-inf")
    assert schema["weight"].missing == "missing"
    assert schema["smoker"].levels == ("false", "true")
    assert schema["grade"].levels == ("2", "9", "10") and schema["grade"].ordered
    open_counter(clinic, schema).close()
    text = draft.format()
    assert "patient 7" not in text, "no value of a column that is left out is shown"
    assert "'name' is left out" in text and "'seen' is left out" in text and "'only' is left out" in text


@pytest.mark.parametrize(
    ("low", "high", "edges"),
    [
        (18, 77, (20, 40, 60)),
        (0, 1, (0, 0.5, 1)),
        (-3.0, 3.0, (-2, 0, 2)),
        (1e6, 1.00001e6, (1000000, 1000005, 1000010)),
        (5, 5, None),
        (None, None, None),
    ],
)
def test_edges_are_round(low: float, high: float, edges: tuple[float, ...] | None) -> None:
    found = cut_round(low, high)
    assert (None if found is None else found[1:-1]) == edges


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
