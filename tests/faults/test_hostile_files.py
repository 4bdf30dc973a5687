"""Files that mean harm: pipes and links in a folder, bombs in packed tables, texts that turn around what they touch."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.compute.inference.junction import JunctionTree
from discreet.compute.triangulation import RULES, eliminate_greedily, interaction_graph, triangulate
from discreet.doors.cli import main
from discreet.judge.trust.witness import read_witnesses
from discreet.networks import examples
from discreet.networks.credal import CredalNetwork, contaminate
from discreet.rows.readers import foreign
from discreet.values.errors import DataError, DiscreetError, FormatError, SchemaError, TooLarge
from discreet.values.table import Table

SCHEMA = dc.Schema.of({"a": ["0", "1"], "b": ["x", "y"]})
ROWS = {"a": ["0", "1"] * 40, "b": ["x", "x", "y"] * 26 + ["y", "y"]}
MANY = 2**30


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    common = {"ledger": folder.parent / "l", "account": "c", "create": True}
    dc.release(ROWS, SCHEMA, {"a": (), "b": ("a",)}, epsilon=2, **common).write(folder)  # type: ignore[arg-type]
    rows = ["synthesize", str(folder / "release.json"), "--rows", "9", "--out", str(folder / "rows.csv")]
    assert main(rows) == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "published"))


@pytest.mark.parametrize("name", ["network.bif", "explorer.html", "rows.csv", "rows.csv.from.json"])
@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_what_is_no_file_of_the_folder_is_not_read(folder: Path, name: str, kind: str) -> None:
    """A pipe would keep `verify` waiting for ever; a link's target can be exchanged after it was checked."""
    (folder / name).rename(folder.parent / name)
    if kind == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(folder.parent / name)
    found = dc.verify(folder)
    assert not found.sound
    assert [f"is a {kind}" in problem for problem in found.problems] == [True]


@pytest.mark.parametrize("kind", ["pipe", "link", "nothing"])
def test_the_document_of_a_folder_is_a_file(folder: Path, kind: str) -> None:
    document = folder / "release.json"
    document.rename(folder.parent / "elsewhere.json")
    if kind == "pipe":
        os.mkfifo(document)
    else:
        document.symlink_to(folder.parent / ("elsewhere.json" if kind == "link" else "gone.json"))
    for read in (dc.verify, dc.read, read_witnesses):
        with pytest.raises(FormatError, match=r"is a (pipe|link)"):
            read(folder)


def test_pipes_among_witnesses_are_passed_over(folder: Path) -> None:
    os.mkfifo(folder / "notes.txt")
    (folder / "other.json").symlink_to("release.json")
    assert [Path(found.source).name for found in read_witnesses(folder)] == ["release.json"]


def pack(path: Path, sheet: bytes) -> Path:
    """An Excel file whose one sheet is this XML."""
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.save(path.with_name("plain.xlsx"))
    with zipfile.ZipFile(path.with_name("plain.xlsx")) as plain, zipfile.ZipFile(path, "w", 8) as packed:
        for name in plain.namelist():
            packed.writestr(name, sheet if name.endswith("sheet1.xml") else plain.read(name))
    return path


HEAD = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
LINE = b'<row><c t="inlineStr"><is><t>a</t></is></c></row>'
TAIL = b"</sheetData></worksheet>"


def test_an_excel_file_is_unpacked_up_to_the_memory(tmp_path: Path) -> None:
    bomb = pack(tmp_path / "bomb.xlsx", HEAD + LINE + b" " * 20_000_000 + TAIL)
    assert bomb.stat().st_size < 100_000
    with pytest.raises(
        TooLarge, match=r"bytes unpacked; 1,000,000 are the most that is read: raise --memory"
    ):
        foreign.read_excel("bomb.xlsx", bomb, None, {}, 1_000_000)
    assert foreign.read_excel("bomb.xlsx", bomb, None, {}, MANY)[0].column_names == ["a"]


