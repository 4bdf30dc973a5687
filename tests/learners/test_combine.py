"""One release of several custodians: it is the sum of its parts, and whatever is not all of its parts is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.learning.custodians.agreement import Agreement
from discreet.networks.formats.release import RELEASE, format_release, parse_release, read_release
from discreet.networks.provenance import join_budgets
from discreet.values import patience
from discreet.values.budget import ZCDP, ApproxDP, Infinite, PureDP, imply_zcdp
from discreet.values.errors import FormatError
from discreet.values.laws.sums import NoiseSum

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # parts from memory say that they are simulations

NAMES = ("north", "south", "west")
AMOUNTS: dict[str, dict[str, Any]] = {"north": {}, "south": {"epsilon": 2}, "west": {"rho": "1/8"}}
"""One follows the plan, one spends more, one has other noise."""
CLINIC = dc.examples.asia()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("custodians")
    dc.agree(NAMES, CLINIC.schema, CLINIC.dag, epsilon=1, rows=900).write(place / "plan.json")
    for i, (name, amount) in enumerate(AMOUNTS.items()):
        rows = CLINIC.sample(300, rng=i).arrow()
        paid = {"ledger": str(place / f"{name}.ledger"), "account": name, "create": True}
        dc.release(rows, plan=place / "plan.json", **paid, **amount).write(place / f"{name}.json")
    return place


def list_parts(place: Path) -> list[Path]:
    return [place / f"{name}.json" for name in NAMES]


def test_the_sum_adds_up_in_counts_noise_cost_and_words(place: Path) -> None:
    made = dc.combine(list_parts(place))
    parts = [read_release(path) for path in list_parts(place)]
    for k, found in enumerate(made.provenance.measurements):
        tables = [part.provenance.measurements[k] for part in parts]
        assert np.array_equal(found.noisy.values, sum(table.noisy.values for table in tables))
        assert found.law == NoiseSum([table.law for table in tables])
        assert found.law.variance == pytest.approx(sum(table.law.variance for table in tables))
    assert made.provenance.cost == imply_zcdp(PureDP(1)) + imply_zcdp(PureDP(2)) + ZCDP("1/8")
    assert "to whoever is in all 3, the promises add up to" in made.promise and "ε = 2" in made.promise
    assert dc.combine(list_parts(place), disjoint=True).provenance.cost == imply_zcdp(PureDP(2))
    assert format_release(parse_release(format_release(made))) == format_release(made)
    assert dc.combine(list_parts(place)[::-1]).promise == made.promise  # the plan has the order


def test_intervals_verification_report_explorer_and_statement_are_those_of_the_sum(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = ["combine", *map(str, list_parts(place)), "--disjoint", "--out", str(place / "all")]
    assert main(told) == 0
    assert "nobody is in two of their tables" in capsys.readouterr().out
    made = dc.read(place / "all")
    answer = made.query("lung", {"smoke": "yes"}, intervals="guaranteed")
    assert answer.lower is not None
    total = made.count({"smoke": "yes"})
    assert total.lower <= total.value <= total.upper
    found = dc.verify(place / "all", ledger=str(place / "south.ledger"))
    assert found.sound and found.unchecked == ("other ledgers",), str(found)
    assert found.conclude().startswith("it adds up, but nobody vouches for what is from 'north', 'west'")
    report = (place / "all" / "report.html").read_text("utf-8")
    assert all(f"<strong>{name}</strong>" in report for name in NAMES)
    assert "north, south, west" in (place / "all" / "explorer.html").read_text("utf-8")
    assert main(["statement", str(place / "all")]) == 0
    assert "added up" in capsys.readouterr().out
    with dc.open_ledger(str(place / "other.ledger"), create=True) as other:
        assert "no part was paid for" in "".join(dc.verify(place / "all", ledger=other).problems)


def spoil(path: Path, change: Callable[[dict[str, Any]], Any], out: Path) -> Path:
    """A changed document as discreet would have written it, so that its spelling gives nothing away."""
    document = json.loads(path.read_text("utf-8"))
    change(document)
    out.write_text(RELEASE.format_text(document), "utf-8")
    return out


FORGERIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a count": lambda d: d["provenance"]["measurements"][0]["counts"].__setitem__(0, 10**6),
    "noise that is too narrow": lambda d: d["provenance"]["measurements"][0]["law"].update(scale="1/9"),
    "the account": lambda d: d["provenance"]["statement"].update(account="east"),
    "the plan": lambda d: d["provenance"]["details"]["options"]["agreed"]["custodians"].append("east"),
    "the network": lambda d: d["network"]["cpts"][0].reverse(),
    "the cost": lambda d: d["provenance"].update(cost={"epsilon": "1/2"}),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_part_is_refused_in_one_line(
    what: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = spoil(place / "north.json", FORGERIES[what], tmp_path / "forged.json")
    told = [
        "combine",
        str(forged),
        str(place / "south.json"),
        str(place / "west.json"),
        "--out",
        str(tmp_path / "x.json"),
    ]
    assert main(told) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {forged}") and error.count("\n") == 1
    assert "white space" not in error
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    ("parts", "more", "what"),
    [
        (["north", "south"], {}, "the part of 'west' is missing; give it, or say --without west"),
        (["north"], {}, "2 or more parts"),
        (["north", "north", "south"], {}, "are both from 'north'"),
        (["north", "south", "west"], {"without": ["west"]}, "said to have dropped out"),
        (["north", "south"], {"without": ["east"]}, "cannot have dropped out"),
    ],
)
def test_missing_and_doubled_parts_are_refused(
    parts: list[str], more: dict[str, Any], what: str, place: Path
) -> None:
    with pytest.raises(FormatError, match=what):
        dc.combine([place / f"{name}.json" for name in parts], **more)


def test_a_custodian_may_drop_out_and_that_is_said(place: Path) -> None:
    made = dc.combine([place / "west.json", place / "north.json"], without=["south"])
    assert made.provenance.details["without"] == ["south"] and made.verify().sound
    assert len(made.provenance.parts) == 2 and "2 custodians" in made.promise


def test_parts_of_other_plans_schemas_and_units_are_refused(place: Path) -> None:
    rows = CLINIC.sample(99, rng=5).arrow()
    plain = dc.release(rows, CLINIC.schema, CLINIC.dag, epsilon=1, account="west")
    with pytest.raises(FormatError, match="not made by a plan that is shared"):
        dc.combine([place / "north.json", place / "south.json", plain])
    other = dc.agree([*NAMES, "east"], CLINIC.schema, CLINIC.dag, epsilon=1)
    with pytest.raises(FormatError, match="made by another plan"):
        dc.combine([place / "north.json", place / "south.json", dc.release(rows, plan=other, account="west")])
    moved = dc.agree(NAMES, CLINIC.schema, CLINIC.dag, epsilon=1, rows=900, unit="replace-one")
    part = dc.release(rows, plan=moved, account="west")
    with pytest.raises(FormatError, match=r"another plan|protects replace-one"):
        dc.combine([place / "north.json", place / "south.json", part])
    names = [f"{name}2" for name in CLINIC.schema.names]
    renamed = dc.Schema.of(
        {new: list(CLINIC.schema[old]) for new, old in zip(names, CLINIC.schema.names, strict=True)}
    )
    dag = dc.DAG.build(
        {f"{name}2": [f"{p}2" for p in CLINIC.dag.parents_of(name)] for name in CLINIC.dag.nodes}
    )
    strange = dc.agree(NAMES, renamed, dag, epsilon=1, rows=900)
    foreign = dc.release(rows.rename_columns(names), plan=strange, account="west")
    with pytest.raises(FormatError, match="another"):
        dc.combine([place / "north.json", place / "south.json", foreign])


def test_public_numbers_of_rows_add_up() -> None:
    plan = dc.agree(["a", "b"], CLINIC.schema, CLINIC.dag, epsilon=1, unit="replace-one")
    parts = [
        dc.release(CLINIC.sample(n, rng=n).arrow(), plan=plan, account=name)
        for name, n in (("a", 50), ("b", 70))
    ]
    made = dc.combine(parts)
    assert made.provenance.rows == 120 and made.verify().sound


def test_signatures_tell_a_forgery_that_adds_up(place: Path, tmp_path: Path) -> None:
    """A part that somebody made of other rows adds up; only the custodian's key can tell."""
    from discreet.networks.formats.signature import make_keys

    keys = []
    for name in NAMES:
        shutil.copy(place / f"{name}.json", tmp_path / f"{name}.json")
        keys.append(make_keys(tmp_path / f"{name}.key"))
        dc.sign(tmp_path / f"{name}.json", tmp_path / f"{name}.key")
    assert dc.combine([tmp_path / f"{name}.json" for name in NAMES], keys=keys).verify().sound
    forged = dc.release(CLINIC.sample(99, rng=9).arrow(), plan=place / "plan.json", account="west")
    forged.write(tmp_path / "west.json")
    with pytest.raises(FormatError, match=r"west\.json: refused, signature"):
        dc.combine([tmp_path / f"{name}.json" for name in NAMES], keys=keys)
    dc.sign(tmp_path / "west.json", tmp_path / "north.key")
    with pytest.raises(FormatError, match=r"west\.json and .*north\.json are signed by one key"):
        dc.combine([tmp_path / f"{name}.json" for name in NAMES], keys=keys)


