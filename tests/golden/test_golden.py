"""Releases that were made once go on saying the same: the same document, the same answers, the same verdict."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

HERE = Path(__file__).parent


def load_maker() -> ModuleType:
    """The script beside this file."""
    found = importlib.util.spec_from_file_location("golden_make", HERE / "make.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


MAKER = load_maker()
KNOWN: dict[str, Any] = json.loads((HERE / "answers.json").read_text("utf-8"))


def close(one: Any, other: Any) -> bool:
    """Equal, but for the last digits of floats: other machines add in another order."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-9, abs=1e-12)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    return type(one) is type(other) and one == other


def test_every_golden_release_is_here() -> None:
    """A release that is left out of the answers, or is gone, checks nothing."""
    assert set(KNOWN) == set(MAKER.RELEASES) == {path.stem for path in HERE.glob("*.json")} - {"answers"}


@pytest.mark.parametrize("name", MAKER.RELEASES)
def test_a_golden_release_says_what_it_said(name: str) -> None:
    """Answers, synthetic rows and the verdict of `verify` are those of the day it was made."""
    found = MAKER.answer(HERE / f"{name}.json")
    assert found["verify"]["sound"] is True
    assert close(found["answers"], KNOWN[name]["answers"])
    assert found["rows"] == KNOWN[name]["rows"]


@pytest.mark.parametrize("name", MAKER.RELEASES)
def test_a_golden_release_is_written_as_it_was_read(name: str) -> None:
    """Reading and writing gives the same bytes."""
    from discreet.networks.formats.release import format_release, parse_release

    text = (HERE / f"{name}.json").read_text("utf-8")
    assert format_release(parse_release(text)) == text


def test_another_processor_finds_the_same_numbers() -> None:
    """Where OpenBLAS adds in another order, as on an old processor, every golden release still adds up."""
    script = "import sys, discreet as dc\nprint(*(dc.verify(path).sound for path in sys.argv[1:]))"
    paths = [str(HERE / f"{name}.json") for name in MAKER.RELEASES]
    ran = subprocess.run(
        [sys.executable, "-c", script, *paths],
        env={**os.environ, "OPENBLAS_CORETYPE": "Prescott", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.stdout.split() == ["True"] * len(paths), ran
