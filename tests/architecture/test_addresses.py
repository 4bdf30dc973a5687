"""No file names a package index: where packages come from is the machine's business, not the repository's."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Put together from parts, so that this file does not contain what it looks for.
INDEXES = [
    ("py" + "pi", "org"), ("python" + "hosted", "org"), ("ana" + "conda", "(org|com)"), ("ma" + "ven", "org"),
    ("npm" + "js", "(org|com)"), ("yarn" + "pkg", "com"), ("js" + "delivr", "net"), ("un" + "pkg", "com"),
    ("cdn" + "js", "com"), ("deb" + "ian", "org"), ("ub" + "untu", "com"), ("crates", "io"),
]  # fmt: skip
OPTIONS = [
    "--" + "index-" + "url",
    "--" + "extra-" + "index-" + "url",
    "--" + "find-" + "links",
    "--" + "trusted-" + "host",
]
ADDRESS = re.compile(
    "|".join(
        [rf"\b{name}\s*\.\s*{end}\b" for name, end in INDEXES] + [re.escape(option) for option in OPTIONS]
    ),
    re.IGNORECASE,
)


def tracked() -> list[Path]:
    """Every file under version control."""
    answer = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if answer.returncode:
        pytest.skip("this copy is not a git checkout")
    return [ROOT / name for name in answer.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_tracked_file_names_a_package_index() -> None:
    """Neither a host nor an option that points at one stands in any tracked file."""
    files = tracked()
    assert len(files) > 10
    found = [
        f"{path.relative_to(ROOT)}: {hit.group()}"
        for path in files
        for hit in ADDRESS.finditer(path.read_bytes().decode("utf-8", errors="replace"))
    ]
    assert found == []


@pytest.mark.parametrize(
    "text", ["https://" + "py" + "pi" + ".org/simple/x", "pip install --" + "index-" + "url=x y"]
)
def test_the_search_finds_an_address(text: str) -> None:
    """The search above can fail."""
    assert ADDRESS.search(text)


def test_constraints_are_plain_pins() -> None:
    """`constraints.txt` holds one sorted `name==version` per line and nothing else but comments."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert [line for line in pins if not re.fullmatch(r"[A-Za-z0-9][\w.\-]*==\d[\w.+!]*", line)] == []
    names = [re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower() for line in pins]
    assert len(set(names)) == len(names)
    assert "discreet" not in names
