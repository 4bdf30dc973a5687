"""A folder that a release was written into: each file is what discreet makes of the document, byte for byte."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from discreet.judge.replay import replay_posterior
from discreet.judge.trust.verification import Check, Verification
from discreet.learning.learner import OF_POSTERIORS
from discreet.networks.formats.made_from import Origin, digest_file, digest_release, name_origin
from discreet.networks.formats.release import Release, read_release
from discreet.networks.formats.signature import name_signature
from discreet.networks.question import read_levels
from discreet.values.errors import DiscreetError, FormatError, OutOfTime
from discreet.values.files import read_text, require_own_file
from discreet.values.patience import limit_time

DOCUMENT = "release.json"
PAGES = ("report.html", "explorer.html")
NETWORK, POSTERIOR = "network.bif", "posterior.json"
MOST_BYTES = 2**28
"""The longest page that is read."""
MOST_ROWS = 1_000_000
"""The most synthetic rows that are drawn again to see that they are the same."""
ENDINGS = (".csv", ".parquet", ".arrow", ".feather")


def check_folder(folder: Path, found: Verification) -> Verification:
    """What was found about the document in a folder, and about each file beside it."""
    if not found.sound:  # what is made of a document that does not add up is worth nothing either
        words = "the files beside the document were not looked at, because the document does not add up"
        return Verification((*found.checks, Check("folder", None, words)))
    release = read_release(folder / DOCUMENT)
    signature = name_signature(folder / DOCUMENT).name
    checks, strange = [], []
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise FormatError(f"{folder}: cannot be read: {error.strerror}") from None
    for name in names:
        if name == NETWORK:
            checks.append(_check(folder / name, lambda: _check_network(release, folder / NETWORK)))
        elif name == POSTERIOR and release.provenance.learner in OF_POSTERIORS:
            checks.append(_check(folder / name, lambda: _check_posterior(release, folder / POSTERIOR)))
        elif name in PAGES:
            checks.append(_check(folder / name, lambda name=name: _check_page(release, folder, name)))  # type: ignore[misc]
        elif name.endswith(ENDINGS) and name_origin(folder / name).exists():
            checks.append(_check(folder / name, lambda name=name: _check_rows(release, folder / name)))  # type: ignore[misc]
        elif name not in (DOCUMENT, signature) and not _is_origin(folder, name):
            strange.append(name)
    words = f"{len(checks)} file{'s' * (len(checks) != 1)} beside the document looked at"
    if signature in names and not any(check.name == "signature" for check in found.checks):
        words += f"; not {signature}, for which the custodian's --key is needed"
    if strange:
        words += (
            f"; not of this release, and not looked at: {', '.join(strange[:5])}{', …' * (len(strange) > 5)}"
        )
    return Verification((*found.checks, *checks, Check("folder", True, words)))


def _is_origin(folder: Path, name: str) -> bool:
    rows = name.removesuffix(".from.json")
    return name != rows and rows.endswith(ENDINGS) and (folder / rows).exists()


def _holds(path: Path, text: str) -> bool:
    """Whether a file is these bytes and no others; packed by gzip, or behind a mark, it could hold more."""
    wanted = text.encode()
    try:
        with path.open("rb") as file:
            return file.read(len(wanted) + 1) == wanted
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None


def _check(path: Path, look: Callable[[], tuple[bool | None, str]]) -> Check:
    try:
        require_own_file(path)
        return Check(path.name, *look())
    except OutOfTime as reason:
        return Check(path.name, None, str(reason))
    except DiscreetError as problem:
        return Check(path.name, False, str(problem))


def _check_network(release: Release, path: Path) -> tuple[bool | None, str]:
    from discreet.networks.formats.bif import format_bif

    if _holds(path, format_bif(release.network, digest_release(release))):
        return True, "the network of the document, digit for digit"
    return False, "not the network of the document, digit for digit"


def _check_posterior(release: Release, path: Path) -> tuple[bool | None, str]:
    from discreet.networks.formats.digits import round_posterior
    from discreet.networks.posterior import POSTERIOR as KIND

    with limit_time():
        again = round_posterior(replay_posterior(release.network))
    if _holds(path, KIND.format_text(again.to_json())):
        return True, "the posterior whose means the document holds, byte for byte"
    return False, "not the posterior whose means the document holds"


def _check_page(release: Release, folder: Path, name: str) -> tuple[bool | None, str]:
    from discreet.judge.explorer.page import make_explorer
    from discreet.judge.report import make_page

    text = read_text(folder / name, MOST_BYTES)
    if f'<meta name="discreet-release" content="sha256 {digest_release(release)}">' not in text:
        return False, "made from another document, or by something else"
    again = make_page(release) if name == PAGES[0] else make_explorer(release, report=PAGES[0])
    if _holds(folder / name, again):
        return True, "the page that discreet makes of the document, byte for byte"
    if release.software.get("discreet") == version("discreet"):
        return False, "not the page that discreet makes of the document; make it again and compare"
    return None, "made by another version of discreet, so it could not be made again"


def _check_rows(release: Release, path: Path) -> tuple[bool | None, str]:
    require_own_file(name_origin(path))
    said = Origin.read(name_origin(path))
    if said.release != digest_release(release):
        return False, "drawn from another document"
    if not _holds(name_origin(path), said.format_text()) or any(
        text != " ".join(text.split()) for text in said.given
    ):
        return (
            False,
            f"{name_origin(path).name} is not as discreet writes it (white space, order or spelling)",
        )
    if said.sha256 != digest_file(path):
        return False, "not the rows that were drawn: the file was changed"
    if said.rows > MOST_ROWS:
        return None, f"{said.rows:,} rows; more than {MOST_ROWS:,} are not drawn again"
    with tempfile.TemporaryDirectory(prefix="discreet-rows-") as place:
        again = Path(place) / path.name
        given = read_levels(said.given)
        drawn = release.network.sample(said.rows, rng=said.seed, given=given, balanced=said.balanced)
        drawn.write(again, labels=said.labels)
        if digest_file(again) != said.sha256:
            return False, f"drawn again from the document with the seed {said.seed}, the rows are others"
    return True, f"{said.rows:,} rows that the document gives with the seed {said.seed}, byte for byte"
