"""`discreet explore`, the custodian's words, and evidence that rules levels out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.networks.formats.release import format_release, parse_release
from discreet.networks.question import Question
from discreet.values.about import MOST_LETTERS, About
from discreet.values.errors import FormatError, QueryError

GOLDEN = Path(__file__).parents[1] / "golden"


def test_a_release_a_network_and_a_bif_file_have_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each is told by its content; the page is one file, and nothing else is written."""
    asia = dc.examples.asia()
    asia.write(tmp_path / "asia.json")
    asia.write_bif(tmp_path / "asia.bif")
    for source in (GOLDEN / "planned.json", tmp_path / "asia.json", tmp_path / "asia.bif"):
        out = tmp_path / "page.html"
        assert main(["explore", str(source), "--out", str(out)]) == 0
        assert capsys.readouterr().out.strip() == str(out)
        assert "Content-Security-Policy" in out.read_text("utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asia.bif", "asia.json", "page.html"]


def test_a_forged_release_gets_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One number that does not follow from the noisy tables: refused in one line, and nothing is written."""
    document = json.loads((GOLDEN / "planned.json").read_text("utf-8"))
    first = document["network"]["cpts"][0]
    first[0], first[1] = first[1], first[0]
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(document), encoding="utf-8")
    assert main(["explore", str(forged), "--out", str(tmp_path / "page.html")]) == 2
    said = capsys.readouterr().err
    assert "does not add up" in said and "discreet verify" in said and said.count("\n") == 1
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "discreet-release"}', "network x {", "\x00"])
def test_a_damaged_file_gets_no_page(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is, one line says what is wrong."""
    source = tmp_path / "broken.json"
    source.write_text(text, encoding="utf-8")
    assert main(["explore", str(source), "--out", str(tmp_path / "page.html")]) == 2
    assert capsys.readouterr().err.startswith("error: ")
    assert not (tmp_path / "page.html").exists()


def test_the_words_of_a_custodian_go_with_the_release(tmp_path: Path) -> None:
    """From a mapping or a file into the document and back; a release without them is as it was."""
    file = tmp_path / "about.toml"
    file.write_text('title = "Clinic"\ndescription = """Two\nlines"""\nlicence = "CC0"\n', encoding="utf-8")
    asia = dc.examples.asia()
    rows = asia.sample(200, rng=1).arrow()
    made = dc.release(rows, asia.schema, asia.dag, epsilon=1, about=file)
    assert made.about == About(title="Clinic", description="Two\nlines", licence="CC0")
    again = parse_release(format_release(made))
    assert again.about == made.about and format_release(again) == format_release(made)
    plain = dc.release(rows, asia.schema, asia.dag, epsilon=1, about={"title": ""})
    assert plain.about is None and '"about"' not in format_release(plain)
    made.write(tmp_path / "out")
    assert dc.verify(tmp_path / "out").sound
    assert "<title>Clinic</title>" in (tmp_path / "out" / "explorer.html").read_text("utf-8")


@pytest.mark.parametrize(
    "about",
    [
        {"titel": "x"},
        {"title": 5},
        {"title": "x" * (MOST_LETTERS + 1)},
        {"contact": "a\x07b"},
        {"title": "\u2028"},
    ],
)
def test_other_words_are_refused(about: dict[str, object]) -> None:
    """Unknown fields, what is no text, too much of it, and what would break a line."""
    with pytest.raises(FormatError):
        About.read(about)  # type: ignore[arg-type]


def test_words_are_read_before_anything_is_spent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A file of words that cannot be read ends the command before a ledger is made."""
    assert main(["examples", str(tmp_path / "clinic"), "--rows", "100"]) == 0
    (tmp_path / "about.toml").write_text("title = ", encoding="utf-8")
    command = [
        "release", str(tmp_path / "clinic" / "patients.csv"), "--schema", str(tmp_path / "clinic" / "schema.toml"),
        "--epsilon", "1", "--ledger", str(tmp_path / "ledger"), "--account", "x", "--create-ledger",
        "--about", str(tmp_path / "about.toml"), "--out", str(tmp_path / "out"),
    ]  # fmt: skip
    assert main(command) == 2
    assert "about.toml: not valid TOML" in capsys.readouterr().err
    assert not (tmp_path / "ledger").exists() and not (tmp_path / "out").exists()


def test_levels_can_be_ruled_out_in_a_question() -> None:
    """P(… | age!=old) sums over the levels that are left, like the joint distribution does."""
    child = dc.examples.child()
    levels = child.schema["Age"].levels
    joint = child.query(["Disease", "Age"]).table.values
    for gone in ([0], [2], [0, 1]):
        kept = [k for k in range(3) if k not in gone]
        text = ", ".join(f"Age!={levels[k]}" for k in gone)
        expected = joint[:, kept].sum(axis=1) / joint[:, kept].sum()
        assert Question.parse(f"P(Disease | {text})").ask(child).table.values == pytest.approx(
            expected, abs=1e-12
        )  # type: ignore[union-attr]
        assert child.query("Disease", {"Age": [levels[k] for k in kept]}).table.values == pytest.approx(
            expected
        )
        event = Question.parse(f"P(Disease=TGA | {text})").ask(child)
        assert event.probability == pytest.approx(expected[1], abs=1e-12)  # type: ignore[union-attr]
    assert Question.parse("MPE(Age!=0-3_days)").excluded == {"Age": ["0-3_days"]}
    assert Question.parse('P("x!" | "a!"!="b=c")').excluded == {"a!": ["b=c"]}


@pytest.mark.parametrize(
    "text",
    [
        "P(Disease | Age!=x)", "P(Disease | Age=0-3_days, Age!=4-10_days)", "P(Disease | Age!=)",
        "P(Disease | Age!=0-3_days, Age!=4-10_days, Age!=11-30_days)", "P(Disease | nobody!=x)",
    ],
)  # fmt: skip
def test_what_cannot_be_ruled_out_is_refused(text: str) -> None:
    """Each with one sentence."""
    with pytest.raises(QueryError):
        Question.parse(text).ask(dc.examples.child())
