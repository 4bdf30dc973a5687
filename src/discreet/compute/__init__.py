"""Computation on tables and graphs alone: it sees neither rows nor budgets."""
