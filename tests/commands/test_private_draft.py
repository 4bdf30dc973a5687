"""Private drafts and the one line from a frame to rows: what is paid, what is told, what comes back."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.doors.private_draft import draft_privately, read_form
from discreet.learning.refinement import Cells, open_dates, open_numbers
from discreet.rows.draft.prepared import FORMS, prepare
from discreet.stores.memory import MemoryLedger
from discreet.values.budget import allow
from discreet.values.errors import BudgetError, Overspent, PromiseWarning, SchemaError


def make_frame(rows: int = 4000) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "patient_id": np.arange(rows),
            "age": rng.integers(18, 90, rows),
            "weight": rng.normal(75, 12, rows).round(1),
            "town": rng.choice(["Aachen", "Berlin", "Celle"], rows),
            "seen": pd.to_datetime("2022-01-01") + pd.to_timedelta(rng.integers(0, 700, rows), "D"),
            "smoker": rng.random(rows) < 0.3,
        }
    )
    frame.loc[0, "town"] = "Hermitage"
    frame.loc[0, "age"] = 118
    return frame


def test_a_private_draft_finds_types_levels_and_bins() -> None:
    draft = draft_privately(make_frame(), epsilon=8, delta="1e-6")
    schema = draft.schema
    assert schema.names == ("age", "weight", "town", "seen", "smoker")
    assert schema["town"].values == ("Aachen", "Berlin", "Celle"), "what one row holds is not told"
    assert (
        schema["age"].type == "integer" and schema["weight"].decimals == 1 and schema["seen"].type == "date"
    )
    age = schema["age"].bins
    # Noise may add a bin beyond the last number once in a thousand drafts, so nothing is said about that end.
    assert age is not None and age.edges[0] <= 20 and age.edges[-1] >= 85
    assert sum(18 <= edge <= 100 for edge in age.edges) >= 8
    assert schema.total, "whatever a row holds, the release after it refuses nothing"
    assert "id" in draft.left_out["patient_id"]
    assert draft.paid <= allow(dc.ApproxDP(8, "1e-6"))


def test_texts_need_a_delta_and_are_left_out_without_one() -> None:
    draft = draft_privately(make_frame(), epsilon=8)
    assert "town" not in draft.schema and "--delta" in draft.left_out["town"]


def test_an_account_pays_once_and_never_too_much(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows, ledger, out = tmp_path / "t.parquet", tmp_path / "ledger", tmp_path / "schema.toml"
    make_frame().to_parquet(rows)
    command = [
        "schema", "draft", str(rows), "--epsilon", "1", "--delta", "1e-6", "--ledger", str(ledger), "--account", "a",
        "--create-ledger", "--budget", "epsilon=2, delta=1e-6",
    ]  # fmt: skip
    assert main([*command, "--out", str(out)]) == 0
    assert "is left out" in capsys.readouterr().out
    with dc.open_ledger(ledger) as opened:
        spent, left = opened.account("a").spent, opened.account("a").remaining
    assert main([*command, "--out", str(tmp_path / "again.toml")]) == 0
    assert out.read_text() == (tmp_path / "again.toml").read_text(), "the same question gets the same answer"
    with dc.open_ledger(ledger) as opened:
        assert opened.account("a").spent == spent and opened.account("a").remaining == left
        failed = opened.account("a").failed
        assert 0 < failed <= Fraction(1, 10**8)
    too_much = [*command, "--request", "another", "--epsilon", "2"]
    assert main(too_much) == 2
    release = [
        "release", str(rows), "--schema", str(out), "--epsilon", "1/2", "--delta", "1e-7", "--ledger", str(ledger),
        "--account", "a", "--out", str(tmp_path / "r.json"),
    ]  # fmt: skip
    assert main(release) == 0, capsys.readouterr().err
    assert "arrow" in capsys.readouterr().out


def test_a_draft_that_is_paid_for_needs_a_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "t.parquet"
    make_frame(50).to_parquet(rows)
    assert main(["schema", "draft", str(rows), "--epsilon", "1"]) == 2
    assert "--ledger and --account" in capsys.readouterr().err
    assert main(["schema", "draft", str(rows), "--delta", "1e-6"]) == 2
    assert "give --epsilon too" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_one_line_gives_a_frame_of_the_same_kind_and_types(
    kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = make_frame()
    given = frame
    if kind == "polars":
        given = pytest.importorskip("polars").from_pandas(frame)
    elif kind == "arrow":
        given = pa.Table.from_pandas(frame, preserve_index=False)
    drawn = dc.synthesize(given, epsilon=8, rows=500, rng=1)
    said = capsys.readouterr().out
    assert "town: text, 3 levels" in said and "patient_id: left out" in said and "arrow" in said
    assert "nothing remembers what was spent" in said
    assert type(drawn) is type(given)
    if kind == "pandas":
        assert list(drawn.columns) == ["age", "weight", "town", "seen", "smoker"] and len(drawn) == 500
        ages = drawn["age"].dropna()
        assert (ages == ages.round()).all() and ages.between(0, 120).mean() > 0.9
        assert (drawn["seen"].dropna() == drawn["seen"].dropna().dt.normalize()).all(), "days stay days"
        assert drawn["seen"].dtype.kind == "M" and abs(drawn["weight"].median() - 75) < 5
        assert set(drawn["town"].dropna()) <= {"Aachen", "Berlin", "Celle", "other"}


def test_a_synthesizer_fits_and_samples_like_an_estimator() -> None:
    made = dc.Synthesizer(epsilon=8).set_params(share="1/4")
    assert made.get_params()["epsilon"] == 8
    frame = make_frame()
    assert made.fit(frame) is made
    assert abs(made.rows_ - len(frame)) < 400
    assert len(made.sample(10, rng=1)) == 10 and made.sample(10, rng=1).equals(made.sample(10, rng=1))
    assert made.release_.provenance.statement is not None
    assert made.release_.provenance.statement.spent <= allow(dc.ApproxDP(8, "1e-6")), (
        "both parts are one budget"
    )
    with pytest.raises(dc.errors.DataError, match="fit the synthesizer"):
        dc.Synthesizer().sample(3)
    with pytest.raises(dc.errors.DataError, match="unknown parameter"):
        made.set_params(colour=1)


def test_release_takes_what_people_have(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["u", "v", "v", "u"] * 25})
    drafted = dc.Schema.draft(frame, at_least=5)
    with pytest.raises(SchemaError, match="guesses"):
        dc.release(frame, drafted, epsilon=1)
    made = dc.release(
        frame,
        drafted,
        [("a", "b")] if "b" in drafted.schema else None,
        epsilon=1,
        budget=2,
        accept_guesses=True,
    )
    assert made.provenance.statement is not None and made.provenance.statement.budget == dc.PureDP(2)
    drafted.schema.write(tmp_path / "s.toml")
    dc.release(frame, tmp_path / "s.toml", epsilon=1)
    with pytest.raises(BudgetError, match="goes with a cost only"):
        dc.draft(frame, ledger="x")


def test_forms_are_read_through_noise() -> None:
    def read(kind: str = "text", **held: float) -> tuple[str, ...]:
        counts = dict.fromkeys(FORMS, 3.0)
        counts.update({name.replace("_", " "): value for name, value in held.items()})
        return read_form(counts, 10.0, kind)

    assert read(whole=5000) == ("whole",)
    assert read(whole=200, **{"3 decimals": 55}) == ("whole",), (
        "five deviations happen by chance among many forms"
    )
    assert read(whole=35) == ("whole",) and read(whole=200, **{"3 decimals": 70}) == ("decimal", "3")
    assert read(whole=500, **{"2 decimals": 4500}) == ("decimal", "2")
    assert read(kind="number", whole=5000) == ("decimal", "0")
    assert read(text=5000, whole=100) == ("text",)
    assert read(date=5000) == ("date",)
    assert read("time", date=5000) == ("date",) and read("time", date=2000, time=3000) == ("time",)
    assert read("time", missing=5000) == ("time",)
    assert read(**{"slashes": 4000, "slashes, day first": 1000}) == ("date", "dmy")
    assert read(missing=5000) == ("text",)
    assert read(missing=5000, whole=45) == ("text",), "an empty column must not pass for numbers by chance"
    assert read(missing=40, whole=45) == ("whole",)


def test_cells_are_split_where_much_is() -> None:
    """Counts without noise: the quantiles that come out are those that went in."""
    rng = np.random.default_rng(0)
    values = rng.gamma(4, 10, 20_000).round()
    cells = open_numbers(0)
    before = None
    for _ in range(3):
        counts = np.histogram(values, bins=[*cells.edges[:-1], np.inf])[0]
        cells = cells.measure(counts, 1.0)
        cells = cells if before is None else cells.agree(before)
        before, finer = cells, cells.split()
        if finer is None:
            break
        cells = finer
    assert before is not None
    edges = before.cut()
    assert edges is not None and 12 <= len(edges) - 1 <= 24
    held = np.histogram(values, bins=edges)[0] / len(values)
    assert held.max() < 0.12 and before.quantiles([0.5])[0] == pytest.approx(np.median(values), abs=2)
    assert open_dates("date").edges[0] < -25_000 and open_numbers(None).grain == 0.0
    assert open_numbers(2).measure([0.0] * (len(open_numbers(2).edges) - 1), 5.0).cut() is None


@pytest.mark.parametrize("dates", [False, True])
def test_parts_that_noise_drowns_do_not_swallow_the_rest(dates: bool) -> None:
    """Few rows, much noise: half of the rows stay within the middle bins, and no lucky part stands for them all."""
    rng = np.random.default_rng(4)
    values = np.floor(rng.uniform(15_500, 17_000, 1500)) if dates else rng.normal(16, 7, 1500).round(1)
    for _ in range(20):
        cells, before = open_dates("date") if dates else open_numbers(1), None
        for _ in range(4):
            counts = np.histogram(values, bins=[*cells.edges[:-1], np.inf])[0]
            cells = cells.measure(counts + rng.normal(0, 30, len(counts)), 30.0)
            before = cells = cells if before is None else cells.agree(before)
            finer = cells.split()
            if finer is None:
                break
            cells = finer
        assert before is not None
        edges = before.cut()
        assert edges is not None
        low, high = np.quantile(values, [0.25, 0.75])
        assert edges[0] <= low and edges[-1] >= high
        assert edges[-1] - edges[0] < 12 * (high - low)


def test_a_number_in_a_single_cell_is_cut_in_the_middle() -> None:
    assert Cells((10.0, 20.0), 1.0, "", (500.0,), (20.0,)).cut() == (10.0, 15.0, 19.5)
    assert Cells((5.0, 6.0), 1.0, "", (500.0,), (20.0,)).cut() == (5.0, 5.5)


@pytest.mark.parametrize("constant", [0, 1, 7, 2024, -3, 0.5])
def test_a_column_of_one_number_stays_one(constant: float) -> None:
    frame = pd.DataFrame({"same": [constant] * 3_000, "coin": [0, 1] * 1_500})
    with pytest.warns(PromiseWarning, match="no ledger remembers"):
        drawn = dc.synthesize(frame, epsilon=5)["same"].astype(float)
    assert (drawn == constant).mean() > 0.98, drawn.value_counts()


def test_a_draft_beyond_the_budget_is_refused_before_it_pays() -> None:
    ledger = MemoryLedger()
    draft_privately(make_frame(500), epsilon=1, delta="1e-6", ledger=ledger, account="a", create=True)
    spent = ledger.account("a").spent
    with pytest.raises(Overspent):
        draft_privately(make_frame(500), epsilon=2, delta="1e-6", ledger=ledger, account="a", request="more")
    assert ledger.account("a").spent == spent


def spoil(frame: pd.DataFrame, name: str, cell: object) -> pd.DataFrame:
    """The frame as pandas holds it once one more row has this cell: the column's type follows its cells."""
    columns = {column: list(frame[column]) for column in frame.columns}
    columns[name][0] = cell
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("kind", "name", "cell"),
    [
        ("pandas", "age", None), ("pandas", "age", "?!"), ("pandas", "smoker", None), ("pandas", "empty", "x"),
        ("lists", "age", 1.5), ("lists", "age", "?!"), ("jsonl", "age", 1.5), ("xlsx", "age", "?!"),
    ],
)  # fmt: skip
def test_one_cell_changes_neither_what_is_asked_nor_what_it_costs(
    kind: str, name: str, cell: object, tmp_path: Path
) -> None:
    """A column's type that follows from its cells is a look at the rows: it told one cell by the cost of the draft."""

    def give(frame: pd.DataFrame, file: str) -> object:
        if kind == "jsonl":
            frame.to_json(tmp_path / f"{file}.jsonl", orient="records", lines=True)
        elif kind == "xlsx":
            frame.to_excel(tmp_path / f"{file}.xlsx", index=False)
        else:
            return frame if kind == "pandas" else {name: list(frame[name]) for name in frame}
        return tmp_path / f"{file}.{kind}"

    frame = make_frame(200)[["age", "smoker"]].assign(empty=None)
    asked = []
    for i, given in enumerate((frame, spoil(frame, name, cell))):
        ledger = MemoryLedger()
        draft = draft_privately(
            give(given, f"t{i}"), epsilon=50, delta="1e-6", ledger=ledger, account="a", create=True
        )
        # What is asked after the first round depends on noise, too.
        entries = [entry for entry in ledger.entries("a") if entry.request.endswith(("forms", "round 1"))]
        asked.append([(entry.request, entry.cost) for entry in entries])
        assert draft.schema["age"].type == "integer" and draft.schema["smoker"].type == "boolean"
    assert asked[0] == asked[1]


