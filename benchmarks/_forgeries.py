"""Thirty-eight forged releases, whose digests, sums and words are mended to fit as far as a forger can.

`tests/oracles/test_forgeries.py` holds each of them against the document alone, the ledger and the key; `tough.py`
counts them.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import discreet as dc
from discreet.judge.replay import replay
from discreet.learning.learner import digest_call
from discreet.networks.formats.digits import round_network
from discreet.networks.formats.documents import describe_provenance
from discreet.networks.formats.release import RELEASE, parse_release, state_promise
from discreet.networks.formats.signature import make_keys, name_signature
from discreet.values.errors import DiscreetError
from discreet.values.graph import DAG

SCHEMA = dc.Schema.of({name: ["0", "1"] for name in "abc"})
WIDE = dc.Schema.of({"ward": ["a", "b", "c"], "ill": ["no", "mild", "severe"], "smoke": ["no", "yes"]})
CHANCE = np.random.default_rng(3)
CODES = {name: CHANCE.integers(0, 2, 200) for name in SCHEMA.names}
ROWS = {name: [str(code) for code in codes] for name, codes in CODES.items()}
WIDE_ROWS = {found.name: [found.levels[i] for i in CHANCE.integers(0, found.size, 300)] for found in WIDE}
CHAIN = DAG.build({"a": (), "b": ("a",), "c": ("b",)})
PLAIN, ENCODED = "release.json", "encoded.json"

Change = Callable[[Any], Any]


@dataclass(frozen=True)
class Forgery:
    """What is changed in which document; `alone` says whether it then adds up for a reader without ledger and key."""

    change: Change
    alone: bool
    base: str = PLAIN
    bytes: Callable[[bytes], bytes] | None = None


def make_clinic(folder: Path) -> None:
    """A ledger with more spends than the release's and a reveal, signed releases, and the keys."""
    make_keys(folder / "custodian.key")
    common: dict[str, Any] = {"ledger": folder / "ledger", "account": "clinic"}
    with dc.open_airlock(ROWS, SCHEMA, budget="9", unit="replace-one", create=True, **common) as airlock:
        airlock.measure([("a",)], spend="3")
        airlock.reveal([("a",)], reason="a mistake")
    words = {"title": "A clinic"}
    plain: dict[str, Any] = {"learner": "independent", "options": {"prior": 0.5}, "about": words}
    dc.release(ROWS, SCHEMA, CHAIN, epsilon=1, **plain, **common).write(folder / PLAIN)
    wide: dict[str, Any] = {
        "ledger": folder / "ledger",
        "account": "wide",
        "budget": "epsilon=4",
        "create": True,
    }
    dc.release(
        WIDE_ROWS, WIDE, epsilon=2, learner="privbayes", options={"encoding": "binary", "k": 1}, **wide
    ).write(folder / ENCODED)
    for name in (PLAIN, ENCODED):
        dc.sign(folder / name, folder / "custodian.key", ledger=folder / "ledger")


def forge(clinic: Path, name: str, out: Path) -> Path:
    """Write a forgery, with the signature of the true document beside it; the path of its document."""
    forgery = FORGERIES[name]
    true = clinic / forgery.base
    document = json.loads(true.read_text("utf-8"))
    forgery.change(document)
    text = RELEASE.format_text(document)
    try:  # the words follow, as a careful forger would have them
        if name != "other promises":
            document["promise"] = state_promise(parse_release(text).provenance)
            text = RELEASE.format_text(document)
    except DiscreetError:
        pass
    data = text.encode() if forgery.bytes is None else forgery.bytes(text.encode())
    file = out / ("release.json.gz" if data[:2] == b"\x1f\x8b" else "release.json")
    file.write_bytes(data)
    assert data != true.read_bytes()
    name_signature(file).write_bytes(name_signature(true).read_bytes())
    return file


def passes(file: Path, ledger: Path | None = None, key: Path | None = None) -> bool:
    """Whether `verify` finds that a forgery adds up."""
    try:
        return dc.verify(file, ledger, key=key).sound
    except DiscreetError:
        return False


def _known(document: Any) -> Any:
    return document["provenance"]


def _said(document: Any) -> Any:
    return document["provenance"]["statement"]


def hide_reveal(document: Any) -> None:
    """State what was spent as the loss, as if nobody had looked at the rows."""
    said = _said(document)
    said["loss"] = said["spent"]


def hide_spends(document: Any) -> None:
    """As if the release were all that was ever asked."""
    said = _said(document)
    said["spent"] = said["loss"] = {"epsilon": "1"}


def publish_exact_counts(document: Any) -> None:
    """The true counts, with digests and network that follow from them."""
    hide_reveal(document)
    for table in _known(document)["measurements"]:
        flat = sum((CODES[name] << i for i, name in enumerate(reversed(table["axes"]))), np.zeros(200, int))
        table["counts"] = np.bincount(flat, minlength=2 ** len(table["axes"])).tolist()
    mend(document)


def mend(document: Any) -> None:
    """Digests of the answers as they are now, and all that follows from them."""
    known, at = _known(document), 0
    for spend in known["statement"]["spends"]:
        part = known["measurements"][at : at + spend["tables"]]
        at += spend["tables"]
        if spend["tables"]:
            spend["digest"] = hashlib.sha256(json.dumps(part).encode()).hexdigest()
    follow(document)


def follow(document: Any) -> None:
    """Let the network and all that is derived follow from the forged answers, if they can."""
    again = round_network(replay(parse_release(RELEASE.format_text(document)).network))
    assert again.provenance is not None
    document["network"], document["provenance"] = again.to_json(), describe_provenance(again.provenance)


