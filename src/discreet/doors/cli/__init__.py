"""The command line: each command is one call into the library."""

from discreet.doors.cli.main import app, main

__all__ = ["app", "main"]
