"""Does a release add up? Everything that can be derived again is, without rows, and what differs is said in words."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

from discreet.judge.costs import check_noise, name_table
from discreet.judge.replay import find_obstacle, replay
from discreet.judge.trust.verification import ALONE, OPTIONAL, Check, Verification
from discreet.networks.formats.digits import DIGITS, find_strange, is_published, round_number
from discreet.networks.formats.documents import MAX_BYTES, load_strictly, parse_document
from discreet.networks.formats.release import (
    ONCE_SIMULATED,
    RELEASE,
    SIMULATED,
    Release,
    describe_words,
    format_release,
    parse_release,
    state_promise,
)
from discreet.networks.formats.signature import check_signature, read_public, write_signature
from discreet.networks.posterior import POSTERIOR, Posterior
from discreet.stores.fingerprint import mark_words
from discreet.values.budget import Budget, Finite, Infinite, require_finite
from discreet.values.errors import DiscreetError, FormatError, OutOfTime
from discreet.values.files import decode_text, packs_more, read_bytes
from discreet.values.patience import limit_time
from discreet.values.statement import Statement
from discreet.values.text import show

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger
    from discreet.networks.network import Network


REPLAYED_VERBS = ("measure", "select", "measure linear", "draw")
"""Answers that are held against their digests: tables here, the others when the learner is run again."""
PATIENCE = 0.9
"""The share of the seconds that a command may take, after which the rest is said to be unchecked."""

__all__ = ["ALONE", "OPTIONAL", "Check", "Verification", "sign_file", "verify", "verify_file"]


class _Problem(DiscreetError):
    """Something that does not add up."""


class _Unchecked(DiscreetError):
    """Something that could not be looked at, and why."""


def verify_file(
    path: str | os.PathLike[str], ledger: Ledger | None = None, key: str | os.PathLike[str] | None = None
) -> Verification:
    """Check the release in a file; something that is not a release at all is refused.

    With the custodian's public `key`, the signature beside it is checked as well.
    """
    if key is not None:
        read_public(key)  # refused before anything else is looked at
    return verify_bytes(read_bytes(path, MAX_BYTES), path, ledger, key)


def verify_bytes(
    data: bytes,
    path: str | os.PathLike[str],
    ledger: Ledger | None,
    key: str | os.PathLike[str] | None = None,
) -> Verification:
    """The same of bytes that were read already: what is checked is what is shown, whatever becomes of the file."""
    name = os.fspath(path)
    text = decode_text(data, name)
    if POSTERIOR.names(text):
        from discreet.judge.posteriors import verify_posterior

        posterior = parse_document(text, name, Posterior.from_json)
        canonical = POSTERIOR.format_text(posterior.to_json())
        with limit_time(PATIENCE):
            found = verify_posterior(posterior, ledger)
        return _hold_bytes(found, canonical, data, path, key)
    try:
        release = parse_release(text, name)
    except FormatError as error:
        try:
            document = load_strictly(text)
        except DiscreetError:
            raise error from None
        if (
            not isinstance(document, dict)
            or document.get("format") != RELEASE.format
            or document.get("version") != RELEASE.version
        ):
            raise
        return Verification((Check("form", False, str(error)),))
    return _hold_bytes(verify(release, ledger), format_release(release), data, path, key)


def _hold_bytes(
    found: Verification,
    canonical: str,
    data: bytes,
    path: str | os.PathLike[str],
    key: str | os.PathLike[str] | None,
) -> Verification:
    """What was checked of a document, and whether its bytes are those that discreet writes and the key vouches for."""
    other = _find_respelling(data, canonical.encode(), path)
    form = found.checks[0] if other is None else Check("form", False, other)
    signed = [] if key is None else [_run("signature", lambda: _check_signature(path, data, key))]
    return Verification((form, *found.checks[1:], *signed))


def sign_file(
    path: str | os.PathLike[str], key: str | os.PathLike[str], ledger: Ledger | None = None
) -> Path:
    """Sign the release in a file with a private key; refused unless all that can be checked of it adds up."""
    data = read_bytes(path, MAX_BYTES)  # once: what is signed is what was checked
    found = verify_bytes(data, path, ledger)
    if found.problems:
        raise FormatError(f"{os.fspath(path)}: not signed, because it does not add up: {found.problems[0]}")
    return write_signature(path, data, key)


def _check_signature(path: str | os.PathLike[str], data: bytes, key: str | os.PathLike[str]) -> str:
    problem = check_signature(path, data, key)
    if problem is not None:
        raise _Problem(problem)
    return f"the key in {os.fspath(key)} vouches for every byte of it, the anchor of its ledger included"


def _find_respelling(data: bytes, canonical: bytes, path: str | os.PathLike[str]) -> str | None:
    """Where a file is not the bytes that discreet writes for its release; whatever is beside them nobody checks."""
    if data != canonical:
        lines = zip_longest(data.split(b"\n"), canonical.split(b"\n"))
        line = next(i for i, (one, other) in enumerate(lines, 1) if one != other)
        return f"not the same document: line {line} is not as discreet writes it (white space, order or spelling)"
    if packs_more(path, MAX_BYTES):
        return "the gzip file holds more than the document; unpack it, and check that"
    return None


def verify(release: Release, ledger: Ledger | None = None) -> Verification:
    """Check a release against itself, and against the ledger that paid for it if that is given.

    What takes longer than a command may take is not checked, and said not to be: a notebook comes back.
    """
    with limit_time(PATIENCE):
        return _verify(release, ledger)


def _verify(release: Release, ledger: Ledger | None) -> Verification:
    if release.provenance.parts:
        from discreet.judge.publishing.joint import verify_joint

        return verify_joint(release, ledger)
    steps: list[tuple[str, Callable[[], str]]] = [
        ("noise", lambda: _check_noise(release)),
        ("costs", lambda: _check_costs(release)),
        ("answers", lambda: _check_answers(release)),
        ("account", lambda: _check_account(release)),
        ("schema", lambda: _check_schema(release)),
        ("numbers", lambda: _check_numbers(release)),
        ("promise", lambda: _check_promise(release)),
        ("ledger", lambda: _check_ledger(release, ledger)),
    ]
    form = f"a release of version {RELEASE.version}: {_describe_size(release)}"
    return Verification((Check("form", True, form), *(_run(name, step) for name, step in steps)))


def _run(name: str, step: Callable[[], str]) -> Check:
    try:
        return Check(name, True, step())
    except (_Unchecked, OutOfTime) as reason:
        return Check(name, None, str(reason))
    except (DiscreetError, ArithmeticError) as problem:
        return Check(name, False, str(problem))
    except (KeyError, TypeError, AttributeError, ValueError, IndexError, AssertionError) as problem:
        return Check(name, False, f"malformed: {type(problem).__name__} {show(str(problem))}")


def _describe_size(release: Release) -> str:
    count = len(release.provenance.measurements)
    return f"{len(release.network.declared)} attributes, {count} measured table{'s' * (count != 1)}"


def _check_noise(release: Release) -> str:
    """Each table's noise is wide enough for what it cost: ε ≥ Δ/scale, ρ ≥ Δ²/2σ²."""
    known = release.provenance
    for found in known.measurements:
        if found.unit != known.unit:
            raise _Problem(f"{name_table(found)} protects {found.unit}, the release {known.unit}")
    for problem in check_noise(known.measurements):
        raise _Problem(problem)
    if not known.measurements:
        return "no table was measured; the learner is held to its noise when it is run again"
    return f"every table has at least the noise that it paid for ({known.unit})"


