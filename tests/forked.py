"""Commands in processes of their own that are forked from one which has imported everything.

A new interpreter imports for a second before a command begins. What runs here is `main`, as the console script calls
it: with arguments, folder, environment and standard streams of its own.
"""

from __future__ import annotations

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
    "numba",
    "duckdb",
    "pyarrow.parquet",
    "opendp.measurements",
    "discreet.doors.library",
    "discreet.entrance",
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
        self, arguments: list[str], folder: Path, environment: Mapping[str, str], seconds: int
    ) -> tuple[int, str]:
        """The exit code of a command, and what it printed on both streams; -14 if it took too long."""
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.NamedTemporaryFile() as printed:
            asked = [arguments, str(folder), dict(environment), printed.name, seconds]
            self._server.stdin.write(json.dumps(asked) + "\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            return code, Path(printed.name).read_text("utf-8")

    def close(self) -> None:
        """End it."""
        self._server.communicate()


def _serve() -> None:
    import importlib

    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        arguments, folder, environment, printed, seconds = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(arguments, folder, environment, printed, seconds)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(
    arguments: list[str], folder: str, environment: dict[str, str], printed: str, seconds: int
) -> None:
    """Run one command in this process, and end it."""
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
        sys.argv = ["discreet", *arguments]
        from discreet.doors.cli import main

        code = main()
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
