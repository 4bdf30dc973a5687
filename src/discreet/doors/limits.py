"""Commands that read what a stranger may have written run in a child process with a limit of time and memory.

What is known to take long is refused before it begins (sizes, digits, options within public limits). This is the line
behind it: whatever a document is made to do to its reader, the reader gets the machine back and one line about it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence

from discreet.values.errors import DataError
from discreet.values.patience import describe_limit, read_seconds, read_whole

MEGABYTES, MEGABYTES_NAME = 6144, "DISCREET_MEGABYTES"
"""The memory that a command may take, unless the environment says otherwise."""
LEAST_MEGABYTES = 768
LIMITED = frozenset(
    (
        "verify",
        "sign",
        "report",
        "explore",
        "statement",
        "combine",
        "compare",
        "catalog",
        "bounds",
        "query",
        "credal",
    )
)
"""Commands whose work a document decides, and nobody's own request."""
BAD_INPUT, INTERRUPTED = 2, 130


def read_limits() -> tuple[int, int]:
    """Seconds of processor time and megabytes of memory, from the environment or as they are by default."""
    seconds, megabytes = read_seconds(), read_whole(MEGABYTES_NAME, MEGABYTES)
    if megabytes < LEAST_MEGABYTES:
        raise DataError(
            f"{MEGABYTES_NAME} must be at least {LEAST_MEGABYTES}, which Python and its packages take, not {megabytes}"
        )
    return seconds, megabytes


def is_limited(arguments: Sequence[str]) -> bool:
    """Whether a command works on what strangers wrote; `compare --rows` reads two files of the custodian's own."""
    own = arguments[:1] == ["compare"] and "--rows" in arguments
    return not own and bool(LIMITED.intersection(arguments[:1]))


def run_limited(work: Callable[[], int]) -> int:
    """The exit code of some work in a child process; one that passes a limit is ended, and a line on stderr says so."""
    try:
        seconds, megabytes = read_limits()
    except DataError as problem:
        print("error:", problem, file=sys.stderr)
        return BAD_INPUT
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        code = BAD_INPUT
        try:
            _limit(seconds, megabytes)
            code = work()
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)
    status = _wait(child)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    ended = os.WTERMSIG(status)
    if ended == signal.SIGINT:
        return INTERRUPTED
    if ended in (signal.SIGXCPU, signal.SIGKILL):
        why = describe_limit(seconds)
    else:
        name = signal.Signals(ended).name
        why = f"{name} ended the process that read it; the file is damaged, or made to do that"
    print("error: stopped:", why, file=sys.stderr)
    return BAD_INPUT


def _limit(seconds: int, megabytes: int) -> None:
    import resource

    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    hard = seconds + 5 if most == resource.RLIM_INFINITY else min(seconds + 5, most)
    resource.setrlimit(resource.RLIMIT_CPU, (min(seconds, hard), hard))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = megabytes * 2**20
    data = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (data, data))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _wait(child: int) -> int:
    while True:
        try:
            return os.waitpid(child, 0)[1]
        except KeyboardInterrupt:  # the child has it too, and ends by itself
            continue
