"""Does a combined release add up? Every part is checked as the release that it is, and then the sum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from discreet.judge.replay import find_obstacle, replay
from discreet.judge.trust.verification import OTHERS
from discreet.judge.verify import Check, Verification, compare_networks, verify
from discreet.learning.custodians.combination import LEARNER, combine_again
from discreet.networks.formats.digits import DIGITS
from discreet.networks.formats.release import RELEASE, Release, make_release, state_promise
from discreet.networks.provenance import Provenance
from discreet.values.errors import DiscreetError, FormatError, OutOfTime
from discreet.values.text import list_some

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger


def verify_joint(release: Release, ledger: Ledger | None = None) -> Verification:
    """Check each part of a combined release, the sum, the network and the words; a ledger is that of one part."""
    known = release.provenance
    form = f"a release of version {RELEASE.version}: {len(release.network.nodes)} attributes, {len(known.parts)} parts"
    checks = [Check("form", True, form)]
    mine = None if ledger is None else [part for part in known.parts if _is_from(part, ledger)]
    for part in known.parts:
        name = part.statement.account if part.statement is not None else "?"
        held = ledger if mine is not None and part in mine else None
        checks.append(_run(f"part {name}", lambda part=part, held=held: _check_part(release, part, held)))  # type: ignore[misc]
    checks += [
        _run("sum", lambda: _check_sum(release)),
        _run("numbers", lambda: _check_numbers(release)),
        _run("promise", lambda: _check_promise(release)),
    ]
    if ledger is None:
        checks.append(Check("ledger", None, "no ledger was given; with --ledger its part is held against it"))
    elif not mine:
        checks.append(Check("ledger", False, f"no part was paid for from ledger {ledger.id!r}"))
    else:
        checks.append(Check("ledger", True, f"it holds {len(mine)} of {len(known.parts)} parts"))
        rest = [part.statement.account for part in known.parts if part.statement and part not in mine]
        if rest:
            words = (
                f"nobody vouches for what is from {list_some(rest)}: it takes their ledgers, or a key (--key)"
            )
            checks.append(Check(OTHERS, None, words))
    return Verification(tuple(checks))


def _run(name: str, step: Callable[[], str]) -> Check:
    try:
        return Check(name, True, step())
    except OutOfTime as reason:
        return Check(name, None, str(reason))
    except (DiscreetError, ArithmeticError) as problem:
        return Check(name, False, str(problem))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, AssertionError) as problem:
        return Check(name, False, f"malformed: {type(problem).__name__}")


def _is_from(part: Provenance, ledger: Ledger) -> bool:
    return part.statement is not None and part.statement.ledger == ledger.id


def _check_part(release: Release, part: Provenance, ledger: Ledger | None) -> str:
    """The part, with the network that its learner makes of its own tables, is a release that adds up."""
    obstacle = find_obstacle(part)
    if obstacle is not None:
        raise FormatError(obstacle)
    alone = make_release(replay(replace(release.network, provenance=part)))
    stated = Release(replace(alone.network, provenance=part), state_promise(part), release.software)
    found = verify(stated, ledger)
    for problem in found.problems:
        raise FormatError(problem)
    if not found.sound:
        raise FormatError(found.conclude())
    assert part.statement is not None
    return f"it adds up by itself: {part.cost} of {part.statement.budget}"


def _check_sum(release: Release) -> str:
    """Tables, laws, costs and units are those of the sum of the parts, which are all the parts of their plan."""
    again = combine_again(release.network).provenance
    assert again is not None
    known = release.provenance
    if known.learner != LEARNER or known.statement is not None:
        raise FormatError("a release with parts is combined, and has no account of its own")
    if [found.to_json() for found in again.measurements] != [found.to_json() for found in known.measurements]:
        raise FormatError("the tables are not the sums of the parts' tables")
    if again.cost != known.cost or again.unit != known.unit:
        raise FormatError(f"it should cost {again.cost} ({again.unit}), not {known.cost} ({known.unit})")
    return f"{len(known.measurements)} tables are the sums of {len(known.parts)} parts each, and so are their noises"


def _check_numbers(release: Release) -> str:
    compare_networks(combine_again(release.network), release.network)
    return f"estimated again from the sums, the network is the same to all {DIGITS} digits"


def _check_promise(release: Release) -> str:
    wanted = state_promise(release.provenance)
    if release.promise != wanted:
        raise FormatError(f"the words do not say what the numbers say; they should be: {wanted}")
    return "the words say what the numbers say"
