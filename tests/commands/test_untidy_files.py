"""Tables as people have them: what is wrong is said with what to type, before a row is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from discreet.doors.cli import main
from discreet.entrance import open_counter
from discreet.rows.draft import draft_schema
from discreet.rows.misfits import find_misfits
from discreet.values.errors import DataError, SchemaError
from discreet.values.schema import Attribute, Schema
from discreet.values.schema.formats.toml import parse_toml
from discreet.values.text import SHOWN, show


def write(path: Path, header: str, lines: list[str], encoding: str = "utf-8") -> str:
    """A file with these lines."""
    path.write_text("\n".join([header, *lines]) + "\n", encoding)
    return str(path)


def bins(name: str, low: float, high: float) -> Schema:
    """One attribute of two bins."""
    return Schema((Attribute.binned(name, [low, (low + high) / 2, high]),))


@pytest.mark.parametrize(
    ("header", "cell", "said", "has"),
    [
        ("SpO2;x", "{n},5 %;1", "unit=%", "a unit"),
        ("SpO2|x", "{n},5 %|1", "unit=%&decimal=,", "a unit"),
        ("SpO2|x", "{n},5|1", "decimal=,", "a decimal comma"),
        ("SpO2|x", "1,0{n}.50|1", "decimal=.", "commas between thousands"),
    ],
)
def test_numbers_in_another_writing_are_never_dropped(
    header: str, cell: str, said: str, has: str, tmp_path: Path
) -> None:
    """Check and release both name what to type; with it, every row is read as its number."""
    path = write(tmp_path / "klinik.csv", header, [cell.format(n=10 + i) for i in range(40)])
    schema = bins("SpO2", 0, 2000 if "." in said else 100)
    assert f"as in 'klinik.csv?{said}'" in draft_schema(path, least=2).proposals[0].notes[0]
    (found,) = find_misfits(path, schema) or []
    assert found.rows == 40
    assert {one.mend for one in found.values} == {f"this number has {has}: write 'klinik.csv?{said}'"}
    with pytest.raises(DataError, match=r"write 'klinik.csv[?]") as refused:
        open_counter(path, schema)
    assert f"this number has {has}: write 'klinik.csv?{said}'" in str(refused.value)
    assert "leave out" not in str(refused.value)
    counter = open_counter(f"{path}?{said}", schema)
    assert sum(counter.count([("SpO2",)])[0].values) == 40
    counter.close()


def test_no_mend_is_proposed_that_drops_most_rows(tmp_path: Path) -> None:
    """A few odd cells may be left out; a column of them is of another kind than it is declared."""
    few = write(tmp_path / "few.csv", "x,y", ["5,1"] * 30 + ["soon,1"])
    most = write(tmp_path / "most.csv", "x,y", ["5,1"] * 10 + ["soon,1"] * 12 + ["later,1"])
    (found,) = find_misfits(few, bins("x", 0, 10)) or []
    assert found.values[0].mend == 'outside = "leave out"'
    (found,) = find_misfits(most, bins("x", 0, 10)) or []
    assert len(found.values) == 2 and not any("outside" in one.mend for one in found.values)
    (found,) = find_misfits(most, Schema.of({"x": ["5", "6"]})) or []
    assert [one.mend for one in found.values] == ['the level "soon"', 'the level "later"']


def test_a_mend_keeps_what_is_said_already(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "made in May\nprice;share", ["80 €;5 %", "90 €;6 %"])
    typed = f"{path}?header=2&unit=€"
    (found,) = find_misfits(typed, bins("share", 0, 10)) or []
    assert found.values[0].mend.endswith("write 't.csv?header=2&unit=€&unit=%'")
    counter = open_counter(f"{typed}&unit=%", bins("share", 0, 10))
    assert [int(n) for n in counter.count([("share",)])[0].values] == [0, 2]
    counter.close()


def test_several_units_are_said_each_by_itself(tmp_path: Path) -> None:
    rows = [f'{20 + i % 70}%,"€{1 + i % 8},{100 + i % 800}"' for i in range(400)]
    path = write(tmp_path / "mix.csv", "pct,eur", rows)
    schema = draft_schema(f"{path}?unit=%&unit=€").schema
    assert schema.names == ("pct", "eur") and schema["eur"].type == "integer"
    for wrong in ("%,€", "%€"):
        with pytest.raises(DataError, match="say each by itself: unit=%&unit=€"):
            draft_schema(f"{path}?unit={wrong}")
    with pytest.raises(DataError, match=r"mix.csv: decimal=. and decimal=, contradict each other"):
        draft_schema(f"{path}?decimal=.&decimal=,")


def test_thousands_are_read_where_a_decimal_point_is_said(tmp_path: Path) -> None:
    """Also 2,466 without a point; a draft of either says what to type, and of a postal code says nothing."""
    rows = [f'"{1 + i % 9},{100 + i % 900}{".5" * (i % 2)}",{i % 900}.25,0{1000 + i % 7}' for i in range(400)]
    path = write(tmp_path / "us.csv", "amount,small,zip", rows)
    draft = draft_schema(path)
    assert draft.schema.names == ("small", "zip")
    assert "commas between thousands" in draft.proposals[0].notes[0] and "?decimal=." in draft.format()
    schema = draft_schema(f"{path}?decimal=.").schema
    assert schema.names == ("amount", "small", "zip") and schema["amount"].type == "decimal"
    assert schema["amount"].bins is not None and schema["amount"].bins.edges[-1] > 9000
    open_counter(f"{path}?decimal=.", schema).close()


def test_years_of_two_digits_get_a_word(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.csv", "dob,x", [f"{1 + i % 28:02}.10.{40 + i % 59},{i % 3}" for i in range(400)]
    )
    assert "years of two digits" in draft_schema(path).proposals[0].notes[0]
    edges = ["1940-01-01", "1970-01-01", "2000-01-01"]
    schema = Schema((Attribute.dated("dob", edges=edges),))
    with pytest.raises(DataError, match="neither a date nor a declared level; years need four digits"):
        open_counter(path, schema)
    (found,) = find_misfits(path, schema) or []
    assert "years of four digits" in found.values[0].mend


@pytest.mark.parametrize("ending", ["csv", "csv, narrow", "xlsx"])
def test_a_title_in_place_of_the_header_is_noticed(ending: str, tmp_path: Path) -> None:
    rows = [[i % 5, ["yes", "no"][i % 2], f"{i % 9}.5"] for i in range(60)]
    path = str(tmp_path / f"anes.{ending[:4].strip(',')}")
    if ending == "xlsx":
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for row in (["Study of 1996"], [], ["popul", "vote", "score"], *rows):
            book.active.append(row)
        book.save(path)
    else:
        title = "Study of 1996" + ";;" * (ending == "csv")
        empty = ";;" * (ending == "csv")
        lines = [empty, "popul;vote;score", *(";".join(map(str, row)) for row in rows)]
        write(Path(path), title, lines)
    name = Path(path).name
    schema = Schema.of({"vote": ["yes", "no"]})
    with pytest.raises(DataError, match="its first row looks like a title") as refused:
        open_counter(path, schema)
    assert str(refused.value).endswith(f"try '{name}?header=3'")
    with pytest.raises(DataError) as refused:
        open_counter(path, Schema((Attribute.of("vote", ["yes"], other="other", missing="missing"),)))
    if (
        ending != "csv, narrow"
    ):  # a total schema: others may see what is refused, and rows must not show in it
        assert "no column 'vote'" in str(refused.value) and "title" not in str(refused.value)
    if ending != "csv, narrow":  # its rows are wider than its title, and refused
        assert f"try '{name}?header=3'." in draft_schema(path).format()
    draft = draft_schema(f"{path}?header=3")
    assert draft.schema.names == ("popul", "vote", "score") and not draft.hint
    assert parse_toml(draft.format()) == draft.schema


@pytest.mark.parametrize(
    "text",
    [
        "remark\n" + "fine\n" * 30,
        ",a,b\n" + "1,2,3\n" * 30,
        "a;;\n" + "1;2;3\n" * 30,
        "a;;\n" + "x;80 €;yes\ny;$9;no\n" * 30,
        "a;;\n" + "x;left;yes\ny;right;no\n" * 30,
        'a;b;c\n"1, 2, 3, 4";2;3\n' + "x, y, z, u, v, w;2;3\n" * 30,
    ],
)
def test_a_header_is_no_title(text: str, tmp_path: Path) -> None:
    """Nothing is said where the row below holds values, or where only a text holds another separator."""
    (tmp_path / "t.csv").write_text(text)
    assert not draft_schema(str(tmp_path / "t.csv"), least=2).hint


def test_a_nameless_column_numbers_the_rows_only_if_it_does(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", ",,x", [f"{i},{i * 7 % 400}.{i % 10}5,{i % 3}" for i in range(400)])
    notes = [found.notes[0] for found in draft_schema(path).proposals]
    assert "it numbers the rows" in notes[0] and "it has no name" in notes[1]


def test_times_of_the_day_of_people_are_no_arbitrary_minutes(tmp_path: Path) -> None:
    """Very many are left out with a word; few come in their own order, also 9:00 before 10:00."""
    rows = [f"P{i % 700},{i * 37 % 24}:{i * 11 % 60:02},{[8, 9, 10, 11][i % 4]}:00" for i in range(5000)]
    path = write(tmp_path / "t.csv", "pid,seen,slot", rows)
    draft = draft_schema(path, person="pid")
    assert draft.schema.names == ("slot",)
    assert "very many times of the day" in draft.proposals[0].notes[0]
    assert draft.schema["slot"].levels == ("8:00", "9:00", "10:00", "11:00")
    assert draft.schema["slot"].ordered


def test_numbers_that_repeat_evenly_without_gaps_raise_the_question_of_people(tmp_path: Path) -> None:
    rows = [f"{1 + i // 4}.0,{i % 4},{1900 + i % 70},{i * 7 % 90}" for i in range(840)]
    draft = draft_schema(write(tmp_path / "t.csv", "individual,mode,year,age", rows))
    assert draft.repeated == "individual" and "--person individual" in draft.format()
    assert [found.column for found in draft.proposals if found.repeats] == ["individual"]
    assert draft_schema(str(tmp_path / "t.csv"), person="individual").repeated is None


def test_a_wrong_separator_or_encoding_is_refused_with_one_that_fits(tmp_path: Path) -> None:
    path = write(tmp_path / "k.csv", "town;age", [f"Köln;{i % 9}" for i in range(60)], "cp1252")
    with pytest.raises(
        SchemaError, match=r"its header has no '\|', but 1 times ';': try 'k.csv[?]separator=;'"
    ):
        _ = draft_schema(f"{path}?separator=|").schema
    with pytest.raises(DataError, match=r"no column 'age'.*try 'k.csv[?]separator=;'"):
        open_counter(f"{path}?separator=tab", Schema.of({"age": ["1", "2"]}))
    with pytest.raises(DataError, match=r"byte 10 is not utf-8 text; try 'k.csv[?]encoding=cp1252'"):
        draft_schema(f"{path}?encoding=utf-8")
    with pytest.raises(DataError, match=r"try 'k.csv[?]separator=;&encoding=cp1252'"):
        draft_schema(f"{path}?separator=;&encoding=ascii")


def test_small_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.csv", "yes,x", [f"{['TRUE', 'true', 'no'][i % 3]},{i % 4}" for i in range(90)])
    assert "and case does not matter" in draft_schema(path).format()
    assert show("long " * 40).endswith("…'") and len(show("long " * 40)) == SHOWN
    assert main(["plan", "--rows", "many"]) == 2
    assert "integer. See: discreet plan --help" in capsys.readouterr().err
    (tmp_path / "network.bif").write_text("network unknown {\n}\n")
    assert main(["verify", str(tmp_path / "network.bif")]) == 2
    assert "a BIF file" in (said := capsys.readouterr().err) and "release.json" in said


def test_one_guess_is_one_guess(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "t.csv", "x,id", [f"{'ab'[i % 2]},{i}" for i in range(90)])
    assert main(["schema", "draft", path, "--out", str(tmp_path / "s.toml")]) == 0
    assert "1 guess to review" in capsys.readouterr().out
    assert main(["schema", "check", str(tmp_path / "s.toml"), path]) == 0
    assert "1 guess of the draft is not reviewed yet" in capsys.readouterr().out
    command = ["release", path, "--schema", str(tmp_path / "s.toml"), "--epsilon", "1", "--accept-guesses"]
    place = [
        "--ledger",
        str(tmp_path / "l"),
        "--account",
        "a",
        "--create-ledger",
        "--out",
        str(tmp_path / "r.json"),
    ]
    assert main([*command, *place]) == 0
    assert "no arrows: there is one attribute" in capsys.readouterr().out