def test_a_part_is_read_once_for_content_check_and_signature(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A part of other rows, exchanged for the signed one after it was read, does not pass for it."""
    from discreet.judge.trust import doubt
    from discreet.networks.formats.signature import make_keys
    from discreet.values.files import read_bytes

    path, key = tmp_path / "north.json", make_keys(tmp_path / "north.key")
    signed = shutil.copy(place / "north.json", path).read_bytes()
    dc.sign(path, tmp_path / "north.key")
    shutil.copy(place / "south.json", path)

    def read_and_exchange(given: Path, limit: int) -> bytes:
        found = read_bytes(given, limit)
        path.write_bytes(signed)
        return found

    monkeypatch.setattr(doubt, "read_bytes", read_and_exchange)
    with pytest.raises(FormatError, match=r"north\.json: refused, signature"):
        dc.combine([path], keys=[key])


def test_parts_that_take_too_long_are_refused(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers wrote them: all of them together have the time that `discreet verify` has."""
    ticks = iter(range(10**6))
    monkeypatch.setattr(patience.time, "process_time", lambda: float(next(ticks)))
    monkeypatch.setenv("DISCREET_SECONDS", "10")
    with pytest.raises(FormatError, match=r"\.json: refused, nothing is wrong .* not checked: numbers"):
        dc.combine(list_parts(place))


def test_one_answer_under_two_names_is_refused(place: Path, tmp_path: Path) -> None:
    """A part that was copied and renamed adds up by itself; its rows would count twice."""
    copied = tmp_path / "west.json"
    text = (place / "south.json").read_text("utf-8")
    copied.write_text(text.replace('"account": "south"', '"account": "west"'), "utf-8")
    assert dc.verify(copied).sound
    with pytest.raises(FormatError, match=r"west\.json and .*south\.json have the same noisy counts"):
        dc.combine([place / "north.json", place / "south.json", copied])


TAMPERED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a sum": lambda d: d["provenance"]["measurements"][0]["counts"].__setitem__(0, 5000),
    "a part's count": lambda d: d["provenance"]["parts"][1]["measurements"][0]["counts"].__setitem__(0, 5000),
    "a law": lambda d: d["provenance"]["measurements"][0]["law"]["of"].pop(),
    "the cost": lambda d: d["provenance"].update(cost={"rho": "1/100"}),
    "a part left out": lambda d: d["provenance"]["parts"].pop(),
    "people": lambda d: d["provenance"]["details"].update(people="nobody is in two tables"),
    "who dropped out": lambda d: d["provenance"]["details"].update(without=["x"]),
    "the words": lambda d: d.update(promise=d["promise"].replace("3 custodians", "4 custodians")),
    "the network": lambda d: d["network"]["cpts"][0].reverse(),
    "the learner": lambda d: d["provenance"].update(learner="planned"),
    "an error": lambda d: d["provenance"]["predicted error"].update(lung=0.5),
    "parts of a part": lambda d: d["provenance"]["parts"][0].update(parts=[]),
}


