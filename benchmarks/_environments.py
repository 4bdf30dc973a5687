"""Environments of other packages, each made on first use under ~/.cache/discreet-bench, never in ours."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

CACHE = Path.home() / ".cache" / "discreet-bench"
LIMIT = 1800
"""Seconds after which an installation is given up."""


def open_environment(name: str, packages: Sequence[str], *, install: bool) -> Path | str:
    """The interpreter of an environment that has these packages; or, as text, why there is none."""
    place = CACHE / name
    python, ready = place / "bin" / "python", place / ".ready"
    if ready.exists():
        return python
    if not install:
        return f"no environment in {place}; a full run makes one"
    print(f"{name}: making {place}", file=sys.stderr, flush=True)
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True, capture_output=True)
        command = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", *packages]
        subprocess.run(command, check=True, capture_output=True, timeout=LIMIT)
    except (OSError, subprocess.SubprocessError) as error:
        reason = getattr(error, "stderr", None) or str(error).encode()
        return f"cannot be installed: {reason.decode(errors='replace').strip()[-200:]}"
    ready.touch()
    return python
