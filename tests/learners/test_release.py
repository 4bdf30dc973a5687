"""Releases: the same question gives the same bytes, what is written is read back, and nothing is paid twice."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import pytest

import discreet as dc
from discreet.core.chain import Anchor
from discreet.doors.cli import main
from discreet.doors.release import release as make_release_of_rows
from discreet.entrance import open_ledger
from discreet.judge.preview import rehearse
from discreet.networks.formats.release import format_release, make_release, parse_release, read_release
from discreet.papers.parameters.independent import independent
from discreet.values.budget import PureDP
from discreet.values.errors import FormatError, LedgerError, Overspent

ASIA = dc.examples.asia()
ROWS = ASIA.sample(500, rng=1).arrow()


def ask(place: Path, spend: str = "1", **options: object) -> dc.Release:
    asked = {"account": "clinic", "budget": PureDP(4), "learner": "independent", "create": True, **options}
    return make_release_of_rows(ROWS, ASIA.schema, ASIA.dag, epsilon=spend, ledger=place, **asked)  # type: ignore[arg-type]


def test_a_release_is_the_same_bytes_however_late_it_is_asked_for(tmp_path: Path) -> None:
    """Other spends and a look without noise come in between; the document says what held when it was paid for."""
    place = tmp_path / "ledger"
    first = ask(place)
    assert first.receipt.paid
    ask(place, "1/2")
    with open_ledger(place) as ledger:
        ledger.mark_revealed("clinic", "a look")
    second = ask(place)
    assert not second.receipt.paid and second.receipt.revealed and not first.receipt.revealed
    assert format_release(second) == format_release(first)
    assert second.promise.endswith("(ε = 4). This release is ε = 1 of it.")
    third = ask(place, "1/4")
    assert "No privacy is promised" in third.promise


@pytest.mark.parametrize("learner", ["planned", "independent", "dependent"])
def test_the_statement_lists_each_spend_and_the_head_after_the_last(tmp_path: Path, learner: str) -> None:
    place = tmp_path / "ledger"
    made = ask(place, learner=learner)
    said = made.provenance.statement
    assert sum((debit.cost for debit in said.debits), PureDP.zero()) == PureDP(1)
    assert all(debit.request.startswith(made.receipt.request) for debit in said.debits)
    assert sum(debit.tables for debit in said.debits) == len(made.provenance.measurements)
    with open_ledger(place) as ledger:
        assert ledger.verify(Anchor(said.events, said.head)).sound
        assert said.events == ledger.head().count
    assert said.schema and made.provenance.details["options"] == {}


def test_a_release_survives_being_written(tmp_path: Path) -> None:
    made = ask(tmp_path / "ledger", learner="dependent")
    text = format_release(made)
    again = parse_release(text)
    assert format_release(again) == text
    assert again.network.close_to(made.network, 0.0)
    for name in ("a.json", "a.json.gz"):
        dc.write_release(made, tmp_path / name)
        assert format_release(read_release(tmp_path / name)) == text


def test_a_simulation_says_that_its_ledger_does_not_last() -> None:
    airlock = dc.open_airlock(ROWS, ASIA.schema, budget="1")
    network = independent(airlock, ASIA.dag, spend="1/2", prior=0.5)
    assert network.provenance is not None
    assert not network.provenance.statement.durable
    assert network.provenance.details["options"] == {"prior": 0.5}
    promise = make_release(network).promise
    assert "(ε = 1). This release is ε = 0.5 of it." in promise and promise.endswith("nobody adds it up.")


def test_an_account_that_cannot_pay_for_every_stage_pays_for_none(tmp_path: Path) -> None:
    """Algorithm 1 would pay for its first look and fail at the second."""
    place = tmp_path / "ledger"
    ask(place, "1", budget=PureDP("3/2"))
    with pytest.raises(Overspent, match="costs ε = 1; remaining ε = 1/2"):
        ask(place, "1", learner="dependent", budget=None)
    with pytest.raises(LedgerError, match="cannot be opened again with ε = 4"):
        ask(place, "1/4")
    with open_ledger(place) as ledger:
        assert ledger.remaining("clinic") == PureDP("1/2")


def test_no_ledger_is_made_unless_asked_for(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"no ledger at .*--create-ledger"):
        ask(tmp_path / "ledger", create=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda document: document.update(version=2), "newer discreet"),
        (lambda document: document.update(version="1"), "not a whole number"),
        (lambda document: document.pop("promise"), "lacks the key 'promise'"),
        (lambda document: document.update(extra=1), "the unknown key 'extra'"),
        (lambda document: document["network"].update(version=9), "newer discreet"),
        (lambda document: document["provenance"].update(unit="row"), "unit of privacy"),
        (lambda document: document["provenance"]["measurements"][0]["counts"].append(1), "whole counts"),
        (lambda document: document["network"]["cpts"][0].__setitem__(0, -0.5), "between 0 and 1"),
    ],
)
def test_a_document_from_the_future_or_malformed_is_refused(
    tmp_path: Path, change: object, told: str
) -> None:
    document = json.loads(format_release(ask(tmp_path / "ledger")))
    change(document)  # type: ignore[operator]
    with pytest.raises(FormatError, match=told):
        parse_release(json.dumps(document))


def test_the_example_folder_is_ready_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`discreet examples`, then `discreet release` on what it wrote; a file of somebody else's stays as it is."""
    monkeypatch.chdir(tmp_path)
    assert main(["examples", "clinic", "--rows", "300"]) == 0
    assert main(["examples", "clinic", "--rows", "300"]) == 0, "the same example again changes nothing"
    told = capsys.readouterr().out
    assert {path.name for path in (tmp_path / "clinic").iterdir()} == {
        "patients.csv", "schema.toml", "graph.bif", "README.md",
    }  # fmt: skip
    assert "clinic/patients.csv" in told
    assert dc.read_bif("clinic/graph.bif").dag == ASIA.dag
    command = [
        "release", "clinic/patients.csv", "--schema", "clinic/schema.toml", "--graph", "clinic/graph.bif",
        "--epsilon", "1", "--ledger", "l", "--account", "a", "--create-ledger", "--learner", "independent",
        "--json",
    ]  # fmt: skip
    assert main([*command, "--out", "published"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["paid"] is True and first["cost"] == {"epsilon": "1"}
    assert all(Path(path).exists() for path in first["files"].values())
    assert main([*command, "--out", "again.json"]) == 0
    assert json.loads(capsys.readouterr().out)["paid"] is False
    assert Path("again.json").read_bytes() == Path("published/release.json").read_bytes()
    Path("other").mkdir()
    Path("other/patients.csv").write_text("mine")
    assert main(["examples", "other"]) == 2
    assert [path.name for path in Path("other").iterdir()] == ["patients.csv"]
    assert Path("other/patients.csv").read_text() == "mine"


def test_what_is_known_of_the_graph_holds_in_the_release_and_verifies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dc.examples.asia().sample(3000, rng=2).write(tmp_path / "rows.csv")
    ASIA.schema.write(tmp_path / "schema.toml")
    ledger = str(tmp_path / "ledger")
    assert not main([
        "release", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.toml"), "--epsilon", "5",
        "--ledger", ledger, "--account", "a", "--create-ledger", "--out", str(tmp_path / "out.json"),
        "--learner", "privbayes", "--require", "asia -> dysp", "--forbid", "smoke -> lung",
        "--forbid", "lung -> smoke",
    ])  # fmt: skip
    edges = read_release(tmp_path / "out.json").network.dag.edges()
    assert ("asia", "dysp") in edges
    assert not {("smoke", "lung"), ("lung", "smoke")} & set(edges)
    assert not main(["verify", str(tmp_path / "out.json"), "--ledger", ledger])
    assert "it adds up" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["--score", "F", "--beta", "1/4", "--k", "1", "--selection", "exponential"],
         {"score": "F", "beta": "1/4", "k": 1, "selection": "exponential"}),
        (["--score", "F", "--theta", "2"], {"score": "F", "theta": "2"}),
        (["--as-printed"],
         {"score": "F", "beta": "1/2", "selection": "exponential", "estimation": "printed", "encoding": "vanilla"}),
    ],
    ids=["tuned", "by usefulness", "as printed"],
)  # fmt: skip
def test_how_privbayes_searches_is_said_on_the_command_line_and_verifies(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: list[str], expected: dict[str, object]
) -> None:
    ASIA.sample(2000, rng=2).write(tmp_path / "rows.csv")
    ASIA.schema.write(tmp_path / "schema.toml")
    ledger = str(tmp_path / "ledger")
    assert not main([
        "release", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.toml"), "--epsilon", "5",
        "--ledger", ledger, "--account", "a", "--create-ledger", "--out", str(tmp_path / "out.json"),
        "--learner", "privbayes", *asked,
    ])  # fmt: skip
    known = read_release(tmp_path / "out.json").network.provenance
    assert known is not None and known.details["options"] == expected
    assert not main(["verify", str(tmp_path / "out.json"), "--ledger", ledger])
    assert "it adds up" in capsys.readouterr().out