@pytest.mark.parametrize("what", TAMPERED)
def test_a_combined_release_that_was_changed_is_found(what: str, place: Path, tmp_path: Path) -> None:
    whole = place / "whole.json"
    if not whole.exists():
        dc.combine(list_parts(place)).write(whole)
    found = dc.verify(spoil(whole, TAMPERED[what], tmp_path / "changed.json"))
    problems = [check.name for check in found.checks if check.holds is False]
    assert set(problems) - {"form"} or what == "parts of a part", str(found)


def test_plans_are_read_strictly(place: Path, tmp_path: Path) -> None:
    plan = Agreement.read(place / "plan.json")
    assert plan.custodians == NAMES and sum(plan.shares) == 1
    changes: dict[str, Callable[[dict[str, Any]], Any]] = {
        "1 together": lambda d: d["tables"][0].update(share="1/7"),
        "not different attributes": lambda d: d["tables"][0]["axes"].append("who"),
        "no table of the plan holds": lambda d: (
            d["tables"].clear(),
            d["tables"].append({"axes": ["lung"], "share": "1"}),
        ),
        "2 to 1,000 custodians": lambda d: d.update(custodians=["north", "north"]),
        "unknown key|more": lambda d: d.update(more=1),
        "laplace or gaussian": lambda d: d.update(noise="none"),
    }
    for what, change in changes.items():
        with pytest.raises(FormatError, match=what):
            Agreement.read(spoil(place / "plan.json", change, tmp_path / "bad.json"))


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"account": "east"}, "the plan is for the accounts north, south, west, not 'east'"),
        ({"account": "west", "unit": "replace-one"}, "leave them out"),
        ({"account": "west", "graph": CLINIC.dag}, "leave them out"),
    ],
)
def test_a_part_is_for_its_plan(more: dict[str, Any], what: str, place: Path) -> None:
    with pytest.raises(FormatError, match=what):
        dc.release(CLINIC.sample(9, rng=1).arrow(), plan=place / "plan.json", **more)


