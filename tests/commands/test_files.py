"""Files as people have them: separators, decimal commas, encodings, Excel, Stata, JSON lines, hive folders."""

from __future__ import annotations

import codecs
import json
import sqlite3
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet.entrance import open_counter
from discreet.rows.draft import draft_schema
from discreet.values.errors import DataError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.reading import Reading

SCHEMA = Schema.of({"Größe": ["klein", "groß"]})
ROWS = ["klein", "groß", "groß"]


def count(path: str, schema: Schema = SCHEMA) -> list[int]:
    """The counts of the first attribute."""
    counter = open_counter(path, schema)
    try:
        return [int(n) for n in counter.count([schema.names[:1]])[0].values]
    finally:
        counter.close()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separator_encoding_and_line_ends_are_found(
    tmp_path: Path, encoding: str, separator: str, end: str
) -> None:
    path = tmp_path / "t.csv"
    lines = [
        separator.join(["Größe", "Note", "x"]),
        *(separator.join([row, '"a ""b"""', "1"]) for row in ROWS),
    ]
    path.write_bytes((end.join(lines) + end).encode(encoding))
    assert count(str(path)) == [1, 2]


def test_quoted_line_breaks_are_part_of_a_cell(tmp_path: Path) -> None:
    for encoding in ("utf-8", "cp1252"):
        path = tmp_path / f"{encoding}.csv"
        path.write_bytes('Größe;Note\nklein;"eine\nzwei; drei"\ngroß;ü\n'.encode(encoding))
        assert count(str(path)) == [1, 1]


def test_a_german_excel_file_has_numbers(tmp_path: Path) -> None:
    """Semicolons, decimal commas, cp1252, days with points: numbers are numbers and dates are dates."""
    path = tmp_path / "umfrage.csv"
    rows = [
        f"{i};{18 + i % 60};{1.5 + i % 40 / 4:.2f};{1 + i % 28:02}.{1 + i % 12:02}.2024;Köln"
        for i in range(400)
    ]
    text = "\r\n".join(["Nr;Alter;Gewicht;Datum;Ort", *(row.replace(".", ",", 1) for row in rows)]) + "\r\n"
    path.write_bytes(text.encode("cp1252"))
    schema = draft_schema(str(path)).schema
    assert schema["Gewicht"].type == "decimal" and schema["Gewicht"].decimals == 2
    assert schema["Datum"].type == "date" and schema["Alter"].type == "integer"
    assert schema.names == ("Alter", "Gewicht", "Datum")
    open_counter(str(path), schema).close()


