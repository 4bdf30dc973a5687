"""What it takes to install discreet: the size of the wheel, of all that it needs, and the time until it runs.

A wheel is built, installed in a new environment from the package index or its cache, and imported. `--quick` skips
the installation and weighs this environment's own copies of what the wheel needs.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parents[1]
IMPORTS = 9


def build(place: Path) -> Path:
    """The wheel of the sources."""
    command = [sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = place.glob("*.whl")
    return found


def list_needed(name: str = "discreet") -> set[str]:
    """What an installation without extras brings along, by name."""
    waiting, found = [name], set()
    while waiting:
        current = waiting.pop()
        try:
            needed = distribution(current).requires or []
        except PackageNotFoundError:
            continue
        found.add(current)
        for line in needed:
            words = re.match(r"[A-Za-z0-9._-]+", line)
            if words and "extra ==" not in line and words[0] not in found:
                waiting.append(words[0])
    return found


def weigh(name: str) -> int:
    """The bytes of an installed package, without what is compiled on first use."""
    files = distribution(name).files or []
    places = (Path(str(distribution(name).locate_file(file))) for file in files)
    return sum(place.stat().st_size for place in places if place.suffix != ".pyc" and place.is_file())


def time_import(python: Path | str) -> float:
    """The median time of `import discreet` in a new interpreter, without that of the interpreter, in ms."""
    script = "import time; t = time.perf_counter(); import discreet; print(time.perf_counter() - t)"
    runs = [
        float(subprocess.run([str(python), "-c", script], check=True, capture_output=True, text=True).stdout)
        for _ in range(IMPORTS)
    ]
    return 1000 * statistics.median(runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="do not install; weigh what is here")
    quick = parser.parse_args().quick
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        print("building the wheel …", flush=True)
        wheel = build(place)
        python: Path | str = sys.executable
        install_s: float | None = None
        if not quick:
            python = place / "environment" / "bin" / "python"
            subprocess.run([sys.executable, "-m", "venv", str(place / "environment")], check=True)
            print("installing it in a new environment …", flush=True)
            began = time.perf_counter()
            install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
            subprocess.run([*install, "-c", str(ROOT / "constraints.txt"), str(wheel)], check=True)
            install_s = time.perf_counter() - began
        sizes = {package: weigh(package) for package in list_needed()}
        for package, size in sorted(sizes.items(), key=lambda item: -item[1])[:8]:
            print(f"  {package:<16} {size / 1e6:7.1f} MB")
        print(f"wheel_kb: {wheel.stat().st_size / 1e3:.0f}")
        print(f"installed_mb: {sum(sizes.values()) / 1e6:.0f}")
        if install_s is not None:
            print(f"install_s: {install_s:.1f}")
        print(f"import_ms: {time_import(python):.0f}")


if __name__ == "__main__":
    main()
