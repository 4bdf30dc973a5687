"""Releases beside each other: what changed by more than noise, and an index page that vouches for what it lists."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.doors.publishing import describe
from discreet.judge.publishing.catalog import _check_entry, write_catalog
from discreet.judge.publishing.differences import find_differences
from discreet.judge.trust import doubt
from discreet.networks.formats.made_from import digest_file
from discreet.networks.formats.release import RELEASE, read_release
from discreet.values import files, patience
from discreet.values.errors import FormatError, OutOfTime

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SCHEMA = dc.Schema.of({"a": ["x", "y", "z"], "b": ["no", "yes"]})
DAG = dc.DAG.build({"a": (), "b": ("a",)})


def make_rows(shares: tuple[float, float, float], ill: float, count: int = 4000) -> dict[str, list[str]]:
    """Exact shares, so that what the tables say is known."""
    a = np.repeat(["x", "y", "z"], [round(count * share) for share in shares])
    b = np.where(np.arange(len(a)) % 1000 < 1000 * ill, "yes", "no")
    return {"a": a.tolist(), "b": b.tolist()}


def publish(rows: dict[str, list[str]], **more: object) -> dc.Release:
    return dc.release(rows, SCHEMA, DAG, **{"epsilon": 1, "account": "clinic", **more})


def test_real_changes_are_found_and_noise_is_not() -> None:
    """Each interval of a difference holds the true one; failing takes noise beyond guaranteed bounds of 95 %, so 6
    of 8 tries miss (at most 5 % each) less than once in a million times."""
    before, after = make_rows((0.5, 0.3, 0.2), 0.2), make_rows((0.3, 0.3, 0.4), 0.2)
    true = {"P(a=x)": -0.2, "P(a=y)": 0.0, "P(a=z)": 0.2}
    missed = 0
    for _ in range(8):
        found = find_differences(publish(before), publish(after))
        by_question = {change.question: change for change in found.changes}
        missed += any(not by_question[name].low <= by <= by_question[name].high for name, by in true.items())
        assert {"P(b=yes)", "P(b=yes | a=x)"} <= set(by_question)
    assert missed < 6
    sure = {change.question for change in found.sure}
    assert {"P(a=x)", "P(a=z)"} <= sure  # a fifth of 4,000 rows beside noise of a few: certain
    assert "differ by more than noise" in found.explain() and found.to_json()["coverage"] == 0.95


def test_a_release_and_itself_differ_in_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = publish(make_rows((0.5, 0.3, 0.2), 0.2))
    assert find_differences(made, made).sure == ()
    made.write(tmp_path / "one.json")
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "one.json")]) == 0
    assert "0 of 11 probabilities differ by more than noise" in capsys.readouterr().out
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "one.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["differences"]["more than noise"] == 0
    made.network.write_bif(tmp_path / "one.bif")
    assert main(["compare", str(tmp_path / "one.json"), str(tmp_path / "one.bif")]) == 0
    assert "noise" not in capsys.readouterr().out
    forged = (tmp_path / "one.json").read_text("utf-8").replace("2.72 times", "1.01 times")
    (tmp_path / "forged.json").write_text(forged, "utf-8")
    for told in (
        ["compare", str(tmp_path / "forged.json"), str(tmp_path / "one.json")],
        ["statement", str(tmp_path / "forged.json")],
        ["statement", str(tmp_path / "forged.json"), "--json"],
        ["statement", str(tmp_path / "forged.json"), "--format", "registry"],
    ):
        assert main(told) == 2
        assert "forged.json does not add up (promise: the words do not say" in capsys.readouterr().err


def test_what_cannot_be_verified_is_compared_and_said_so_and_takes_no_longer_than_it_may(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = publish(make_rows((0.5, 0.3, 0.2), 0.2))
    one = str(tmp_path / "one.json")
    made.write(one)
    (tmp_path / "respelt.json").write_text((tmp_path / "one.json").read_text("utf-8") + "\n", "utf-8")
    assert main(["compare", str(tmp_path / "respelt.json"), one]) == 2
    assert "respelt.json does not add up (form: not the same document" in capsys.readouterr().err
    document = json.loads((tmp_path / "one.json").read_text("utf-8"))
    document["provenance"]["learner"] = "ours"
    strange = tmp_path / "strange.json"
    strange.write_text(RELEASE.format_text(document), "utf-8")
    assert main(["compare", one, str(strange)]) == 0
    why = "the learner 'ours' cannot be run again from here"
    assert f"{strange} is not verified: {why}." in capsys.readouterr().out
    assert main(["compare", one, str(strange), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not verified"] == {str(strange): why}
    (tmp_path / "respelt.json").unlink()
    with pytest.raises(FormatError, match=f"not listed, because numbers could not be checked: {why}"):
        write_catalog(tmp_path, "x")
    ticks = iter(range(10**6))
    monkeypatch.setattr(patience.time, "process_time", lambda: float(next(ticks)))
    monkeypatch.setenv("DISCREET_SECONDS", "3")
    with pytest.raises(OutOfTime, match="more than 3 s of processor time"):
        find_differences(made, made)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("catalogue")
    rows = make_rows((0.5, 0.3, 0.2), 0.2, 400)
    paid = {"ledger": str(place / "l.ledger"), "budget": "epsilon=4", "create": True}
    (place / "site").mkdir()
    words = {"title": "<b>First</b> & last", "description": "d < e"}
    publish(rows, **paid, about=words).write(place / "site" / "2025 a")
    publish(rows, **paid, request="second").write(place / "site" / "second.json")
    publish(rows, **paid, request="unpublished")
    return place


def test_the_page_lists_every_release_with_files_and_checksums(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = published / "site"
    assert (
        main(["catalog", str(site), "--ledger", str(published / "l.ledger"), "--title", "Our <releases>"])
        == 0
    )
    told = capsys.readouterr()
    assert "paid for, and not listed: clinic: unpublished, ε = 1" in told.err and "warning" not in told.err
    page = (site / "index.html").read_text("utf-8")
    assert "<b>First" not in page and "&lt;b&gt;First" in page and "Our &lt;releases&gt;" in page
    assert "it adds up</p>" in page and "unpublished" in page and "<h2>clinic: second.json</h2>" in page
    links = re.findall(r"href='([^']+)'", page)
    assert len(links) > 6
    for link in links:
        assert (site / link.replace("%20", " ")).is_file(), link
    for line in (site / "SHA256SUMS").read_text("utf-8").splitlines():
        digest, _, name = line.partition("  ")
        assert hashlib.sha256((site / name).read_bytes()).hexdigest() == digest
        assert name == "index.html" or digest in page
    assert "Variant and parameters" in (site / "2025 a" / "statement.txt").read_text("utf-8")
    before = page
    untitled = write_catalog(site, "Our <releases>").entries[0]
    assert replace(untitled, path=Path("site/2024/release.json")).title == "clinic: 2024"
    assert "nobody vouches" in (site / "index.html").read_text("utf-8") and before != ""


def test_what_does_not_add_up_is_not_listed(published: Path, tmp_path: Path) -> None:
    shutil.copytree(published / "site", tmp_path / "site")
    path = tmp_path / "site" / "second.json"
    document = json.loads(path.read_text("utf-8"))
    document["provenance"]["measurements"][0]["counts"][0] += 50
    path.write_text(json.dumps(document), "utf-8")
    with pytest.raises(FormatError, match=r"second\.json: not listed, because it does not add up"):
        write_catalog(tmp_path / "site", "x")
    path.write_text("{", "utf-8")
    with pytest.raises(FormatError, match=r"second\.json: it may be a release, but cannot be read"):
        write_catalog(tmp_path / "site", "x")
    (tmp_path / "bare").mkdir()
    with pytest.raises(FormatError, match="no release in it"):
        write_catalog(tmp_path / "bare", "x")
    with pytest.raises(FormatError, match="no such folder"):
        write_catalog(tmp_path / "nowhere", "x")


def test_what_could_not_be_checked_is_not_listed(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalogue vouches; what takes longer to check than it may, nobody has checked."""
    (tmp_path / "site").mkdir()
    shutil.copy(published / "site" / "second.json", tmp_path / "site")
    ticks = iter(range(10**6))
    monkeypatch.setattr(patience.time, "process_time", lambda: float(next(ticks)))
    monkeypatch.setenv("DISCREET_SECONDS", "1")
    with pytest.raises(
        FormatError, match=r"second\.json: not listed, because numbers could not be checked: it"
    ):
        write_catalog(tmp_path / "site", "x")


