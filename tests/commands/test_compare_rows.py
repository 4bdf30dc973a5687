"""`discreet compare --rows`: real rows beside synthetic ones, for the custodian alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.doors.cli import main
from discreet.judge.fidelity import compare_rows
from discreet.values.schema import Attribute, Schema

SCHEMA = """
[attributes.age]
edges = [0, 20, 40, 60, 80]
missing = "unknown"
[attributes.weight]
edges = [0, 40, 60, 80, 120]
[attributes.ill]
levels = ["no", "yes", "rarely"]
"""


def write_rows(path: Path, seed: int, tie: float) -> None:
    rng = np.random.default_rng(seed)
    age = rng.uniform(0, 80, 2000)
    weight = np.clip(40 + tie * 0.6 * age + rng.normal(0, 8, 2000), 0, 119)
    ill = np.where(
        rng.random(2000) < 0.003, "rarely", np.where(tie * age + rng.normal(0, 5, 2000) > 45, "yes", "no")
    )
    rows = enumerate(zip(age, weight, ill, strict=True))
    lines = [f"{'' if k % 10 == 0 else round(a, 1)},{w:.1f},{i}" for k, (a, w, i) in rows]
    path.write_text("age,weight,ill\n" + "\n".join(lines) + "\n")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str, str, str]:
    schema = tmp_path / "s.toml"
    schema.write_text(SCHEMA)
    for name, seed, tie in (("real", 1, 1.0), ("good", 2, 1.0), ("bad", 3, 0.0)):
        write_rows(tmp_path / f"{name}.csv", seed, tie)
    real, good, bad = (str(tmp_path / f"{name}.csv") for name in ("real", "good", "bad"))
    return real, good, bad, str(schema)


def test_good_rows_are_told_from_bad_ones(
    files: tuple[str, str, str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, good, bad, schema = files
    page = tmp_path / "page.html"
    found = []
    for rows in (good, bad):
        options = ["--rows", "--schema", schema, "--predict", "ill", "--json", "--out", str(page)]
        assert main(["compare", real, rows, *options]) == 0
        found.append(json.loads(capsys.readouterr().out))
    near, far = found
    assert near["private"] is True
    assert max(near["marginal TV"].values()) < 0.06 < far["marginal TV"]["ill"]
    assert near["missing"]["age"] == [0.1, 0.1]
    assert [level for _, level, *_ in near["rare"]] == ["rarely"]
    (tied,), (loose,) = near["correlations"], far["correlations"]
    assert (
        tied["real"] > 0.7 and abs(tied["real"] - tied["synthetic"]) < 0.05 and abs(loose["synthetic"]) < 0.1
    )
    for kept, lost in zip(near["predictions"], far["predictions"], strict=True):
        assert kept["trained on synthetic"] > kept["trained on real"] - 0.03
        assert lost["trained on synthetic"] < lost["trained on real"] - 0.1
    written = page.read_text()
    assert "It is for the custodian, not for the public." in written
    assert written.index("custodian") < written.index("<h1>")
    assert {"logistic regression", "trees"} == {one["model"] for one in near["predictions"]}


def test_equal_rows_are_no_distance_apart() -> None:
    schema = Schema((Attribute.of("a", ["x", "y"]), Attribute.of("b", ["u", "v"])))
    codes = {"a": np.array([0, 1, 0, 1]), "b": np.array([0, 1, 1, 1])}
    found = compare_rows(codes, codes, schema)
    assert set(found.marginals.values()) == {0.0}
    assert set(found.pairs.values()) == {0.0}


def test_what_rows_need_is_said(files: tuple[str, str, str, str], capsys: pytest.CaptureFixture[str]) -> None:
    real, good, _, schema = files
    assert main(["compare", real, good, "--rows"]) == 2
    assert "--schema FILE.toml" in capsys.readouterr().err
    assert main(["compare", real, good, "--schema", schema]) == 2
    assert "add --rows" in capsys.readouterr().err
    assert main(["compare", real, good, "--rows", "--schema", schema, "--predict", "height"]) == 2
    assert "cannot predict 'height'" in capsys.readouterr().err
