"""The tour that `make demo` runs: it ends with the files that it wrote, and they are what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import discreet
from discreet.entrance import open_ledger
from discreet.judge.verify import verify_file


def run(folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-m", "discreet.doors.demo"],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=True,
    ).stdout  # fmt: skip


def test_the_demo_names_the_files_that_it_wrote(tmp_path: Path) -> None:
    """The closing lines are paths, one a line, and the seconds; the release stands, and a second run is free."""
    *paths, seconds = run(tmp_path).rpartition("\n\n")[2].splitlines()
    assert re.fullmatch(r"demo_seconds: \d+\.\d\d", seconds)
    assert {tmp_path / path for path in paths} == {
        path for path in (tmp_path / "demo").rglob("*") if path.is_file()
    }
    published = tmp_path / "demo/published"
    assert {path.name for path in published.iterdir()} == {
        "release.json", "network.bif", "report.html", "explorer.html", "synthetic.csv", "synthetic.csv.from.json",
    }  # fmt: skip
    with open_ledger(tmp_path / "demo/clinic.ledger") as ledger:
        assert verify_file(published / "release.json", ledger).sound
    network = discreet.read_release(published / "release.json").network
    assert discreet.read_bif(published / "network.bif").dag == network.dag
    assert len((published / "synthetic.csv").read_text("utf-8").splitlines()) == 1001
    before = (published / "release.json").read_bytes()
    assert "nothing was paid" in run(tmp_path)
    assert (published / "release.json").read_bytes() == before
