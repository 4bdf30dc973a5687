"""Audits that run a learner themselves, on tables that they make or know."""