def test_rows_beyond_those_of_excel_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(foreign, "MOST_EXCEL_ROWS", 10)
    for rows, fine in ((10, True), (11, False)):
        path = pack(tmp_path / "rows.xlsx", HEAD + LINE * (1 + rows) + TAIL)
        if fine:
            assert foreign.read_excel("rows.xlsx", path, None, {}, MANY)[0].num_rows == rows
        else:
            with pytest.raises(TooLarge, match="more than 10 rows"):
                foreign.read_excel("rows.xlsx", path, None, {}, MANY)


@pytest.mark.parametrize(
    "sheet", [HEAD + LINE * 9 + b"<row", b"<!DOCTYPE z [<!ENTITY b '" + b"x" * 99 + b"'>]>" + HEAD + b"&c;" + TAIL]
)  # fmt: skip
def test_a_sheet_that_breaks_off_in_the_middle_is_refused(tmp_path: Path, sheet: bytes) -> None:
    path = pack(tmp_path / "broken.xlsx", sheet)
    with pytest.raises(DataError, match=r"broken\.xlsx: not an Excel file: "):
        foreign.read_excel("broken.xlsx", path, None, {}, MANY)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('{"a": "0", "a": "1"}', "line 2 is no JSON object, or has a key twice"),
        ('{"a": {"b": 1, "b": 2}}', "line 2 is no JSON object, or has a key twice"),
        ('{"a": "\\ud800"}', r"'\\ud800' in a name or a cell is half a character"),
        ('{"\\udfff": 1}', r"'\\udfff' in a name or a cell is half a character"),
        ('{"a": ' + "[" * 100_000, "line 2 is no JSON object"),
        ("[1]", "line 2 is no JSON object"),
    ],
)
def test_lines_of_json_that_nobody_can_mean_are_refused(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "0"}\n' + line + "\n")
    with pytest.raises(DataError, match=told):
        foreign.read_json_lines("rows.jsonl", path, MANY)


def test_lines_of_json_are_unpacked_up_to_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"a": "' + b"x" * 3_000_000 + b'"}\n'))
    with pytest.raises(TooLarge, match="more than 1,000,000 bytes"):
        foreign.read_json_lines("rows.jsonl.gz", path, 1_000_000)
    data = bytearray(path.read_bytes())
    data[100:120] = b"\xff" * 20
    path.write_bytes(data)
    with pytest.raises(DataError, match="line 0 is no JSON object"):
        foreign.read_json_lines("rows.jsonl.gz", path, MANY)


def test_keys_that_come_and_go_are_missing_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1}\n\n{"b": 2.0, "c": null}\n{"a": true, "b": "x"}\n')
    found = foreign.read_json_lines("rows.jsonl", path, MANY).to_pydict()
    assert found == {"a": ["1", None, "true"], "b": [None, "2", "x"], "c": [None, None, None]}


@pytest.mark.parametrize("mark", ["\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2069"])
def test_a_text_that_turns_others_around_is_no_name_and_no_level(mark: str, tmp_path: Path) -> None:
    """On a page it would show "no" where the document says "on", or move a number before a name."""
    for levels in ({f"a{mark}b": ["0", "1"]}, {"a": ["0", f"o{mark}n"]}):
        with pytest.raises(SchemaError, match="turns the text behind it around"):
            dc.Schema.of(levels)
    assert dc.Schema.of({"नि\u200dश": ["می\u200cروم", "no"]}).names == (
        "नि\u200dश",
    )  # joiners are letters' own


