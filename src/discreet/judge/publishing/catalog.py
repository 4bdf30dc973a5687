"""A folder of releases as a static site: one index page with the promise, pages, files and checksums of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from discreet.judge.claim import state_claim
from discreet.judge.report_parts.page import assemble
from discreet.judge.trust.doubt import check_file
from discreet.judge.trust.folder import DOCUMENT, check_folder
from discreet.judge.verify import OPTIONAL, PATIENCE, Verification
from discreet.networks.formats.documents import MAX_BYTES, load_strictly
from discreet.networks.formats.made_from import digest_file
from discreet.networks.formats.release import RELEASE, Release
from discreet.values.errors import FormatError
from discreet.values.files import read_text, require_own_file, write_text
from discreet.values.patience import limit_time

if TYPE_CHECKING:
    from discreet.core.ledger import Ledger

STATEMENT, CROISSANT = "statement.txt", "croissant.json"
SUMS = "SHA256SUMS"
PUBLISHED = ("network.bif", "report.html", "explorer.html", CROISSANT)
AGAIN = "make it again: discreet statement --format croissant"
PAGES = {"explorer.html": "Explorer", "report.html": "Report"}


@dataclass(frozen=True, slots=True)
class Entry:
    """One release of a catalogue."""

    path: Path
    release: Release
    checked: Verification

    @property
    def title(self) -> str:
        """What the custodian calls it, or its account and its folder, for many are named release.json."""
        said = self.release.about.title if self.release.about is not None else ""
        place = self.path.parent.name if self.path.name == DOCUMENT else self.path.name
        return said or f"{self.release.provenance.name}: {place or self.path.name}"

    @property
    def day(self) -> str:
        """The day of its last debit."""
        days = [debit.day for said in self.release.provenance.statements for debit in said.debits]
        return max(days, default="")


@dataclass(frozen=True, slots=True)
class Catalog:
    """All releases of a folder, the newest first, and what the ledger has paid for beside them."""

    folder: Path
    entries: tuple[Entry, ...]
    beside: tuple[str, ...] = ()
    """Spends of the ledger's accounts that no release here lists."""
    written: tuple[Path, ...] = ()
    strange: tuple[Path, ...] = ()
    """Other files in the folder, which nobody has looked at and a host would publish all the same."""


def write_catalog(folder: Path, title: str, ledger: Ledger | None = None) -> Catalog:
    """Write the index page of all releases in a folder, a statement beside each, and the checksums of all files.

    Each is verified, with the files beside it and the `ledger` if it is given; one that does not add up is refused, or
    that nobody could check: a catalogue vouches. All of it has the time that a command may take.
    """
    if not folder.is_dir():
        raise FormatError(f"{folder}: no such folder")
    with limit_time(PATIENCE):
        entries = [_check_entry(path, ledger) for path in _find_releases(folder)]
    if not entries:
        raise FormatError(f"{folder}: there is no release in it, nor one folder down")
    entries.sort(key=lambda entry: (entry.day, str(entry.path)), reverse=True)
    beside = () if ledger is None else _list_beside(entries, ledger)
    written = []
    for entry in entries:
        place = _name_statement(entry.path)
        write_text(place, state_claim(entry.release).explain() + "\n")
        written.append(place)
    index = folder / "index.html"
    write_text(index, make_index(Catalog(folder, tuple(entries), beside), title))
    sums = folder / SUMS
    files = [index, *(file for entry in entries for file in _list_files(entry.path))]
    lines = [f"{digest_file(file)}  {file.relative_to(folder).as_posix()}" for file in dict.fromkeys(files)]
    write_text(sums, "\n".join(sorted(lines, key=lambda line: line[66:])) + "\n")
    known = {index, sums, *files}
    others = (file for file in folder.rglob("*") if file not in known)
    strange = tuple(sorted(file for file in others if file.is_file() or file.is_symlink()))
    return Catalog(folder, tuple(entries), beside, (index, sums, *written), strange)


def _check_entry(path: Path, ledger: Ledger | None) -> Entry:
    require_own_file(path)
    once = check_file(path, lambda release: _choose(release, ledger))
    release, checked = once.release, once.found
    if checked.sound and path.name == DOCUMENT:
        checked = check_folder(path.parent, checked)
        _check_croissant(release, path.with_name(CROISSANT))
    if checked.problems:
        raise FormatError(f"{path}: not listed, because it does not add up: {checked.problems[0]}")
    if not checked.sound:
        missing = next(one for one in checked.checks if one.holds is None and one.name not in OPTIONAL)
        raise FormatError(f"{path}: not listed, because {missing.name} could not be checked: {missing.words}")
    return Entry(path, release, checked)