def _check_costs(release: Release) -> str:
    """The tables of a spend cost what the spend says, and the spends what the release says."""
    known = release.provenance
    whole = require_finite(known.cost)
    costs = [require_finite(found.cost) for found in known.measurements]
    debits = known.statement.debits if known.statement is not None else ()
    at = 0
    for debit in debits:
        if debit.tables:
            part = _add(costs[at : at + debit.tables], whole)
            at += debit.tables
            if part != debit.cost:
                raise _Problem(f"the tables of {show(debit.request)} cost {part}, not {debit.cost}")
    total = _add([debit.cost for debit in debits] if debits else costs, whole)
    if total != whole:
        raise _Problem(f"the parts cost {total} together, the release says {whole}")
    if debits and at != len(costs):
        raise _Problem(f"the spends list {at} tables, the release has {len(costs)}")
    return f"the costs add up to exactly {whole}"


def _add(amounts: Sequence[Finite], like: Finite) -> Budget:
    total: Budget = type(like).zero()
    for amount in amounts:
        total = total + amount
    return total


def _check_answers(release: Release) -> str:
    """The digest of each spend is that of the published tables, byte for byte as the ledger keeps them.

    Choices are held against their digests when the learner is run again, for a table does not say which it was.
    """
    known = release.provenance
    debits = known.statement.debits if known.statement is not None else ()
    if not debits:
        raise _Unchecked("the release does not list its spends")
    at = 0
    for debit in debits:
        tables = known.measurements[at : at + debit.tables]
        at += debit.tables
        stored = json.dumps([found.to_json() for found in tables]).encode()
        if debit.tables and hashlib.sha256(stored).hexdigest() != debit.digest:
            raise _Problem(f"the tables of {show(debit.request)} are not those that were drawn and stored")
    strange = [debit for debit in debits if debit.verb not in REPLAYED_VERBS]
    if strange:
        what = f"{show(strange[0].request)} ({show(strange[0].verb)})"
        raise _Unchecked(f"the answer to {what} is no table that could be held against its digest")
    count = sum(1 for debit in debits if debit.tables)
    if not count:
        return "no table was measured; other answers are held against their digests when the learner is run again"
    return f"the tables are those of {count} stored answer{'s' * (count != 1)}"