@pytest.mark.parametrize(("name", "cell"), [("age", None), ("age", "?!"), ("smoker", None), ("smoker", "?!")])
def test_the_types_of_synthetic_rows_do_not_tell_of_one_cell(name: str, cell: object) -> None:
    frame = make_frame()[["age", "smoker", "town"]]
    drawn = [
        dc.Synthesizer(20).fit(given).sample(50, rng=1).dropna().convert_dtypes().dtypes.to_dict()
        for given in (frame, spoil(frame, name, cell))
    ]
    assert drawn[0] == drawn[1]


def test_a_fitted_synthesizer_holds_no_category_that_was_not_told() -> None:
    polars = pytest.importorskip("polars")
    frame = make_frame()[["town", "age"]].astype({"town": "category"})
    made = dc.Synthesizer(8).fit(frame)
    assert "Hermitage" not in repr(vars(made)["_shape"]) and "Hermitage" not in str(made._shape[1]["town"])
    towns = sorted(set(frame["town"]))
    given = polars.from_pandas(make_frame()[["town", "age"]]).cast({"town": polars.Enum(towns)})
    assert "Hermitage" not in str(dc.Synthesizer(8).fit(given).sample(100, rng=1).schema)


def test_one_odd_cell_does_not_change_what_a_frame_of_moments_is_taken_for() -> None:
    """pandas calls a column datetime64 only if all of its cells are moments, so its word is that of a single row."""
    days = pd.Series(pd.to_datetime(["2020-01-01", "2020-02-03"]))
    spoilt = pd.Series(["2020-01-01", "2020-02-03", "n. bek."])
    told = [prepare(pd.DataFrame({"seen": column})).columns for column in (days, days.diff(), spoilt)]
    assert [column.kind for (column,) in told] == ["text"] * 3


