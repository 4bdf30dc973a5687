"""Does a posterior add up? Its α are derived again from the published answers; all else is checked as in a release."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.judge.replay import replay_posterior
from discreet.judge.verify import Check, Verification, verify
from discreet.networks.formats.digits import DIGITS, find_strange, round_number
from discreet.networks.formats.release import make_release
from discreet.networks.posterior import POSTERIOR, Posterior
from discreet.values.errors import DiscreetError, FormatError, OutOfTime
from discreet.values.text import show

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger


def verify_posterior(posterior: Posterior, ledger: Ledger | None = None) -> Verification:
    """Check a posterior against itself, and against the ledger that paid for it if that is given."""
    known = posterior.provenance
    if known is None or known.statement is None:
        raise FormatError(
            "this posterior does not say how it was learned and paid for, so nothing can be checked"
        )
    means = posterior.network()
    try:
        again = replay_posterior(means)
    except OutOfTime as reason:
        alphas = Check("alphas", None, str(reason))
    except (
        DiscreetError,
        ArithmeticError,
        KeyError,
        TypeError,
        AttributeError,
        ValueError,
        IndexError,
    ) as problem:
        alphas = Check("alphas", False, f"they do not follow from the published answers: {problem}")
    else:
        alphas = _compare_alphas(again, posterior)
        means = replace(
            again.network(), provenance=known
        )  # α are published in few digits, their means follow from all
    form = f"a posterior of version {POSTERIOR.version}: {len(posterior.dag)} attributes"
    # The words of a promise stand in the release beside it; here there are numbers only.
    found = [check for check in verify(make_release(means), ledger).checks[1:] if check.name != "promise"]
    return Verification((Check("form", True, form), *found, alphas))


def _compare_alphas(again: Posterior, posterior: Posterior) -> Check:
    for mine, published in zip(again.alphas, posterior.alphas, strict=True):
        at = find_strange(published.values, mine.values)
        if at is not None:
            words = (
                f"those of {show(mine.axes[-1])} do not follow from the published answers: "
                f"{published.values.flat[at]!s} stands where {round_number(float(mine.values.flat[at]))} is derived"
            )
            return Check("alphas", False, words)
    return Check("alphas", True, f"prior and published answers give the same α to all {DIGITS} digits")
