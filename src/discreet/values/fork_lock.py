"""A lock that survives a fork; it protects no one's privacy, only the ledger's connection."""

from __future__ import annotations

import os
import threading
import weakref


class ForkLock:
    """A re-entrant lock that a fork waits for, and that the forked child finds free.

    A fork in the middle of another thread's transaction would hand the child a copy of SQLite's list of file locks
    without the locks themselves.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _alive.add(self)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *problem: object) -> None:
        self._lock.release()


_alive: weakref.WeakSet[ForkLock] = weakref.WeakSet()
_held: list[ForkLock] = []


def _hold() -> None:
    _held[:] = list(_alive)
    for lock in _held:
        lock._lock.acquire()


def _release() -> None:
    for lock in _held:
        lock._lock.release()
    _held.clear()


def _renew() -> None:
    for lock in _held:
        lock._lock = threading.RLock()
    _held.clear()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_renew)
