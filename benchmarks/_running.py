"""What long benchmarks share: a bar on a terminal, and the digest by which finished work is known to be current."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import discreet


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing in a pipe."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def digest_sources(patterns: Iterable[str], script: Path | None = None) -> str:
    """A digest of sources of the package, and of a script, so that no stale result is taken for a new one."""
    root = Path(discreet.__file__).parent
    digest = hashlib.sha256(b"" if script is None else script.read_bytes())
    for pattern in patterns:
        found = sorted(root.glob(pattern))
        if not found:
            raise FileNotFoundError(f"no source is called {pattern}: a digest without it would never change")
        for path in found:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]


def keep(path: Path | None, current: str, make: Callable[[], Any]) -> Any:
    """What a part of a benchmark found, in JSON values: from its file if that is current, else made and written."""
    if path is not None and path.exists():
        stored = json.loads(path.read_text("utf-8"))
        if stored["current"] == current:
            return stored["found"]
    found = make()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"current": current, "found": found}, default=float), encoding="utf-8")
    return found