def test_a_packed_schema_is_read_in_every_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (
        '[attributes.a]\nlevels = ["0", "1"]\n[attributes.b]\nlevels = ["x", "y"]  # review: this is public\n'
    )
    (tmp_path / "schema.toml").write_bytes(gzip.compress(text.encode()))
    command = ["--schema", str(tmp_path / "schema.toml"), "--epsilon", "1"]
    assert main(["plan", *command]) == 0
    assert "1 guess that nobody has reviewed" in capsys.readouterr().err
    place = [
        "--ledger",
        str(tmp_path / "l"),
        "--account",
        "c",
        "--create-ledger",
        "--out",
        str(tmp_path / "o"),
    ]
    assert main(["release", "rows.csv", *command, *place]) == 2
    assert "still has 1 guess taken" in capsys.readouterr().err


@pytest.mark.parametrize("ending", ["csv", "parquet", "arrow"])
def test_rows_for_which_there_is_no_room_are_refused_before_one_is_written(
    made: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"rows.{ending}"
    if shutil.disk_usage(tmp_path).free > 10**12:
        pytest.skip("a disk with room for 10^13 rows")
    asked = ["synthesize", str(made), "--rows", str(10**13), "--out", str(out)]
    for more in ([], ["--tables", "2"]):
        assert main([*asked, *more]) == 2
        told = capsys.readouterr().err
        assert "0,000,000,000,000 rows take about" in told and "are free there; draw fewer (--rows)" in told
    assert not list(tmp_path.iterdir())


def test_what_many_rows_will_take_is_said_and_true(made: Path, tmp_path: Path) -> None:
    release = dc.read(made)
    assert isinstance(release, dc.Release)
    drawn = release.sample(300_000, rng=1)
    for ending in ("csv", "parquet", "arrow"):
        told = drawn.require_room(tmp_path / f"rows.{ending}")
        drawn.write(tmp_path / f"rows.{ending}")
        assert told == pytest.approx((tmp_path / f"rows.{ending}").stat().st_size, rel=0.1)
    with pytest.raises(DiscreetError, match="no such folder"):
        drawn.require_room(tmp_path / "nowhere" / "rows.csv")


def test_a_limit_of_memory_that_holds_nothing_is_refused(made: Path) -> None:
    command = [sys.executable, "-m", "discreet", "verify", str(made)]
    ran = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "DISCREET_MEGABYTES": "64"}
    )
    assert ran.returncode == 2
    assert (
        ran.stderr.startswith("error: DISCREET_MEGABYTES must be at least 768")
        and ran.stderr.count("\n") == 1
    )


GRID = [
    (12 * i + j, 12 * i + j + step)
    for i in range(12)
    for j in range(11)
    for step in (1, 12)
    if i < 11 or step == 1
]


def test_a_network_that_nobody_can_answer_from_is_refused_in_words() -> None:
    """150^144 cells are more than a float can hold, and more than a message should."""
    tables = [Table((f"v{i}", f"v{j}"), np.ones((150, 150))) for i, j in GRID]
    with pytest.raises(TooLarge, match="needs more than 268,435,456,000 cells in every order"):
        JunctionTree.build(tables, 2**28)


def test_a_hopeless_graph_is_given_up_at_its_first_large_clique() -> None:
    weights = [9.0] * 144
    graph = interaction_graph(GRID, 144)
    for rule in RULES:
        assert len(eliminate_greedily(graph, weights, rule, range(144), most=9.0 * 20)) == 144
        assert not eliminate_greedily(graph, weights, rule, range(144), most=9.0 * 5)
    with pytest.raises(TooLarge, match="more than 268,435,456,000 cells"):
        triangulate(GRID, [2**9] * 144, 2**28)


@pytest.mark.parametrize("words", ["x" * 1001, "two\nlines", "\x1b[31m", "ev\u202eil", 7])
def test_what_a_credal_file_says_beside_its_answers_is_short_and_plain(words: object) -> None:
    document = contaminate(examples.asia(), 0.1).to_json()
    assert CredalNetwork.from_json(document)
    with pytest.raises(
        FormatError, match="the meaning must be one line of at most 1000 printable characters"
    ):
        CredalNetwork.from_json({**document, "meaning": words})