def test_croissant_beside_a_release_is_held_against_it(published: Path, tmp_path: Path) -> None:
    """Its promise and digests, as far as a catalogue publishes it; a link to somewhere else is never listed."""
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    place = site / "2025 a"
    said = {
        "licence": "CC BY 4.0",
        "custodian": "clinic",
        "published": "2025-03-01",
        "url": "https://a.example",
    }
    words = {"title": "First", "description": "d", **said}
    (place / "croissant.json").write_text(describe(place, "croissant", about=words), "utf-8")
    write_catalog(site, "x")
    assert "2025 a/croissant.json" in (site / "SHA256SUMS").read_text("utf-8")
    told = json.loads((place / "croissant.json").read_text("utf-8"))
    for change, why in (
        ({"rai:personalSensitiveInformation": "ε = 0"}, "it describes another release"),
        ({"distribution": None}, "it describes another release"),
        (
            {"distribution": [{**one, "sha256": "0" * 64} for one in told["distribution"]]},
            "is another file by now",
        ),
    ):
        (place / "croissant.json").write_text(json.dumps({**told, **change}), "utf-8")
        with pytest.raises(FormatError, match=f"croissant.json: not listed, because .*{why}"):
            write_catalog(site, "x")
    (place / "croissant.json").unlink()
    (tmp_path / "elsewhere.json").write_text(json.dumps(told), "utf-8")
    (place / "croissant.json").symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(FormatError, match=r"croissant\.json is a link; put the file itself"):
        write_catalog(site, "x")