def test_a_last_cell_is_not_filled_to_its_far_end() -> None:
    """Of years of schooling, 9 to 20, the last 300 are somewhere from 20 to 50: they are not spread that far."""
    edges = (0.0, 5.0, 10.0, 12.0, 14.0, 16.0, 18.0, 20.0, 50.0, 100.0)
    cells = Cells(edges, 1.0, "", (3.0, -9.0, 9.0, 2000.0, 2200.0, 1100.0, 500.0, 330.0, 5.0), (20.0,) * 9)
    found = cells.cut()
    assert found is not None and found[0] == 12.0 and 20.0 < found[-1] <= 28.0
    mirrored = replace(cells, edges=tuple(-edge for edge in edges[::-1]), counts=cells.counts[::-1])
    assert mirrored.tell().edges == tuple(-edge for edge in cells.tell().edges[::-1])


def test_noise_far_from_all_numbers_is_no_tail_of_theirs() -> None:
    edges = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0)
    counts = (2400.0, 1200.0, 1500.0, 800.0, 300.0, 60.0, -5.0, 10.0, 0.0, 80.0, 75.0)
    found = Cells(edges, 1.0, "", counts, (20.0,) * 11).tell()
    assert found.edges[-1] <= 25.0 and found.edges[0] == 0.0


