"""Whether a release, the files beside it and its ledger can be trusted: what a check found, doubts, witnesses."""