def _check_croissant(release: Release, path: Path) -> None:
    """Metadata that repeats the promise and the digests of the files beside it; the custodian's words are its own."""
    if not os.path.lexists(path):
        return
    require_own_file(path)
    read = load_strictly(read_text(path, MAX_BYTES))
    told = read if isinstance(read, dict) else {}
    listed = told.get("distribution")
    files = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    digests = {one["name"]: one.get("sha256") for one in files if isinstance(one.get("name"), str)}
    if told.get("rai:personalSensitiveInformation") != release.promise or DOCUMENT not in digests:
        raise FormatError(f"{path}: not listed, because it describes another release; {AGAIN}")
    for beside in sorted(path.parent.iterdir()):
        if beside.name not in digests:
            continue
        require_own_file(beside)
        if digest_file(beside) != digests[beside.name]:
            raise FormatError(f"{path}: not listed, because {beside.name} is another file by now; {AGAIN}")


def make_index(catalog: Catalog, title: str) -> str:
    """The index page: it fetches nothing and runs nothing; its links stay within the folder."""
    count = len(catalog.entries)
    parts = [
        f"<p class='kicker'>{count} private release{'s' * (count != 1)}</p><h1>{escape(title)}</h1>",
        *(_write_entry(catalog.folder, entry) for entry in catalog.entries),
    ]
    if catalog.beside:
        listed = "".join(f"<li>{escape(line)}</li>" for line in catalog.beside)
        parts.append(
            "<h2>Paid for, and not listed here</h2><p>The promise of an account covers these too.</p>"
            f"<ul>{listed}</ul>"
        )
    parts.append(
        f"<footer>Checksums of all files: <a href='{SUMS}'>{SUMS}</a>. Check one release with <code>discreet verify"
        "</code>, all files with <code>sha256sum -c</code>.</footer>"
    )
    return assemble(title, parts)


def _write_entry(folder: Path, entry: Entry) -> str:
    rows = []
    for file in _list_files(entry.path):
        name, digest = file.relative_to(folder).as_posix(), digest_file(file)
        rows.append(
            f"<tr><td><a href='{quote(name)}'>{escape(file.name)}</a></td>"
            f"<td class='amount'>{file.stat().st_size:,} B</td><td class='hash'><code>{digest}</code></td></tr>"
        )
    links = [
        f"<a href='{quote((entry.path.parent / name).relative_to(folder).as_posix())}'>{label}</a>"
        for name, label in PAGES.items()
        if entry.path.name == DOCUMENT and (entry.path.parent / name).is_file()
    ]
    statement = quote(_name_statement(entry.path).relative_to(folder).as_posix())
    links.append(f"<a href='{statement}'>Statement</a>")
    told = entry.release.about.description if entry.release.about is not None else ""
    return (
        f"<h2>{escape(entry.title)}</h2><p class='note'>{escape(entry.release.provenance.name)} · "
        f"{escape(entry.day)} · {len(entry.release.network.declared.names)} attributes · "
        f"{escape(entry.checked.conclude())}</p>"
        + (f"<p>{escape(told)}</p>" if told else "")
        + f"<p class='promise'>{escape(entry.release.promise)}</p><p>{' · '.join(links)}</p>"
        "<div class='wide'><table><thead><tr><th>file</th><th>size</th><th>SHA-256</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _find_releases(folder: Path) -> list[Path]:
    """The release documents in a folder and in those right below it; other files and linked folders are passed over."""
    found = []
    below = [path for path in folder.glob("*/*.json") if not path.parent.is_symlink()]
    for path in sorted([*folder.glob("*.json"), *below]):
        require_own_file(path)
        try:
            document = load_strictly(read_text(path, MAX_BYTES))
        except FormatError as error:
            raise FormatError(f"{path}: it may be a release, but cannot be read: {error}") from None
        if isinstance(document, dict) and document.get("format") == RELEASE.format:
            found.append(path)
    return found


def _list_files(path: Path) -> list[Path]:
    """What belongs to a release and may be published; whatever else lies in its folder is nobody's to list."""
    named = PUBLISHED if path.name == DOCUMENT else ()
    beside = [path.with_name(name) for name in (f"{path.name}.sig", *named)]
    named_files = (*beside, _name_statement(path))
    return [path, *(file for file in named_files if file.is_file() and not file.is_symlink())]


def _name_statement(path: Path) -> Path:
    return path.with_name(STATEMENT) if path.name == DOCUMENT else path.with_name(f"{path.stem}.{STATEMENT}")


def _choose(release: Release, ledger: Ledger | None) -> Ledger | None:
    """The ledger, if it paid for this release or a part of it."""
    mine = ledger is not None and any(said.ledger == ledger.id for said in release.provenance.statements)
    return ledger if mine else None


def _list_beside(entries: Sequence[Entry], ledger: Ledger) -> tuple[str, ...]:
    listed = {
        (said.account, debit.request)
        for entry in entries
        for said in entry.release.provenance.statements
        if said.ledger == ledger.id
        for debit in said.debits
    }
    accounts = dict.fromkeys(account for account, _ in sorted(listed))
    return tuple(
        f"{account}: {entry.request}, {entry.cost}"
        for account in accounts
        for entry in ledger.entries(account)
        if (account, entry.request) not in listed
    )