def _check_account(release: Release) -> str:
    """cost ≤ spent ≤ budget, all of one kind and for one unit; the loss is what was spent, or infinite."""
    known = release.provenance
    said = known.statement
    if said is None:
        raise _Unchecked("the release says nothing about an account")
    cost, spent, loss = require_finite(known.cost), said.spent, said.loss
    if said.unit != known.unit:
        raise _Problem(f"the account protects {said.unit}, the release {known.unit}")
    if not cost <= spent:
        raise _Problem(f"the release cost {cost}, but only {spent} was spent from the account")
    if not spent <= said.whole:
        raise _Problem(f"{spent} was spent of {_name_budget(said)}")
    if not isinstance(loss, Infinite) and loss != spent:
        raise _Problem(f"the loss is stated as {loss}, but {spent} was spent")
    return f"{cost} of this release is part of {spent} spent, of {_name_budget(said)}"


def _name_budget(said: Statement) -> str:
    bought = "" if said.allowance is None else f"the {said.allowance} that is bought by "
    return f"{bought}a budget of {said.budget}"


def _check_schema(release: Release) -> str:
    """The fingerprint that was debited is that of the published schema."""
    said = release.provenance.statement
    if said is None or not said.schema:
        raise _Unchecked("the release does not say which schema was paid for")
    text = json.dumps(release.network.declared.to_json(), sort_keys=True)
    if hashlib.sha256(text.encode()).hexdigest() != said.schema:
        raise _Problem("the schema is not the one that the answers were paid for")
    return "the schema is the one that the answers were paid for"


def _check_numbers(release: Release) -> str:
    """The learner, run again on the published tables, gives the published graph, tables, errors and details."""
    network, known = release.network, release.provenance
    obstacle = find_obstacle(known)
    if obstacle is not None:
        raise _Unchecked(obstacle)
    try:
        compare_networks(replay(network), network)
    except OutOfTime:
        raise
    except DiscreetError as problem:
        raise _Problem(f"{problem}{_name_maker(release)}") from None
    return (
        f"{known.learner}, run again on the published tables, gives the same network to all {DIGITS} digits"
    )


def _name_maker(release: Release) -> str:
    """Which version to verify with, where another one than this may have estimated otherwise."""
    maker, here = release.software.get("discreet"), version("discreet")
    if maker is None or maker == here:
        return ""
    otherwise = f"which may estimate otherwise than {here}: verify it with that version"
    return f"; it names discreet {show(maker)} as its maker, {otherwise}"


