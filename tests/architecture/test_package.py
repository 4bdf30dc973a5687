"""The wheel, as a user gets it: built, installed without a compiler in a new environment, and run in an empty folder.

Every Python from 3.11 on that this machine has is tried; `make test-package` runs this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROOT = Path(__file__).parents[2]
VERSIONS = ("3.11", "3.12", "3.13")


def find_pythons() -> list[str]:
    """This interpreter, and one for each other version that is on the path or kept by pyenv."""
    mine = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = {mine: sys.executable}
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in VERSIONS:
        installed = sorted(str(path) for path in kept.glob(f"{version}.*/bin/python{version}"))
        known = installed[-1] if installed else shutil.which(f"python{version}")
        if known is not None:
            found.setdefault(version, known)
    return [found[version] for version in sorted(found)]


def run(*command: str | Path, folder: Path) -> str:
    """What a command prints; it sees nothing of the sources."""
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr or done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", place, ROOT, folder=place)
    (found,) = place.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    sources = ROOT / "src"
    kept = {
        str(path.relative_to(sources))
        for path in (sources / "discreet").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert kept == {name for name in names if ".dist-info/" not in name}
    assert wheel.name.endswith("-py3-none-any.whl")


@pytest.mark.parametrize("python", find_pythons())
def test_the_wheel_runs_in_a_new_environment(wheel: Path, tmp_path: Path, python: str) -> None:
    place = tmp_path / "environment"
    if Path(python).resolve() == Path(sys.executable).resolve():
        venv.create(place, with_pip=True)
    else:
        run(python, "-m", "venv", place, folder=tmp_path)
    pins = ("-c", ROOT / "constraints.txt")
    quiet = ("-qq", "--disable-pip-version-check", "--no-input", "--only-binary=:all:")
    run(place / "bin" / "python", "-m", "pip", "install", *quiet, *pins, wheel, folder=tmp_path)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run(place / "bin" / "discreet", "--version", folder=empty).startswith("discreet ")
    assert "demo_seconds" in run(place / "bin" / "discreet", "demo", folder=empty)
    assert (empty / "demo" / "published" / "release.json").exists()
    completion = run(place / "bin" / "discreet", "--show-completion", "bash", folder=empty)
    assert "_DISCREET_COMPLETE" in completion
