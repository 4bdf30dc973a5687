"""Where the events of a ledger are kept: SQLite, PostgreSQL, memory."""