def test_the_commands_make_a_plan_and_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CLINIC.schema.write(tmp_path / "s.toml")
    CLINIC.write_bif(tmp_path / "g.bif")
    CLINIC.sample(200, rng=1).write(tmp_path / "rows.csv")
    told = [
        "plan",
        "--schema",
        str(tmp_path / "s.toml"),
        "--graph",
        str(tmp_path / "g.bif"),
        "--epsilon",
        "1",
    ]
    assert main([*told, "--write", str(tmp_path / "plan.json")]) == 2
    assert "--custodians" in capsys.readouterr().err
    assert main([*told, "--write", str(tmp_path / "plan.json"), "--custodians", "a, b"]) == 0
    for name in "ab":
        out = ["--account", name, "--ledger", str(tmp_path / f"{name}.ledger"), "--create-ledger"]
        given = ["release", str(tmp_path / "rows.csv"), "--plan", str(tmp_path / "plan.json"), *out]
        assert main([*given, "--out", str(tmp_path / f"{name}.json")]) == 0
    assert (
        main(
            [
                "combine",
                *(str(tmp_path / f"{name}.json") for name in "ab"),
                "--out",
                str(tmp_path / "ab.json"),
                "--json",
            ]
        )
        == 0
    )
    assert main(["verify", str(tmp_path / "ab.json"), "--ledger", str(tmp_path / "a.ledger")]) == 0


def test_amounts_are_joined_by_the_largest_or_the_sum() -> None:
    assert join_budgets([PureDP(1), PureDP(2)], True) == PureDP(2)
    assert join_budgets([PureDP(1), PureDP(2)], False) == PureDP(3)
    mixed = ApproxDP(1, "1e-9"), ApproxDP("1/2", "1e-6")
    assert (
        join_budgets(mixed, True) == ApproxDP(1, "1e-6") and join_budgets(mixed, False) == mixed[0] + mixed[1]
    )
    assert join_budgets([PureDP(1), Infinite()], True) == Infinite()
    joined = join_budgets([ApproxDP(1, "1e-9"), ZCDP("1/8")], True)
    assert isinstance(joined, ApproxDP) and joined.epsilon > 2
