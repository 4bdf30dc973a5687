"""Whether a page may show what a release promises: only if the release adds up as far as it can be checked at all."""

from __future__ import annotations

from discreet.judge.verify import OPTIONAL, verify
from discreet.networks.formats.release import Release
from discreet.values.errors import FormatError


def find_doubt(release: Release, name: str) -> str:
    """Why a release is not verified, in words; empty if it adds up. One that does not add up is refused."""
    found = verify(release)
    if found.problems:
        raise FormatError(f"{name} does not add up ({found.problems[0]}); see: discreet verify {name}")
    missing = [check for check in found.checks if check.holds is None and check.name not in OPTIONAL]
    return missing[0].words if missing else ""