def compare_networks(again: Network, network: Network) -> None:
    """Refuse a published network that is not the one that was derived again, to every published digit."""
    known = network.provenance
    assert again.provenance is not None and known is not None
    if again.dag != network.dag:
        raise _Problem("the learner finds another graph from these answers")
    if json.dumps(again.schema.to_json()) != json.dumps(network.schema.to_json()):
        raise _Problem("the attributes and levels that the encoding adds are not those that it derives")
    for mine, published in zip(again.cpts, network.cpts, strict=True):
        at = find_strange(published.values, mine.values)
        if at is not None:
            raise _Problem(
                f"the table of {show(mine.axes[-1])} does not follow from the measurements: "
                f"it holds {published.values.flat[at]!s} where {round_number(mine.values.flat[at])} is derived"
            )
    for what, mine_, published_ in (
        ("the predicted errors", dict(again.provenance.predicted_error), dict(known.predicted_error)),
        ("the details of the learner", dict(again.provenance.details), dict(known.details)),
    ):
        different = next(_compare(mine_, published_), None)
        if different is not None:
            raise _Problem(f"{what} do not follow from the measurements: {different}")


def _compare(mine: object, published: object, where: str = "") -> Iterator[str]:
    """Where two values of JSON differ: numbers by a digit that is published, keys in their order."""
    if isinstance(mine, Mapping) and isinstance(published, Mapping):
        if list(mine) != list(published):
            yield f"{where or 'the whole'} has other keys, or in another order"
            return
        for key in mine:
            yield from _compare(mine[key], published[key], f"{where}, {key}" if where else str(key))
    elif (
        isinstance(mine, list | tuple) and isinstance(published, list | tuple) and len(mine) == len(published)
    ):
        for i, (one, other) in enumerate(zip(mine, published, strict=True)):
            yield from _compare(one, other, f"{where}, {i + 1}")
    elif isinstance(mine, float) and isinstance(published, float):
        if repr(float(mine)) != repr(published) and not is_published(published, mine):
            yield f"{where} is {published}, not {round_number(mine)}"
    elif mine != published or type(mine) is not type(published):
        yield f"{where} is {show(published)}, not {show(mine)}"


def _check_promise(release: Release) -> str:
    wanted = state_promise(release.provenance)
    if release.promise not in (wanted, wanted.replace(SIMULATED, ONCE_SIMULATED)):
        raise _Problem(f"the words do not say what the numbers say; they should be: {wanted}")
    return "the words say what the numbers say"


def _check_ledger(release: Release, ledger: Ledger | None) -> str:
    """The ledger is whole, has the release's head in its chain, and at that point says what the release says."""
    from discreet.core.chain import Anchor

    if ledger is None:
        raise _Unchecked("no ledger was given; with --ledger the release is held against it")
    said = release.provenance.statement
    if said is None:
        raise _Problem("the release names no ledger")
    if said.ledger != ledger.id:
        raise _Problem(f"the release was paid for from ledger {show(said.ledger)}, not {ledger.id!r}")
    verdict = ledger.verify(Anchor(said.events, said.head))
    if not verdict.sound:
        raise _Problem(verdict.problems[0])
    requests = [debit.request for debit in said.debits]
    known = {entry.request for entry in ledger.entries(said.account)}
    strange = [request for request in requests if request not in known]
    if strange:
        raise _Problem(f"the ledger has no spend {show(strange[0])}")
    kept = ledger.state(said.account, requests, said.rows)
    different = next(_compare(kept.to_json(), said.to_json()), None)
    if different is not None:
        raise _Problem(f"the ledger says otherwise: {different}")
    _check_words(release, said.account, ledger)
    return f"the ledger is sound and holds all of the release's spends ({len(requests)})"


def _check_words(release: Release, account: str, ledger: Ledger) -> None:
    """The custodian's words and the versions of software are those that the ledger remembers of this release.

    A learner that was given an airlock by other code leaves no such memory: then nobody can have said anything.
    """
    request = str(release.provenance.details.get("request"))
    made, worded = mark_words(request, describe_words(release.about, release.software), ledger.key)
    if account in ledger.find_source([made]):
        if account not in ledger.find_source([worded]):
            raise _Problem(
                "the custodian's words or the versions of software are not those that it was made with"
            )
    elif release.about is not None:
        raise _Problem("the ledger knows of no words that the custodian gave with this release")