@pytest.mark.parametrize("name", ["x.json", "2025 a/x.json", "2025 a/croissant.json"])
def test_a_pipe_is_refused_and_not_waited_for(name: str, published: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    os.mkfifo(site / name)
    with pytest.raises(FormatError, match=f"{name} is a pipe or a device"):
        write_catalog(site, "x")


def describe_files(release: dc.Release, files: list[object]) -> str:
    return json.dumps({"rai:personalSensitiveInformation": release.promise, "distribution": files})


def test_a_pipe_that_croissant_names_is_refused(published: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    place = site / "2025 a"
    named: list[object] = [
        {"name": "pipe"},
        {"name": "release.json", "sha256": digest_file(place / "release.json")},
    ]
    (place / "croissant.json").write_text(describe_files(read_release(place), named), "utf-8")
    os.mkfifo(place / "pipe")
    with pytest.raises(FormatError, match="pipe is a pipe or a device"):
        write_catalog(site, "x")


def test_names_of_croissant_that_are_no_text_are_passed_over(published: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    place = site / "2025 a"
    odd: list[object] = [{"name": [1]}, {"name": {}}, {"name": 1}, {}]
    (place / "croissant.json").write_text(describe_files(read_release(place), odd), "utf-8")
    with pytest.raises(FormatError, match="it describes another release"):
        write_catalog(site, "x")
    known = {"name": "release.json", "sha256": digest_file(place / "release.json")}
    (place / "croissant.json").write_text(describe_files(read_release(place), [*odd, known]), "utf-8")
    assert len(write_catalog(site, "x").entries) == 2


@pytest.mark.parametrize("name", ["second.json", "2025 a/release.json"])
def test_a_linked_document_is_refused(name: str, published: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    (site / name).rename(tmp_path / "elsewhere.json")
    (site / name).symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(FormatError, match=f"{name} is a link; put the file itself"):
        write_catalog(site, "x")


def test_a_linked_folder_is_not_listed_but_named(published: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    shutil.copytree(published / "site" / "2025 a", tmp_path / "elsewhere")
    (site / "linked").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    found = write_catalog(site, "x")
    assert len(found.entries) == 2 and site / "linked" in found.strange
    assert "linked" not in (site / "index.html").read_text("utf-8")
    (tmp_path / "way").symlink_to(
        site, target_is_directory=True
    )  # the folder itself may be reached by a link
    assert len(write_catalog(tmp_path / "way", "x").entries) == 2


def test_a_document_that_is_exchanged_while_it_is_checked_is_not_listed(
    published: Path, tmp_path: Path, exchange: Callable[[Path, bytes], None]
) -> None:
    """What is listed are the bytes that were checked, whatever lies there a moment later."""
    (tmp_path / "site").mkdir()
    path = tmp_path / "site" / "second.json"
    good = (published / "site" / "second.json").read_bytes()
    path.write_bytes(good.replace("ε = 4".encode(), "ε = 0.1".encode()))
    assert path.read_bytes() != good
    exchange(path, good)
    with pytest.raises(FormatError, match=r"second\.json: not listed, because it does not add up"):
        _check_entry(path, None)


@pytest.fixture
def exchange(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, bytes], None]:
    """A way to exchange a file right after it was read for the first time."""

    def plan(path: Path, data: bytes) -> None:
        def read_and_exchange(given: str | os.PathLike[str], limit: int) -> bytes:
            found = files.read_bytes(given, limit)
            if Path(given) == path:
                path.write_bytes(data)
            return found

        monkeypatch.setattr(doubt, "read_bytes", read_and_exchange)

    return plan


@pytest.mark.parametrize("command", ["statement", "report", "compare"])
def test_a_forgery_that_is_exchanged_while_it_is_checked_is_refused(
    command: str,
    published: Path,
    tmp_path: Path,
    exchange: Callable[[Path, bytes], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    good, path = published / "site" / "second.json", tmp_path / "r.json"
    path.write_bytes(good.read_bytes().replace("ε = 4".encode(), "ε = 0.1".encode()))
    more = {"statement": [], "report": ["-o", str(tmp_path / "page.html")], "compare": [str(good)]}
    exchange(path, good.read_bytes())
    assert main([command, str(path), *more[command]]) == 2
    told = capsys.readouterr()
    assert "does not add up" in told.err and "0.1" not in told.out
    assert not (tmp_path / "page.html").exists() and path.read_bytes() == good.read_bytes()


@pytest.mark.parametrize("name", ["explorer.html", "report.html", "network.bif"])
def test_a_page_that_discreet_did_not_make_is_not_listed(name: str, published: Path, tmp_path: Path) -> None:
    """A catalogue vouches for what it links to: a page with another promise in it is found."""
    shutil.copytree(published / "site", tmp_path / "site")
    page = tmp_path / "site" / "2025 a" / name
    page.write_text(page.read_text("utf-8").replace("0.", "0.0", 1), "utf-8")
    with pytest.raises(FormatError, match=f"not listed, because it does not add up: {name}"):
        write_catalog(tmp_path / "site", "x")


def test_private_files_beside_releases_are_neither_linked_nor_summed_but_named(
    published: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    shutil.copytree(published / "site", site)
    shutil.copy(published / "l.ledger", site / "2025 a" / "l.ledger")
    assert main(["catalog", str(site)]) == 0
    assert "l.ledger is no part of a release" in capsys.readouterr().err
    assert "l.ledger" not in (site / "index.html").read_text("utf-8") + (site / "SHA256SUMS").read_text(
        "utf-8"
    )
