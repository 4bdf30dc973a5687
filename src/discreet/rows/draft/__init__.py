"""A first draft of a schema from rows, for a person to review: the one other place that looks at rows.

A schema is public, and what is read off rows is not. So a draft writes no value that fewer rows (or people) hold than a
public threshold, and marks everything that it could not know without a look.
"""

from __future__ import annotations

from discreet.rows.draft.assembly import LEAST, MOST_LEVELS, Draft, draft_schema
from discreet.rows.draft.proposal import REVIEW, Proposal

__all__ = ["LEAST", "MOST_LEVELS", "REVIEW", "Draft", "Proposal", "draft_schema"]
