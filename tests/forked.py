"""Commands and scripts in processes of their own that are forked from one which has imported everything.

A new interpreter imports for a second before a command begins. What runs here is `main`, as the console script calls
it, or a script: with arguments, folder, environment and standard streams of its own.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

SPECIAL = frozenset("|&;<>$`*?~(){}[]!#\n")
"""What a shell would make something of."""
LOADED = (
    *("numba", "duckdb", "pyarrow.parquet", "pyarrow.compute", "opendp.measurements"),
    *("pandas", "typer._adapters"),  # which pyarrow and typer import at their first use
    *("discreet.doors.library", "discreet.doors.release", "discreet.entrance", "discreet.stores.sqlite"),
    *("discreet.judge.report", "discreet.judge.explorer.page", "discreet.judge.verify"),
)


def split_command(command: str) -> list[str] | None:
    """The arguments of a `discreet` command, or None if it takes a shell to run it."""
    if SPECIAL.intersection("".join(part for i, part in enumerate(command.split('"')) if i % 2 == 0)):
        return None
    if any(part in command for part in ("$", "`", "\\")):
        return None
    name, *arguments = shlex.split(command)
    return arguments if name == "discreet" else None


class Forked:
    """A process that forks a child for each command."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self,
        arguments: list[str],
        folder: Path,
        environment: Mapping[str, str],
        seconds: int,
        script: str | None = None,
    ) -> tuple[int, str]:
        """The exit code of a command, and what it printed on both streams; minus a signal that ended it.

        With a `script`, that runs in place of `main`. What takes more than so many seconds ends with -14.
        """
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.NamedTemporaryFile() as printed:
            asked = [arguments, str(folder), dict(environment), printed.name, seconds, script]
            self._server.stdin.write(json.dumps(asked) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            return code, Path(printed.name).read_text("utf-8")

    def close(self) -> None:
        """End it."""
        self._server.communicate()


@functools.cache
def start_forked() -> Forked:
    """One for all tests of a process."""
    started = Forked()
    atexit.register(started.close)
    return started


def run_script(script: str, *arguments: str, seconds: int = 120) -> tuple[int, str]:
    """The exit code of a script, as of `python -c`, and what it printed."""
    return start_forked().run(list(arguments), Path.cwd(), os.environ, seconds, script)


def _serve() -> None:
    import importlib

    for name in LOADED:
        importlib.import_module(name)
    importlib.import_module("discreet.doors.cli.commands").build()
    _count()
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(*asked)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _count() -> None:
    """Count a row: numba has more to import at its first use than a short command takes."""
    import numpy as np

    from discreet.rows.engines.kernels import Tally

    tally = Tally([2], [[0]])
    tally.add([np.zeros(1, dtype=np.uint8)])
    assert tally.finish()[0].tolist() == [1, 0]


def _become(
    arguments: list[str],
    folder: str,
    environment: dict[str, str],
    printed: str,
    seconds: int,
    script: str | None,
) -> None:
    """Run one command or script in this process, and end it."""
    code = 1
    try:
        signal.alarm(seconds)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        nothing, out = os.open(os.devnull, os.O_RDONLY), os.open(printed, os.O_WRONLY)
        for stream, place in enumerate((nothing, out, out)):
            os.dup2(place, stream)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", 1, "utf-8") for stream in (1, 2))
        sys.argv = ["discreet" if script is None else "-c", *arguments]
        if script is None:
            from discreet.doors.cli import main

            code = main()
        else:
            exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
            code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
