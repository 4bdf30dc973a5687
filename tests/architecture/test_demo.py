"""The tour that `make demo` runs: it ends with the files that it wrote, and they are what they say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import discreet


def test_the_demo_names_the_files_that_it_wrote(tmp_path: Path) -> None:
    """The closing lines are paths, one a line, and the seconds; every path is there and can be read back."""
    answer = subprocess.run(
        [sys.executable, "-m", "discreet.doors.demo"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=240, check=True,
    )  # fmt: skip
    *paths, seconds = answer.stdout.rpartition("\n\n")[2].splitlines()
    assert re.fullmatch(r"demo_seconds: \d+\.\d\d", seconds)
    assert {tmp_path / path for path in paths} == set((tmp_path / "demo").iterdir())
    asia = discreet.examples.asia()
    assert discreet.read_bif(tmp_path / "demo/asia.bif").close_to(asia)
    assert discreet.read_network(tmp_path / "demo/asia.json").close_to(asia)
    header, *rows = (tmp_path / "demo/asia_rows.csv").read_text("utf-8").splitlines()
    assert header == ",".join(asia.nodes)
    assert len(rows) == 1000
