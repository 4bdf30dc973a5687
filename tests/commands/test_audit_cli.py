"""`discreet audit` on every kind of release: what it prints, what it writes, what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from chance import SURE
from discreet.doors.cli import main
from discreet.entrance import open_airlock
from discreet.judge.attacks.flat_tables import FlatTables
from discreet.networks import examples
from discreet.networks.credal import idm
from discreet.networks.formats.release import write_release
from discreet.networks.network import Network
from discreet.papers.parameters.independent import independent


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Members, reference, and every kind of release that can be audited."""
    place = tmp_path_factory.mktemp("audit")
    truth = examples.sachs()
    people = truth.sample(200, rng=1)
    people.write(place / "members.csv")
    truth.sample(600, rng=2).write(place / "reference.parquet")
    cells = FlatTables.arrange(truth.dag, truth.schema.sizes)
    counts = cells.count(cells.locate(people.codes()))
    plain = Network(truth.schema, truth.dag, cells.split(cells.normalise(counts)))
    plain.write(place / "plain.json")
    plain.write_bif(place / "plain.bif")
    idm(cells.split(counts), truth.dag, truth.schema, strength=10.0).write(place / "credal.json")
    with open_airlock(str(place / "members.csv"), truth.schema, budget="1") as airlock:
        write_release(independent(airlock, truth.dag, spend=1), place / "private.json")
    people.write(place / "copies.arrow")
    truth.schema.write(place / "schema.toml")
    return place


def run(folder: Path, release: str, *more: str) -> int:
    files = ["--members", str(folder / "members.csv"), "--reference", str(folder / "reference.parquet")]
    return main(["audit", str(folder / release), *files, *more])


@pytest.mark.parametrize(
    ("release", "options", "attacks"),
    [
        ("plain.json", [], {"likelihood ratio"}),
        ("plain.bif", [], {"likelihood ratio"}),
        ("credal.json", [], {"Definition 6", "recovery", "recovery, unseen out", "centroid"}),
        (
            "private.json",
            ["--complete", "--confidence", str(SURE)],
            {"likelihood ratio", "noise-aware", "noise-aware, jointly"},
        ),
        ("copies.arrow", ["--schema"], {"refitted network", "nearest row", "nearer than reference"}),
        (
            "copies.arrow",
            ["--graph", "--schema"],
            {"refitted network", "nearest row", "nearer than reference"},
        ),
    ],
)
def test_every_kind_of_release_is_attacked_in_its_ways(
    folder: Path, release: str, options: list[str], attacks: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"--schema": "schema.toml", "--graph": "plain.bif"}
    more = [
        part
        for option in options
        for part in ([option, str(folder / files[option])] if option in files else [option])
    ]
    code = run(folder, release, *more, "--json")
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert {attack["attack"] for attack in found["tracing"]["attacks"]} == attacks
    assert code == (1 if found["outcome"] in ("broken", "exposed") else 0)
    assert found["outcome"] == ("kept" if release == "private.json" else found["outcome"]) != "broken"
    assert "private rows" in printed.err
    (told,) = re.findall(r"finds ([\d.]+) % of the members .* accuses ([\d.]+) %", " ".join(found["verdict"]))
    error = found["tracing"]["errors"].index(float(told[1]) / 100)
    best = max(attack["points"][error]["power"] for attack in found["tracing"]["attacks"])
    assert float(told[0]) == pytest.approx(100 * best, abs=0.06), "the best attack at the error that is named"
    assert found["tracing"]["members"] == 200 and found["tracing"]["strangers"] == 300
    if release == "private.json":
        assert found["tracing"]["promise"] == {"epsilon": "1"} and found["noise"]["tests"] > 5
        assert found["tracing"]["ceiling"][1] == pytest.approx(np.e / 100)


def test_copies_sold_as_private_are_refuted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The members themselves as synthetic rows, with a promise of ε = 1/10."""
    schema = ["--schema", str(folder / "schema.toml")]
    assert run(folder, "copies.arrow", *schema, "--epsilon", "1/10") == 1
    out = capsys.readouterr().out
    assert out.startswith("BROKEN") and "guesses prove ε ≥" in out


def test_the_page_and_the_plot_need_nothing_else(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One drawing serves the page, the plot alone and the report; it has a line for every attack."""
    page, plot, report = folder / "audit.html", folder / "audit.svg", folder / "report.html"
    run(folder, "private.json", "--html", str(page), "--svg", str(plot), "--report", str(report))
    text, drawn = page.read_text("utf-8"), plot.read_text("utf-8")
    assert text.startswith("<!doctype html>") and "not for the public" in text
    assert "http" not in text.replace("http-equiv", "") and "<script" not in text
    inside = text[text.index("<svg") : text.index("</svg>")]
    assert inside in report.read_text("utf-8")
    root = ElementTree.fromstring(drawn)
    assert root.tag == "{http://www.w3.org/2000/svg}svg" and "href" not in drawn and "@import" not in drawn
    assert drawn.count('<polyline class="attack a') == 3 and drawn.count('class="band') == 12


@pytest.mark.parametrize(
    ("release", "more", "words"),
    [
        ("copies.arrow", [], "give their schema"),
        ("missing.json", [], "cannot be read"),
        ("private.json", ["--epsilon", "2"], "itself promises"),
        ("plain.json", ["--delta", "1e-6"], "--epsilon"),
        ("plain.json", ["--epsilon", "-1"], "ε"),
        ("plain.json", ["--errors", "0.1,x"], "--errors"),
        ("plain.json", ["--confidence", "2"], "confidence"),
        ("plain.json", ["--complete"], "no noise to check"),
        ("members.csv", ["--schema", "missing.toml"], "missing.toml"),
    ],
)
def test_what_cannot_be_audited_is_refused_in_one_line(
    folder: Path, release: str, more: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, release, *more) == 2
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if not line.startswith("warning")]
    assert len(lines) == 1 and lines[0].startswith("error:") and words in lines[0] and not printed.out


def test_rows_that_do_not_fit_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = folder / "bad.csv"
    bad.write_text("Akt,Erk\nLOW,HIGH\n", "utf-8")
    command = ["audit", str(folder / "plain.json"), "--members", str(bad), "--reference", str(bad)]
    assert main(command) == 2
    assert "bad.csv" in capsys.readouterr().err
    assert main([*command[:3], str(folder / "none.csv"), *command[4:]]) == 2
    assert "none.csv" in capsys.readouterr().err


def test_the_report_with_the_audit_warns_first_and_shows_every_attack(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert run(folder, "private.json", "--confidence", "0.999999", "--report", str(page)) == 0
    text = page.read_text("utf-8")
    assert text.index("for the custodian, not for the public") < text.index("<h1>")
    assert capsys.readouterr().out.splitlines()[0].replace("&", "&amp;") in text
    for attack in ("likelihood ratio", "noise-aware", "noise-aware, jointly"):
        assert f"{attack}</text>" in text and f"<td>{attack}</td>" in text


def test_only_a_release_document_has_a_report(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "report.html"
    assert run(folder, "plain.json", "--report", str(page)) == 2
    assert "error:" in capsys.readouterr().err and not page.exists()
