"""The command line: each command is one call into the library."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 fine, 1 a check found problems, 2 bad input in one line."""
    try:
        import sys

        from discreet.doors.cli.commands import run  # here: Ctrl-C while the commands load is Ctrl-C too
        from discreet.doors.limits import is_limited, run_limited

        # Called with arguments, this is part of another program, which sets limits of its own.
        if arguments is None and sys.platform != "win32" and is_limited(sys.argv[1:]):
            return run_limited(run)
        return run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