def test_more_parents_than_can_be_searched_are_refused_before_a_ledger_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dc.Schema.of({f"x{i:02d}": ["a", "b"] for i in range(60)}).write(tmp_path / "schema.toml")
    (tmp_path / "rows.csv").write_text(
        ",".join(f"x{i:02d}" for i in range(60)) + "\n" + ",".join("a" * 60) + "\n"
    )
    assert main([
        "release", str(tmp_path / "rows.csv"), "--schema", str(tmp_path / "schema.toml"), "--epsilon", "1",
        "--ledger", str(tmp_path / "new"), "--account", "a", "--create-ledger", "--out", str(tmp_path / "out.json"),
        "--learner", "privbayes", "--k", "5",
    ]) == 2  # fmt: skip
    assert (
        "--k 5 gives too many parent sets to choose from with 60 attributes: at most"
        in capsys.readouterr().err
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("rows", [200, 5000])
@pytest.mark.parametrize("learner", ["adaptive", "privbayes"])
def test_a_search_tells_how_far_it_is(tmp_path: Path, learner: str, rows: int) -> None:
    told: list[tuple[int, int, str]] = []
    make_release_of_rows(
        ASIA.sample(rows, rng=1).arrow(), ASIA.schema, None, epsilon=1, ledger=tmp_path / "ledger",
        account="a", create=True, learner=learner, progress=lambda *step: told.append(step),
    )  # fmt: skip
    done = [step[0] for step in told]
    assert done and done == sorted(done) and all(0 < step[0] <= step[1] and step[2] for step in told)


@pytest.mark.parametrize("learner", ["adaptive", "planned", "independent"])
def test_a_plan_says_what_a_delta_buys_and_when_pure_epsilon_is_narrower(learner: str) -> None:
    graph = None if learner == "adaptive" else ASIA.dag
    for spend, told in ((dc.ApproxDP(1, "1e-5"), True), (dc.ApproxDP(1, 0), False), (PureDP(1), False)):
        words = rehearse(ASIA.schema, graph, spend=spend, learner=learner, rows=1000).explain()
        assert ("buys ρ ≈ 0.0305231, in which spends add up" in words) == told
    few = rehearse(ASIA.schema, graph, spend=dc.ApproxDP(1, "1e-5"), learner=learner, rows=1000).explain()
    assert ("Pure ε would leave less noise here" in few) == (
        learner != "adaptive"
    )  # a search draws too often
    size = 40 if graph else 8  # a search over more would rehearse for a minute
    many = dc.Schema.of({f"x{i}": ["a", "b"] for i in range(size)})
    chain = (
        None if graph is None else dc.DAG.build({f"x{i}": [f"x{i - 1}"] if i else [] for i in range(size)})
    )
    options = {"max_cells": 4} if learner == "planned" else {}
    dense = rehearse(many, chain, spend=dc.ApproxDP(1, "1e-5"), learner=learner, rows=10**6, options=options)
    assert "Pure ε would" not in dense.explain()


@pytest.mark.parametrize("learner", ["adaptive", "privbayes"])
@pytest.mark.parametrize("rows", [1, 60, 100_000])
@pytest.mark.parametrize("spend", [dc.PureDP("1/3"), dc.ZCDP("1/50")])
def test_the_plan_of_a_search_accounts_for_every_part_of_the_budget(
    learner: str, rows: int, spend: dc.PureDP | dc.ZCDP
) -> None:
    preview = rehearse(ASIA.schema, None, spend=spend, learner=learner, rows=rows)
    told = preview.to_json()
    (kind,) = spend.to_json()
    parts = [
        Fraction(cost[kind]) for cost in [*(table["cost"] for table in told["tables"]), *told["choices"]]
    ]
    assert sum(parts) == Fraction(spend.to_json()[kind])
    words = preview.explain()
    (line,) = (line for line in words.splitlines() if line.startswith("private choices"))
    assert line.split()[2] == str(len(preview.choices))
    assert ("so much noise" in words) == (learner == "adaptive" and rows < 100)


@pytest.mark.parametrize("learner", ["planned", "independent", "dependent", "privbayes"])
@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
def test_a_plan_reads_nothing_and_announces_what_is_paid_for(
    tmp_path: Path, learner: str, unit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The data need not even be there; what a release then measures first has the announced law and cost."""
    ASIA.schema.write(tmp_path / "schema.toml")
    ASIA.write_bif(tmp_path / "graph.bif")
    dag = None if learner == "privbayes" else ASIA.dag
    graph = [] if dag is None else ["--graph", str(tmp_path / "graph.bif")]
    command = ["plan", "--schema", str(tmp_path / "schema.toml"), *graph, "--epsilon", "1"]
    asked = [*command, "--unit", unit, "--learner", learner, "--rows", "500"]
    assert main([*asked, "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert main(asked) == 0
    assert "nothing was read and nothing was spent" in capsys.readouterr().out
    made = make_release_of_rows(
        ROWS, ASIA.schema, dag, epsilon=1, ledger=tmp_path / "ledger", account="c", create=True, unit=unit,
        learner=learner,
    ).provenance  # fmt: skip
    first, table = made.measurements[0], plan["tables"][0]
    if (
        learner != "privbayes" or unit == "add-remove"
    ):  # else the first table depends on the graph that is found
        assert (list(first.axes), first.law.to_json(), first.cost.to_json()) == (
            table["axes"], table["law"], table["cost"],
        )  # fmt: skip
    assert set(plan["predicted error"]) == set(ASIA.nodes)


def conforms(value: object, schema: dict[str, object], root: dict[str, object]) -> bool:
    """Whether a value fits the few keywords of JSON Schema that docs/release.schema.json uses."""
    if "$ref" in schema:
        return conforms(value, root["$defs"][str(schema["$ref"]).rpartition("/")[2]], root)  # type: ignore[index]
    if "const" in schema:
        return value == schema["const"] and isinstance(value, bool) == isinstance(schema["const"], bool)
    if "enum" in schema:
        return value in schema["enum"]  # type: ignore[operator]
    if "oneOf" in schema:
        return sum(conforms(value, one, root) for one in schema["oneOf"]) == 1  # type: ignore[attr-defined]
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
    }
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "boolean")):  # type: ignore[index]
        return False
    if isinstance(value, str):
        return re.search(str(schema.get("pattern", "")), value) is not None
    if isinstance(value, int | float):
        return schema.get("minimum", value) <= value <= schema.get("maximum", value)  # type: ignore[operator]
    if isinstance(value, list):
        firsts = schema.get("prefixItems", [schema.get("items", {})] * len(value))
        return schema.get("minItems", 0) <= len(value) and all(
            map(lambda v, s: conforms(v, s, root), value, firsts)
        )  # type: ignore[operator,arg-type]
    if isinstance(value, dict):
        known = schema.get("properties", {})
        rest = schema.get("additionalProperties", True)
        return set(schema.get("required", ())) <= set(value) and all(  # type: ignore[call-overload]
            conforms(inner, known[key], root)
            if key in known  # type: ignore[operator,index]
            else rest
            if isinstance(rest, bool)
            else conforms(inner, rest, root)  # type: ignore[arg-type]
            for key, inner in value.items()
        )
    return True


@pytest.mark.parametrize("name", ["combined", "planned", "adaptive-typed", "privbayes-hierarchical"])
def test_the_json_schema_describes_golden_releases(name: str) -> None:
    root = Path(__file__).parents[2]
    schema = json.loads((root / "docs/release.schema.json").read_text("utf-8"))
    document = json.loads((root / f"tests/golden/{name}.json").read_text("utf-8"))
    assert conforms(document, schema, schema)
    document["provenance"]["parts"] = []
    assert not conforms(document, schema, schema)


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
def test_the_json_schema_describes_what_is_written(tmp_path: Path, unit: str) -> None:
    """Sound releases fit docs/release.schema.json, and a few spoilt ones do not."""
    schema = json.loads((Path(__file__).parents[2] / "docs/release.schema.json").read_text("utf-8"))
    for learner in ("independent", "dependent"):
        document = json.loads(format_release(ask(tmp_path / "ledger", learner=learner, unit=unit)))
        assert conforms(document, schema, schema)
    for path, value in (
        (("version",), 2),
        (("extra",), 1),
        (("provenance", "unit"), "row"),
        (("provenance", "cost"), {"epsilon": "-1"}),
        (("provenance", "measurements", 0, "counts", 0), 0.5),
        (("provenance", "measurements", 0, "law"), {"law": "none"}),
        (("network", "cpts", 0, 0), 1.5),
        (("provenance", "statement", "ledger", "head"), "abc"),
        (("provenance", "statement", "note"), "row 17"),
        (("provenance", "statement"), {}),
        (("software", "note"), "row 17"),
        (("software", "numpy"), "row 17"),
    ):
        spoilt = json.loads(json.dumps(document))
        inner = spoilt
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        assert not conforms(spoilt, schema, schema), path
