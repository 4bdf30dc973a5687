"""Releases among others: what one says to catalogues, and one release from those of several custodians."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from discreet.doors.release import Release, SchemaLike, read_dag, read_schema
from discreet.networks.formats.release import Release as Document
from discreet.networks.formats.release import find_document
from discreet.values.budget import choose_budget
from discreet.values.errors import DataError, FormatError
from discreet.values.unit import Unit

if TYPE_CHECKING:
    from discreet.learning.custodians.agreement import Agreement
    from discreet.learning.custodians.combination import Part
    from discreet.values.about import About
    from discreet.values.text import Number


def describe(
    release: str | os.PathLike[str],
    form: str = "text",
    *,
    about: About | Mapping[str, str] | str | os.PathLike[str] | None = None,
    rows: str | os.PathLike[str] | None = None,
) -> str:
    """What a release claims, as a page of text, "json", or a record for others: "registry", "croissant", "json-ld".

    `about` are the custodian's words in place of those in the release, `rows` synthetic rows that Croissant describes,
    too. A form that needs words that nobody has said is refused, and so is a release that does not add up. One that
    cannot be checked says so in the text, and has no record.
    """
    from discreet.judge.claim import state_claim
    from discreet.judge.publishing.croissant import describe_croissant, describe_dataset
    from discreet.judge.publishing.registry import format_record, make_record
    from discreet.judge.trust.doubt import read_release_with_doubt
    from discreet.values.about import About

    forms = ("text", "json", "registry", "croissant", "json-ld")
    if form not in forms:
        raise FormatError(f"the format must be one of {', '.join(forms)}, not {form!r}")
    words = About.read(about)
    found, doubt = read_release_with_doubt(release)
    if form == "text":
        claimed = state_claim(found, words).explain()
        return (
            f"Not verified: {doubt}. Whether what follows is so, nobody can tell.\n\n{claimed}"
            if doubt
            else claimed
        )
    if doubt and form != "json":
        raise FormatError(f"there is no record of what cannot be verified: {doubt}")
    if form == "registry":
        return format_record(make_record(found, words))
    documents: dict[str, Callable[[], dict[str, Any]]] = {
        "json": lambda: {**state_claim(found, words).to_json(), **({"not verified": doubt} if doubt else {})},
        "croissant": lambda: describe_croissant(
            found, Path(release), words, None if rows is None else Path(rows)
        ),
        "json-ld": lambda: describe_dataset(found, words),
    }
    return json.dumps(documents[form](), indent=2, ensure_ascii=False)


def agree(
    custodians: Sequence[str],
    schema: SchemaLike,
    graph: Any,
    *,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    rows: int = 10_000,
    unit: Unit | str | None = None,
    person: str | None = None,
    at_most: int | str | None = None,
    per_person: str | None = None,
    noise: str | None = None,
) -> Agreement:
    """A public plan for several custodians, by which each measures its own rows; write it, and share the file.

    `custodians` are the names of their accounts, `rows` a guess of how many rows they have together.
    """
    from discreet.doors.feasible import require_meaningful, require_possible
    from discreet.learning.custodians.agreement import Agreement

    declared = read_schema(schema)
    if graph is None:
        raise DataError("custodians can only agree on a graph that is given; a search has no plan to share")
    dag = read_dag(graph, declared)
    require_possible(declared, dag)
    spend = choose_budget(epsilon=epsilon, delta=delta, rho=rho)
    require_meaningful(spend)
    protected = Unit.choose(unit, person, at_most, per_person) or Unit.ADD_REMOVE
    return Agreement.make(declared, dag, custodians, spend=spend, unit=protected, noise=noise, rows=rows)


def combine(
    parts: Sequence[Document | str | os.PathLike[str]],
    *,
    disjoint: bool = False,
    without: Sequence[str] = (),
    keys: Sequence[str | os.PathLike[str]] = (),
    about: About | Mapping[str, str] | str | os.PathLike[str] | None = None,
) -> Release:
    """One release from those of several custodians, who measured by one plan: counts and noises add up.

    Each part is verified first; with the custodians' public `keys`, each must be signed by another of them.
    `disjoint` is the custodians' word that nobody is in two tables: then everybody has one custodian's promise, else
    promises add up. `without` names custodians of the plan who dropped out.
    """
    from discreet.judge.verify import PATIENCE
    from discreet.learning.custodians.combination import combine_parts
    from discreet.networks.formats.release import make_release
    from discreet.values.about import About
    from discreet.values.patience import limit_time

    with limit_time(PATIENCE):
        found = _check_parts(parts, keys)
        made = make_release(combine_parts(found, disjoint=disjoint, without=without), About.read(about))
    return Release(made.network, made.promise, made.software, made.about)


def _check_parts(
    parts: Sequence[Document | str | os.PathLike[str]], keys: Sequence[str | os.PathLike[str]]
) -> list[Part]:
    """The parts, each verified once, however many keys there are, and each signed by a key of its own."""
    from discreet.judge.trust.doubt import check_file
    from discreet.judge.verify import verify as check
    from discreet.learning.custodians.combination import Part

    found: list[Part] = []
    signed: dict[bytes, str] = {}
    for number, given in enumerate(parts, 1):
        if isinstance(given, Document):
            if keys:
                raise FormatError("a signature is for the bytes of a file; give the paths of the parts")
            part, source, checked, data = given, f"part {number}", check(given), b""
        else:
            path, source = find_document(given), os.fspath(given)
            once = check_file(path)
            part, checked, data = once.release, once.found, once.data
        if not checked.sound:
            raise FormatError(f"{source}: refused, {(*checked.problems, checked.conclude())[0]}")
        if keys:
            other = signed.setdefault(_find_signer(path, data, keys), source)
            if other != source:
                raise FormatError(f"{source} and {other} are signed by one key; each custodian has its own")
        found.append(Part(source, part.network))
    return found


def _find_signer(path: str | os.PathLike[str], data: bytes, keys: Sequence[str | os.PathLike[str]]) -> bytes:
    """The public key, of those that are given, that vouches for every byte of a part; refused if none does."""
    from discreet.networks.formats.signature import check_signature, read_public

    problems = []
    for key in keys:
        problem = check_signature(path, data, key)
        if problem is None:
            return read_public(key).public_bytes_raw()
        problems.append(problem)
    raise FormatError(f"{os.fspath(path)}: refused, signature: {problems[0]}")


def read_plan(plan: Agreement | str | os.PathLike[str], account: str | None, *others: object) -> Agreement:
    """The plan that custodians share; refused beside what it says itself, or for an account that it does not name."""
    from discreet.learning.custodians.agreement import Agreement

    if any(value is not None for value in others):
        raise FormatError("a plan has its own schema, graph, learner and unit: leave them out")
    agreed = plan if isinstance(plan, Agreement) else Agreement.read(plan)
    agreed.require_custodian(account)
    return agreed
