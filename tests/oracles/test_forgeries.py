"""Forgeries whose digests and words were mended to fit: alone they add up; neither ledger nor key lets them pass."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

import discreet as dc
from _forgeries import CHAIN, FORGERIES, ROWS, SCHEMA, forge, make_clinic, passes
from discreet.doors.cli import main
from discreet.judge.verify import ALONE
from discreet.networks.formats.signature import make_keys, name_public, name_signature
from discreet.values.errors import DiscreetError


@pytest.fixture(scope="module")
def clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with more spends than the release's and a reveal, signed releases, and the keys."""
    folder = tmp_path_factory.mktemp("clinic")
    make_clinic(folder)
    return folder


def test_there_are_thirty_eight_and_most_of_their_kinds_pass_alone() -> None:
    assert len(FORGERIES) == 38
    assert sum(forgery.alone for forgery in FORGERIES.values()) == 19


@pytest.mark.parametrize("name", FORGERIES)
def test_no_forgery_passes_with_the_ledger_or_with_the_key(clinic: Path, tmp_path: Path, name: str) -> None:
    file = forge(clinic, name, tmp_path)
    assert passes(file) is FORGERIES[name].alone
    assert not passes(file, ledger=clinic / "ledger")
    assert not passes(file, key=clinic / "custodian.key.pub")
    if FORGERIES[name].alone:
        assert dc.verify(file).conclude() == ALONE
        told = dc.verify(file, key=clinic / "custodian.key.pub").problems
        assert len(told) == 1 and told[0].startswith("signature: ")


def test_what_passes_alone_stands_in_the_documents() -> None:
    page = (Path(__file__).parents[2] / "docs" / "security.md").read_text("utf-8")
    for name, forgery in FORGERIES.items():
        line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
        assert line == f"| {name} | {'passes' if forgery.alone else 'found'} | found | found |"


def test_words_and_versions_are_those_of_the_release(clinic: Path, tmp_path: Path) -> None:
    """A release that was made a second time with other words is the custodian's too; a stranger's words are not."""
    again = dc.release(
        ROWS, SCHEMA, CHAIN, epsilon=1, learner="independent", options={"prior": 0.5}, ledger=clinic / "ledger",
        account="clinic", about={"title": "A clinic, better said"},
    )  # fmt: skip
    assert again.receipt is not None and not again.receipt.paid
    assert again.verify(clinic / "ledger").sound
    assert dc.verify(clinic / "release.json", clinic / "ledger").sound


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
