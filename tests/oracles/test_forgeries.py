"""Forgeries whose digests and words were mended to fit: alone they add up; neither ledger nor key lets them pass."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.judge.replay import replay
from discreet.judge.verify import ALONE
from discreet.learning.learner import digest_call
from discreet.networks.formats.digits import round_network
from discreet.networks.formats.documents import describe_provenance
from discreet.networks.formats.release import RELEASE, parse_release, state_promise
from discreet.networks.formats.signature import make_keys, name_public, name_signature
from discreet.values.errors import DiscreetError
from discreet.values.graph import DAG

SCHEMA = dc.Schema.of({name: ["0", "1"] for name in "abc"})
CHANCE = np.random.default_rng(3)
CODES = {name: CHANCE.integers(0, 2, 200) for name in SCHEMA.names}
ROWS = {name: [str(code) for code in codes] for name, codes in CODES.items()}
CHAIN = DAG.build({"a": (), "b": ("a",), "c": ("b",)})


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with more spends than the release's and a reveal, a signed release, and the keys."""
    folder = tmp_path_factory.mktemp("clinic")
    make_keys(folder / "custodian.key")
    common: dict[str, Any] = {"ledger": folder / "ledger", "account": "clinic"}
    with dc.open_airlock(ROWS, SCHEMA, budget="9", unit="replace-one", create=True, **common) as airlock:
        airlock.measure([("a",)], spend="3")
        airlock.reveal([("a",)], reason="a mistake")
    made = dc.release(
        ROWS, SCHEMA, CHAIN, epsilon=1, learner="independent", options={"prior": 0.5},
        about={"title": "A clinic"}, **common,
    )  # fmt: skip
    made.write(folder / "release.json")
    dc.sign(folder / "release.json", folder / "custodian.key", ledger=folder / "ledger")
    return folder


def hide_reveal(document: Any) -> None:
    said = document["provenance"]["statement"]
    said["loss"] = said["spent"]


def hide_spends(document: Any) -> None:
    hide_reveal(document)
    said = document["provenance"]["statement"]
    said["spent"] = said["loss"] = {"epsilon": "1"}


def publish_exact_counts(document: Any) -> None:
    hide_reveal(document)
    known = document["provenance"]
    for table in known["measurements"]:
        flat = sum((CODES[name] << i for i, name in enumerate(reversed(table["axes"]))), np.zeros(200, int))
        table["counts"] = np.bincount(flat, minlength=2 ** len(table["axes"])).tolist()
    at = 0
    for spend in known["statement"]["spends"]:
        part = known["measurements"][at : at + spend["tables"]]
        at += spend["tables"]
        spend["digest"] = hashlib.sha256(json.dumps(part).encode()).hexdigest()
    follow(document)


def smuggle_prior(document: Any) -> None:
    hide_reveal(document)
    known = document["provenance"]
    known["details"]["options"] = {"prior": {"a": (1e9 * np.bincount(CODES["a"])).tolist()}}
    known["statement"]["purpose"] = digest_call("independent", known["details"]["options"], CHAIN, 200)
    follow(document)


def change_rows(document: Any) -> None:
    hide_reveal(document)
    known = document["provenance"]
    known["statement"]["rows"] = 217
    known["statement"]["purpose"] = digest_call("independent", known["details"]["options"], CHAIN, 217)
    follow(document)


def follow(document: Any) -> None:
    """Let the network and all that is derived follow from the forged answers."""
    again = round_network(replay(parse_release(RELEASE.format_text(document)).network))
    assert again.provenance is not None
    document["network"], document["provenance"] = again.to_json(), describe_provenance(again.provenance)


def state(**changes: Any) -> Callable[[Any], None]:
    def change(document: Any) -> None:
        hide_reveal(document)
        document["provenance"]["statement"].update(changes)

    return change


def book(**changes: Any) -> Callable[[Any], None]:
    return lambda document: document["provenance"]["statement"]["ledger"].update(changes)