def test_what_is_said_wins(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b;x\n1,5;2\n2,5;2\n", "utf-8")
    assert draft_schema(f"{path}?separator=;", least=1).proposals[0].column == "a,b"
    assert draft_schema(f"{path}?separator=,", least=1).proposals[0].column == "a"
    for wrong, message in {
        "separator=x": "separator 'x'; allowed are",
        "encoding=klingon": "unknown encoding",
        "decimal=;": "decimal ';'",
        "colour=red": "unknown option 'colour'; allowed are separator, decimal, encoding, header, unit",
        "header=0": "header '0'; allowed is the number of a line, 1 to 1000",
        "header=two": "header 'two'; allowed is the number of a line",
        "unit=": "unit ''; allowed are 1 to 10 characters",
        "unit=m2": "unit 'm2'; allowed are 1 to 10 characters without digits",
    }.items():
        with pytest.raises(DataError, match=message):
            draft_schema(f"{path}?{wrong}")


@pytest.mark.parametrize("ending", ["csv", "xlsx"])
def test_titles_units_and_decimal_commas_are_said_behind_the_name(tmp_path: Path, ending: str) -> None:
    """A title above the header, prices with € and points between thousands: the draft says what to type."""
    path = tmp_path / f"preise.{ending}"
    prices = [250.25 * i for i in range(1, 41)] * 10
    texts = [f"{price:,.2f} €".translate(str.maketrans(".,", ",.")) for price in prices]
    rows = [
        ["Preise 2024", "", ""],
        ["Preis", "", ""],
        *([text, "ja", "1,5 kg"] for text in texts),
        ["-", "ja", ""],
    ]
    if ending == "xlsx":
        import openpyxl

        book = openpyxl.Workbook()
        for row in rows:
            book.active.append([cell or None for cell in row])
        book.save(path)
    else:
        path.write_bytes("".join(";".join(row) + "\r\n" for row in rows).encode("cp1252"))
    first = draft_schema(f"{path}?header=2", least=5).proposals[0]
    typed = f"preise.{ending}?header=2&unit=€{'&decimal=,' * (ending == 'xlsx')}"
    assert "its numbers have a unit" in first.notes[0] and f"'{typed}'" in first.notes[0]
    said = f"{path}?header=2&unit=€&decimal=,"
    schema = draft_schema(said, least=5).schema
    assert schema.names == ("Preis",) and schema["Preis"].type == "decimal" and schema["Preis"].decimals == 2
    by_hand = Schema(
        (Attribute.binned("Preis", [0, 1000, 10_020.01], missing="missing", reading=Reading.of(nulls=["-"])),)
    )
    assert count(said, by_hand) == [30, 370, 1]


def test_a_unit_is_taken_off_numbers_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('x\n$1\n"$1,234.50"\n$ 7\n7 $\n-2$\n"1,5"\n$1$\nUS$\n$\n12$3\n', "utf-8")
    texts = ["1", "1234.50", "7", "-2", "1,5", "$1$", "US$", "$", "12$3"]
    assert count(f"{path}?unit=$", Schema.of({"x": texts})) == [1, 1, 2, 1, 1, 1, 1, 1, 1]


def test_half_utf8_is_refused_with_what_to_write(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("Größe\nklein\n".encode() + "groß\n".encode("cp1252"))
    with pytest.raises(DataError, match=r"t\.csv\?encoding=cp1252"):
        count(str(path))


def test_excels_separator_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(codecs.BOM_UTF8 + "sep=;\r\nGröße;x\r\nklein;1\r\ngroß;2\r\n".encode())
    assert count(str(path)) == [1, 1]


def test_excel_sheets_stata_and_json_lines(tmp_path: Path) -> None:
    import pandas as pd

    frame = pd.DataFrame({"Größe": ROWS, "n": [1, 2, 3], "day": pd.to_datetime(["2024-01-01"] * 3)})
    book = tmp_path / "t.xlsx"
    with pd.ExcelWriter(book) as writer:
        frame.head(1).to_excel(writer, sheet_name="first", index=False)
        frame.to_excel(writer, sheet_name="second", index=False)
    assert count(str(book)) == [1, 0] and count(f"{book}::second") == [1, 2]
    with pytest.raises(DataError, match="no sheet 'third'; the file has 'first', 'second'"):
        count(f"{book}::third")
    lines = tmp_path / "t.jsonl"
    lines.write_text("".join(json.dumps({"Größe": row, "n": 1}) + "\n" for row in ROWS), "utf-8")
    assert count(str(lines)) == [1, 2]
    stata = tmp_path / "t.dta"
    frame.rename(columns={"Größe": "size"}).to_stata(stata, write_index=False, version=118)
    assert count(str(stata), Schema.of({"size": ["klein", "groß"]})) == [1, 2]
    (tmp_path / "t.xls").write_bytes(b"x")
    with pytest.raises(DataError, match=r"\.xls files are not read; save it as \.xlsx"):
        count(str(tmp_path / "t.xls"))


def test_hive_folders_give_their_names_as_columns(tmp_path: Path) -> None:
    for year, rows in {"2023": ["klein"], "2024": ["groß", "groß"]}.items():
        folder = tmp_path / "t" / f"year={year}"
        folder.mkdir(parents=True)
        pyarrow.parquet.write_table(pa.table({"Größe": rows}), folder / "part.parquet")
    assert count(str(tmp_path / "t")) == [1, 2]
    assert count(str(tmp_path / "t"), Schema.of({"year": ["2023", "2024"]})) == [1, 2]


def test_one_row_in_another_encoding_does_not_change_how_the_others_are_read(tmp_path: Path) -> None:
    """A file with the mark of UTF-8 was read as cp1252 as a whole as soon as one row was not UTF-8."""
    attribute = Attribute.of("town", ["Köln", "Bonn"], other="other", missing="missing")
    text = codecs.BOM_UTF8 + ("p,town\n" + "1,Köln\n" * 300).encode()
    path = tmp_path / "t.csv"
    path.write_bytes(text)
    assert open_counter(path, Schema((attribute,))).count([("town",)])[0].values[0] == 300
    path.write_bytes(text + b"2,Orl\xe9ans\n")
    with pytest.raises(DataError, match="not utf-8 text"):
        open_counter(path, Schema((attribute,)))


@pytest.mark.parametrize("kind", ["xlsx", "sqlite"])
@pytest.mark.parametrize("odd", ["zz", True, 2, datetime(2010, 1, 1, 5), None])
@pytest.mark.parametrize("usual", [1.5, 1, True, datetime(2010, 1, 1)])
def test_one_odd_cell_changes_no_other_cell(kind: str, odd: object, usual: object, tmp_path: Path) -> None:
    """A column of numbers became one of texts by one odd cell, and then every row of it was counted elsewhere."""
    levels = ["1.5", "1", "true", "2010-01-01", "2010-01-01 00:00:00"]
    schema = Schema((Attribute.of("x", levels, other="other", missing="missing"),))
    counts = []
    for cells in ([usual] * 5, [*[usual] * 5, odd]):
        path = tmp_path / f"{len(cells)}.{kind}"
        if kind == "xlsx":
            book = pytest.importorskip("openpyxl").Workbook()
            for row in [("x", "k"), *((cell, 1) for cell in cells)]:
                book.active.append(row)
            book.save(path)
        else:
            with sqlite3.connect(path) as connection:
                connection.execute("CREATE TABLE t (x)")
                rows = [(str(cell) if isinstance(cell, datetime) else cell,) for cell in cells]
                connection.executemany("INSERT INTO t VALUES (?)", rows)
            connection.close()
        counts.append(count(str(path) if kind == "xlsx" else f"{path}::t", schema))
    assert sum(abs(more - less) for less, more in zip(*counts, strict=True)) == 1


@pytest.mark.parametrize("odd", ["zz", True, 2, None])
@pytest.mark.parametrize("usual", [1.5, 1, True, "2010-01-01", "2010-01-01 00:00:00"])
def test_one_odd_line_of_json_changes_no_other_line(odd: object, usual: object, tmp_path: Path) -> None:
    """Texts that all were dates became dates, and one text more that is none turned them back."""
    levels = ["1.5", "1", "true", "2010-01-01", "2010-01-01 00:00:00"]
    schema = Schema((Attribute.of("x", levels, other="other", missing="missing"),))
    counts = []
    for cells in ([usual] * 5, [*[usual] * 5, odd]):
        path = tmp_path / f"{len(cells)}.jsonl"
        path.write_text("".join(json.dumps({"x": cell}) + "\n" for cell in cells))
        counts.append(count(str(path), schema))
    assert sum(abs(more - less) for less, more in zip(*counts, strict=True)) == 1
