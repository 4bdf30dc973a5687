"""A folder that a release was written into: every file in it is what discreet makes of the document, byte for byte."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.networks.formats.made_from import digest_file, digest_release, name_origin
from discreet.networks.formats.release import RELEASE, read_release
from discreet.networks.formats.signature import make_keys
from discreet.values.errors import DiscreetError

SCHEMA = dc.Schema.of({"a": ["0", "1"], "b": ["x", "y", "z"]})
CHANCE = np.random.default_rng(8)
ROWS = {found.name: [found.levels[i] for i in CHANCE.integers(0, found.size, 200)] for found in SCHEMA}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    common = {"ledger": folder.parent / "l", "account": "c", "create": True}
    dc.release(ROWS, SCHEMA, {"a": (), "b": ("a",)}, epsilon=2, **common).write(folder)  # type: ignore[arg-type]
    rows = [str(folder / "release.json"), "--rows", "50", "--seed", "3", "--given", "a=1"]
    assert main(["synthesize", *rows, "--out", str(folder / "rows.csv")]) == 0
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "published"))


def test_everything_in_the_folder_is_checked(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "README.txt").write_text("hello")
    assert main(["verify", str(folder)]) == 0
    said = capsys.readouterr().out
    for name in ("network.bif", "report.html", "explorer.html", "rows.csv"):
        assert f"{name} " in said and "byte for byte" in said
    assert "not of this release, and not looked at: README.txt" in said
    digest = digest_release(read_release(folder / "release.json"))
    assert digest == digest_file(folder / "release.json")
    for name in ("network.bif", "report.html", "explorer.html", "rows.csv.from.json"):
        assert digest in (folder / name).read_text("utf-8")
    assert dc.read(folder / "network.bif").dag == read_release(folder / "release.json").network.dag  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "name", ["network.bif", "report.html", "explorer.html", "rows.csv", "rows.csv.from.json"]
)
def test_a_file_that_was_changed_is_found(folder: Path, name: str) -> None:
    text = (folder / name).read_text("utf-8")
    at = text.rindex("0.") if name == "network.bif" else len(text) // 2
    (folder / name).write_text(text[:at] + ("1" if text[at] != "1" else "2") + text[at + 1 :], "utf-8")
    found = dc.verify(folder)
    assert not found.sound
    assert [problem.partition(":")[0] for problem in found.problems] == [name.removesuffix(".from.json")]


WRAPPINGS = {
    "gzip": lambda data: gzip.compress(data),
    "a mark": lambda data: b"\xef\xbb\xbf" + data,
    "a line more": lambda data: data + b"\n",
    "a blank more": lambda data: data.replace(b" ", b"  ", 1),
}


@pytest.mark.parametrize("how", WRAPPINGS)
@pytest.mark.parametrize("name", ["network.bif", "report.html", "explorer.html", "rows.csv.from.json"])
def test_nothing_hides_around_a_file(folder: Path, name: str, how: str) -> None:
    """The same text in another wrapping is not the same file: a name or a comment fits into gzip's."""
    data = (folder / name).read_bytes()
    (folder / name).write_bytes(WRAPPINGS[how](data))
    assert not dc.verify(folder).sound


def test_what_only_looks_like_an_origin_is_named(folder: Path) -> None:
    (folder / "notes.txt").write_text("x")
    (folder / "notes.txt.from.json").write_text("a message")
    words = dc.verify(folder).checks[-1].words
    assert "notes.txt, notes.txt.from.json" in words


def test_a_signature_that_nobody_checked_is_named(folder: Path, tmp_path: Path) -> None:
    make_keys(tmp_path / "key")
    dc.sign(folder / "release.json", tmp_path / "key")
    assert "not release.json.sig" in dc.verify(folder).checks[-1].words
    found = dc.verify(folder, key=tmp_path / "key.pub")
    assert found.sound and "release.json.sig" not in found.checks[-1].words


def test_the_posterior_beside_a_release_is_checked(tmp_path: Path) -> None:
    made = dc.release(
        ROWS,
        SCHEMA,
        {"a": (), "b": ("a",)},
        epsilon=2,
        learner="laplace",
        ledger=tmp_path / "l",
        account="c",
        create=True,
    )
    made.write(tmp_path / "out")
    found = dc.verify(tmp_path / "out")
    assert found.sound and any(check.name == "posterior.json" and check.holds for check in found.checks)
    text = (tmp_path / "out" / "posterior.json").read_text()
    (tmp_path / "out" / "posterior.json").write_text(text.replace("alphas", "alphas ", 1))
    assert not dc.verify(tmp_path / "out").sound


def test_files_of_another_release_are_found(folder: Path, tmp_path: Path) -> None:
    other = dc.release(
        ROWS, SCHEMA, {"a": (), "b": ()}, epsilon=1, ledger=tmp_path / "m", account="d", create=True
    )
    other.write(tmp_path / "other")
    for name in ("network.bif", "report.html", "explorer.html"):
        shutil.copy(tmp_path / "other" / name, folder)
    assert {line.partition(":")[0] for line in dc.verify(folder).problems} == {
        "network.bif",
        "report.html",
        "explorer.html",
    }
    shutil.copy(tmp_path / "other" / "release.json", folder)
    assert {line.partition(":")[0] for line in dc.verify(folder).problems} == {"rows.csv"}
    (folder / "rows.csv").unlink()
    assert dc.verify(folder).sound
    name_origin(folder / "rows.csv").unlink()


def test_pages_never_show_a_promise_that_is_not_verified(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((folder / "release.json").read_text("utf-8"))
    promise = document["promise"]
    document["promise"] = "Nothing can ever go wrong."
    (tmp_path / "bad.json").write_text(RELEASE.format_text(document), "utf-8")
    for command in (["report"], ["explore", "--no-open"]):
        page = tmp_path / f"{command[0]}.html"
        assert main([*command, str(tmp_path / "bad.json"), "-o", str(page)]) == 2 and not page.exists()
        assert "does not add up" in capsys.readouterr().err
    with pytest.raises(DiscreetError, match="does not add up"):
        dc.read(tmp_path / "bad.json").write(tmp_path / "copy")  # type: ignore[union-attr,arg-type]
    # What cannot be run again cannot be verified: then the page says so, in place of the promise.
    document["promise"] = promise
    document["provenance"]["details"]["options"] = {"prior": {"no exact form": "array"}}
    (tmp_path / "odd.json").write_text(RELEASE.format_text(document), "utf-8")
    for command in (["report"], ["explore", "--no-open"]):
        page = tmp_path / f"{command[0]}.html"
        assert main([*command, str(tmp_path / "odd.json"), "-o", str(page)]) == 0
        text = page.read_text("utf-8")
        assert "Not verified" in text and promise[:40] not in text and "at most <strong>" not in text
