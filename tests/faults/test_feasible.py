"""Feasible before payable: what cannot end well is refused before the debit, and leaves no account behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.doors.feasible import CELL_BYTES, MOST_EPSILON, MOST_RHO, estimate_bytes, require_possible
from discreet.networks.formats.documents import MAX_BYTES
from discreet.values.errors import BudgetError, DiscreetError, TooLarge
from discreet.values.graph import DAG
from discreet.values.schema import Schema

SCHEMA = Schema.of({name: ["a", "b"] for name in "xyz"})
ROWS = {name: ["a", "b"] * 50 for name in "xyz"}
GRAPH = {"x": (), "y": ("x",), "z": ()}
LEARNERS = [("planned", GRAPH), ("independent", GRAPH), ("adaptive", None), ("privbayes", None)]


@pytest.mark.parametrize(("levels", "parents"), [(6, 3), (2, 8)])
@pytest.mark.parametrize("learner", ["planned", "independent", "dependent"])
def test_the_estimate_is_not_too_small_and_not_far_off(
    tmp_path: Path, learner: str, levels: int, parents: int
) -> None:
    names = [f"x{i}" for i in range(parents + 2)]
    schema = Schema.of({name: [str(i) for i in range(levels)] for name in names})
    dag = DAG.build({name: tuple(names[max(0, i - parents) : i]) for i, name in enumerate(names)})
    codes = np.random.default_rng(1).integers(0, levels, (len(names), 500))
    rows = {name: [str(code) for code in row] for name, row in zip(names, codes, strict=True)}
    with pytest.warns(dc.errors.PromiseWarning):
        dc.release(rows, schema, dag, epsilon=1, learner=learner).write(tmp_path / "r.json")
    assert 0.95 < estimate_bytes(schema, dag) / (tmp_path / "r.json").stat().st_size < 2.5


def write_wide(folder: Path, parents: int) -> None:
    """A schema of yes and no, and a graph in which the last depends on so many."""
    names = [f"x{i}" for i in range(parents + 1)]
    (folder / "schema.toml").write_text(
        "format = 1\n" + "".join(f'[attributes.{name}]\nlevels = ["y", "n"]\n' for name in names)
    )
    (folder / "graph.txt").write_text("".join(f"{name} -> {names[-1]}\n" for name in names[:-1]))
    (folder / "rows.csv").write_text(f"{','.join(names)}\n{','.join('y' for _ in names)}\n")


@pytest.mark.parametrize("parents", [22, 21])
def test_a_document_that_nobody_could_read_back_is_never_paid_for(
    tmp_path: Path, parents: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_wide(tmp_path, parents)
    before = sorted(tmp_path.iterdir())
    common = ["--schema", "schema.toml", "--graph", "graph.txt", "--epsilon", "1"]
    paid = ["release", "rows.csv", "--ledger", "l", "--account", "a", "--create-ledger", "--out", "out"]
    for command in (paid, ["plan"]):
        assert main([*command, *common]) == 2
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and f"'x{parents}' has {2 ** (parents + 1):,} cells" in said
    assert sorted(tmp_path.iterdir()) == before


def test_the_limit_is_that_of_the_reader() -> None:
    dag = DAG.build({"x": (), "y": (), "z": ("x", "y")})
    cells = MAX_BYTES // CELL_BYTES
    for many, refused in ((cells // 2000 - 5, False), (cells // 2000 + 1, True)):
        sizes = {"x": 2, "y": many, "z": 1000}
        schema = Schema.of({name: [str(i) for i in range(size)] for name, size in sizes.items()})
        if refused:
            with pytest.raises(TooLarge, match="give it fewer parents"):
                require_possible(schema, dag)
        else:
            require_possible(schema, dag)


@pytest.mark.parametrize(("learner", "graph"), LEARNERS)
@pytest.mark.parametrize("amount", [{"epsilon": MOST_EPSILON}, {"rho": MOST_RHO}])
def test_the_largest_amounts_end_in_a_release(
    tmp_path: Path, learner: str, graph: Any, amount: dict[str, int]
) -> None:
    made = dc.release(
        ROWS, SCHEMA, graph, learner=learner, ledger=tmp_path / "l", account="a", create=True, **amount
    )  # type: ignore[arg-type]
    made.write(tmp_path / "out")
    assert dc.verify(tmp_path / "out", tmp_path / "l").sound


@pytest.mark.parametrize("amount", [{"epsilon": 701}, {"rho": 101}, {"epsilon": 5000, "delta": "1e-6"}])
def test_larger_ones_are_refused_before_the_debit(tmp_path: Path, amount: dict[str, Any]) -> None:
    for learner, graph in LEARNERS:
        with pytest.raises(BudgetError, match="hides nothing"):
            dc.release(
                ROWS,
                SCHEMA,
                graph,
                learner=learner,
                ledger=tmp_path / "l",
                account="a",
                create=True,
                **amount,
            )
        with pytest.raises(BudgetError, match="hides nothing"):
            dc.plan(SCHEMA, graph, learner=learner, **amount)
    assert not list(tmp_path.iterdir())
    with pytest.raises(BudgetError, match="at most 1e8"):
        dc.release(
            ROWS, SCHEMA, None, rho=1, budget="rho=1e9", ledger=tmp_path / "l", account="a", create=True
        )


@pytest.mark.parametrize(
    ("learner", "graph", "options"),
    [
        ("planned", GRAPH, {"nonsense": 1}),
        ("independent", GRAPH, {"prior": -1.0}),
        ("privbayes", None, {"k": -3}),
        ("privbayes", None, {"encoding": "morse"}),
        ("privbayes", None, {"required": {("x", "y"), ("y", "x")}}),
        ("adaptive", None, {"target": "nobody"}),
        ("adaptive", None, {"workload": [("x", "nobody")]}),
    ],
)
def test_what_a_learner_refuses_opens_no_account(
    tmp_path: Path, learner: str, graph: Any, options: dict[str, Any]
) -> None:
    def ask(**more: Any) -> None:
        dc.release(
            ROWS, SCHEMA, graph, epsilon=1, learner=learner, options=options, ledger=tmp_path / "l", create=True,
            **more,
        )  # fmt: skip

    with pytest.raises((DiscreetError, TypeError)):
        ask(account="new")
    assert not list(tmp_path.iterdir())
    with dc.open_ledger(tmp_path / "l", create=True) as ledger:
        ledger.open_account("old", dc.PureDP(1), dc.Unit.ADD_REMOVE)
        head = ledger.head()
    with pytest.raises((DiscreetError, TypeError)):
        ask(account="new")
    with dc.open_ledger(tmp_path / "l") as ledger:
        assert [found.name for found in ledger.accounts()] == ["old"] and ledger.head() == head