def smuggle_prior(document: Any) -> None:
    """The true counts as what the custodian "publicly" believes."""
    hide_reveal(document)
    known = _known(document)
    known["details"]["options"] = {"prior": {"a": (1e9 * np.bincount(CODES["a"])).tolist()}}
    known["statement"]["purpose"] = digest_call("independent", known["details"]["options"], CHAIN, 200)
    follow(document)


def change_rows(document: Any) -> None:
    """Another public number of rows."""
    hide_reveal(document)
    known = _known(document)
    known["statement"]["rows"] = 217
    known["statement"]["purpose"] = digest_call("independent", known["details"]["options"], CHAIN, 217)
    follow(document)


def shift_counts(document: Any) -> None:
    """One row moved from a cell to another, and all that follows."""
    hide_reveal(document)
    counts = _known(document)["measurements"][0]["counts"]
    counts[0], counts[-1] = counts[0] + 1, counts[-1] - 1
    mend(document)


def state(**changes: Any) -> Change:
    """Other values in the statement."""

    def change(document: Any) -> None:
        hide_reveal(document)
        _said(document).update(changes)

    return change


def book(**changes: Any) -> Change:
    """Other values in what is said of the ledger."""
    return lambda document: _said(document)["ledger"].update(changes)


def spend(at: int = 0, **changes: Any) -> Change:
    """Other values in a debit."""
    return lambda document: _said(document)["spends"][at].update(changes)


def _relabel(document: Any) -> None:
    derived = next(found for found in document["network"]["schema"]["attributes"] if "_bit" in found["name"])
    derived["levels"][0] = "J. Doe has HIV"


def _rename_level(document: Any) -> None:
    document["network"]["schema"]["attributes"][0]["levels"][0] = "J. Doe was here"


def _hide_digits(document: Any) -> None:
    row = document["network"]["cpts"][0]
    row[0], row[1] = row[0] + 3e-12, row[1] - 3e-12


def _drop_arrow(document: Any) -> None:
    network = document["network"]
    network["parents"][2][1] = []
    network["cpts"][2] = network["cpts"][2][:2]


def _swap_tables(document: Any) -> None:
    tables = _known(document)["measurements"]
    tables[0], tables[1] = tables[1], tables[0]


def _lower_noise(document: Any) -> None:
    for table in _known(document)["measurements"]:
        law = table["law"]
        for key, value in law.items():
            if (
                key != "law"
                and not isinstance(value, bool)
                and str(value).replace("/", "").replace(".", "").isdigit()
            ):
                law[key] = "1/8" if isinstance(value, str) else 0.125


def _cheapen(document: Any) -> None:
    _known(document)["cost"] = {"epsilon": "1/2"}


def _reorder(document: Any) -> None:
    document["software"] = dict(reversed(document["software"].items()))


def _extra_spend(document: Any) -> None:
    spends = _said(document)["spends"]
    spends.append({**spends[-1], "request": "another"})


FORGERIES: dict[str, Forgery] = {
    "a hidden reveal": Forgery(hide_reveal, True),
    "hidden spends": Forgery(hide_spends, True),
    "exact counts": Forgery(publish_exact_counts, True),
    "exact counts as a prior": Forgery(smuggle_prior, True),
    "a row moved": Forgery(shift_counts, True),
    "a larger budget": Forgery(state(budget={"epsilon": "90"}), True),
    "a smaller budget": Forgery(state(budget={"epsilon": "4"}), True),
    "another account": Forgery(state(account="another"), True),
    "another ledger": Forgery(book(id="0" * 32), True),
    "another head": Forgery(book(head="0" * 64), True),
    "fewer events": Forgery(book(events=2), True),
    "more events": Forgery(book(events=10**9), True),
    "a simulation": Forgery(book(durable=False), True),
    "another day": Forgery(spend(day="2020-01-01"), True),
    "other rows": Forgery(change_rows, True),
    "other words": Forgery(lambda d: d.update(about={"title": "Another clinic"}), True),
    "no words": Forgery(lambda d: d.pop("about"), True),
    "words that were not said": Forgery(lambda d: d.update(about={"contact": "me"}), True, ENCODED),
    "other versions": Forgery(lambda d: d["software"].update(numpy="74.111.104.110"), True),
    "a version that is a sentence": Forgery(lambda d: d["software"].update(numpy="J. Doe has HIV"), False),
    "a derived level that is a sentence": Forgery(_relabel, False, ENCODED),
    "a declared level that is a sentence": Forgery(_rename_level, False),
    "digits below those published": Forgery(_hide_digits, False),
    "an arrow less": Forgery(_drop_arrow, False),
    "tables exchanged": Forgery(_swap_tables, False),
    "less noise": Forgery(_lower_noise, False),
    "a lower cost": Forgery(_cheapen, False),
    "a smaller error": Forgery(lambda d: _known(d)["predicted error"].update(a=0.0001), False),
    "another request": Forgery(spend(request="release-0000000000000000"), False),
    "another digest": Forgery(spend(digest="0" * 64), False),
    "a spend more": Forgery(_extra_spend, False),
    "a spend less": Forgery(lambda d: _said(d)["spends"].pop(), False),
    "another unit": Forgery(
        lambda d: (_known(d).update(unit="add-remove"), _said(d).update(unit="add-remove")), False
    ),
    "another option": Forgery(lambda d: _known(d)["details"]["options"].update(prior=0.25), False),
    "other promises": Forgery(lambda d: d.update(promise="Nothing can go wrong."), False),
    "keys in another order": Forgery(_reorder, False),
    "white space": Forgery(lambda d: None, False, bytes=lambda data: data.replace(b", ", b",  ", 7)),
    "a message in the wrapping": Forgery(
        lambda d: None, False, bytes=lambda data: gzip.compress(data, mtime=1_234_567)
    ),
}
"""What forgers have tried: each by its name, with what it does and whether it adds up alone."""
