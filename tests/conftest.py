"""What several test files share: the examples of Hypothesis, and a real PostgreSQL server with empty schemas."""

from __future__ import annotations

import gc
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

# Whether a change passes must not hang on which examples are drawn that day, so by default they are the same every
# time. New ones are looked for where a failure holds nobody up: `make test-slow` asks for the profile "explore".
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", derandomize=False, print_blob=True)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """Thousands of tests and all that they import are never garbage: collections need not walk over them again."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly which tests did not run because the machine has no browser or no rules of accessibility."""
    reasons = Counter(
        str(found.longrepr[2] if isinstance(found.longrepr, tuple) else found.longrepr)
        for found in terminalreporter.stats.get("skipped", ())
    )
    for reason, count in reasons.items():
        if "browser:" in reason:
            terminalreporter.write_line(
                f"NOT RUN: {count} tests of the explorer. {reason}", red=True, bold=True
            )


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The address of a throw-away PostgreSQL server; needs no rights, and runs as its own user under root."""
    pgserver = pytest.importorskip("pgserver")
    # Not under pytest's own folder, which only its owner may enter.
    server = pgserver.get_server(tempfile.mkdtemp(prefix="discreet-postgres-"), cleanup_mode="delete")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture
def postgres_schema(postgres_server: str) -> Callable[[], str]:
    """A maker of addresses, each with an empty schema of its own."""
    psycopg = pytest.importorskip("psycopg")

    def make() -> str:
        name = f"test_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(postgres_server, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}")
        return f"{postgres_server}&options=-csearch_path%3D{name}"

    return make