FORGERIES: dict[str, Callable[[Any], Any]] = {
    "a hidden reveal": hide_reveal,
    "hidden spends": hide_spends,
    "exact counts": publish_exact_counts,
    "exact counts as a prior": smuggle_prior,
    "a larger budget": state(budget={"epsilon": "90"}),
    "a smaller budget": state(budget={"epsilon": "4"}),
    "another account": state(account="another"),
    "another ledger": book(id="0" * 32),
    "another head": book(head="0" * 64),
    "fewer events": book(events=2),
    "a simulation": book(durable=False),
    "another day": lambda d: d["provenance"]["statement"]["spends"][0].update(day="2020-01-01"),
    "other rows": change_rows,
    "other words": lambda d: d.update(about={"title": "Another clinic"}),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_passes_alone_and_is_found_by_the_ledger_and_by_the_key(
    clinic: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / "release.json"
    document = json.loads((clinic / "release.json").read_text("utf-8"))
    FORGERIES[name](document)
    document["promise"] = state_promise(parse_release(RELEASE.format_text(document)).provenance)
    file.write_text(RELEASE.format_text(document), "utf-8")
    assert file.read_bytes() != (clinic / "release.json").read_bytes()
    name_signature(file).write_bytes(name_signature(clinic / "release.json").read_bytes())
    alone = dc.verify(file)
    assert alone.sound and alone.conclude() == ALONE, alone.problems
    told = dc.verify(file, key=clinic / "custodian.key.pub").problems
    assert len(told) == 1 and told[0].startswith("signature: ")
    # The custodian's own words are the one thing that no ledger knows.
    assert dc.verify(file, clinic / "ledger").sound is (name == "other words")


def test_the_release_itself_passes(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    public, file = str(clinic / "custodian.key.pub"), str(clinic / "release.json")
    assert main(["verify", file, "--key", public]) == 0
    assert capsys.readouterr().out.endswith("it adds up and is signed; it was not held against a ledger\n")
    assert main(["verify", file, "--key", public, "--ledger", str(clinic / "ledger")]) == 0
    assert capsys.readouterr().out.endswith("\nit adds up\n")


def test_signatures_that_are_none(clinic: Path, tmp_path: Path) -> None:
    file, good = tmp_path / "release.json", name_signature(clinic / "release.json").read_text()
    file.write_bytes((clinic / "release.json").read_bytes())
    make_keys(tmp_path / "other.key")
    key = clinic / "custodian.key.pub"
    assert "it is not signed" in dc.verify(file, key=key).problems[0]
    for bad in ("", "no", good + "\n", good.replace("ed25519", "none"), good.replace("==", "=")):
        name_signature(file).write_text(bad)
        assert "is not a signature of discreet" in dc.verify(file, key=key).problems[0]
    dc.sign(file, tmp_path / "other.key")
    assert "is not the signature of this document" in dc.verify(file, key=key).problems[0]
    assert dc.verify(file, key=tmp_path / "other.key.pub").sound
    file.write_bytes(file.read_bytes() + b" ")
    assert len(dc.verify(file, key=tmp_path / "other.key.pub").problems) == 2


def test_keys_are_private_and_never_overwritten(
    clinic: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    private = tmp_path / "my.key"
    assert main(["keys", str(private)]) == 0
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    before = private.read_bytes()
    for name in (private, name_public(private)):
        held = name.read_bytes()
        assert main(["keys", str(private)]) == 2 and name.read_bytes() == held
        name.unlink()
        if name == private:
            assert main(["keys", str(private)]) == 2 and not private.exists()  # the public one is there still
            private.write_bytes(before)
            private.chmod(0o600)
    file = clinic / "release.json"
    kept = name_signature(file).read_bytes()
    private.chmod(0o640)
    assert main(["sign", str(file), "--key", str(private)]) == 2
    assert "chmod 600" in capsys.readouterr().err
    private.chmod(0o600)
    for bad in ((clinic / "custodian.key.pub").read_bytes(), b"", b"\xff" * 99, b"no key"):
        private.write_bytes(bad)
        assert main(["sign", str(file), "--key", str(private)]) == 2
    assert main(["sign", str(file), "--key", str(tmp_path / "none.key")]) == 2
    for wrong in (private, clinic / "custodian.key", tmp_path / "none.key"):
        assert main(["verify", str(file), "--key", str(wrong)]) == 2
    assert "Traceback" not in capsys.readouterr().err
    assert name_signature(file).read_bytes() == kept
    assert os.listdir(tmp_path) == ["my.key"]


def test_what_does_not_add_up_is_not_signed(clinic: Path, tmp_path: Path) -> None:
    file = tmp_path / "release.json"
    file.write_bytes((clinic / "release.json").read_bytes() + b"\n")
    with pytest.raises(DiscreetError, match="does not add up: form: not the same document"):
        dc.sign(file, clinic / "custodian.key")
    assert not name_signature(file).exists()
    with pytest.raises(DiscreetError, match="give the path"):
        dc.verify(dc.read(clinic / "release.json"), key=clinic / "custodian.key.pub")  # type: ignore[arg-type]