def test_a_number_that_most_rows_hold_does_not_hide_all_others() -> None:
    """Rain: 838 of 1,461 days have none, the others 0.2 to 56; for lack of any width a tail ended at 0.5."""
    edges = (-0.1, 0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)
    counts = (12.0, 838.0, 5.0, 61.0, 70.0, 64.0, 118.0, 112.0, 120.0, 63.0, -8.0, 14.0)
    cells = Cells(edges, 0.1, "", counts, (30.0,) * 12)
    told = cells.tell()
    assert told.edges[0] == 0.0 and 20.0 <= told.edges[-1] <= 50.0
    assert sum(told.counts) > 0.95 * 1461
    mirrored = replace(cells, edges=tuple(-edge for edge in edges[::-1]), counts=counts[::-1])
    assert mirrored.tell().edges == tuple(-edge for edge in told.edges[::-1])


def test_cells_are_counted_again_where_noise_may_hide_rows() -> None:
    """Nothing can be split, the heap being one number; what lies beyond it is known too badly to stop there."""
    edges = (0.0, 1.0, 2.0, 5.0, 10.0)
    again = Cells(edges, 1.0, "", (800.0, 60.0, 40.0, -10.0), (30.0,) * 4).split()
    assert again is not None and again.edges == edges and not again.counts
    assert Cells(edges, 1.0, "", (800.0, 6.0, 4.0, -10.0), (3.0,) * 4).split() is None


def test_days_that_a_program_wrote_as_moments_are_days_in_a_private_draft_too() -> None:
    days = pd.date_range("2015-01-01", periods=3_000).strftime("%Y-%m-%d 00:00")
    hours = pd.date_range("2021-01-01", periods=3_000, freq="7h").strftime("%Y-%m-%d %H:%M:%S")
    frame = pd.DataFrame({"day": days, "hour": hours})
    draft = draft_privately(frame, epsilon=20)
    assert draft.schema["day"].type == "date" and draft.schema["hour"].type == "datetime"
