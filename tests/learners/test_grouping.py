"""A search of levels in groups, from the rows to answers: what is published, checked, asked and drawn."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.judge.comparison import compare
from discreet.learning.adaptive import adaptive
from discreet.networks.ensemble import draw_networks
from discreet.networks.figures import count
from discreet.values.errors import NetworkError

ROWS = 20_000
SCHEMA = dc.Schema.of(
    {"age": range(100), "wage": range(100), "ill": ["no", "yes"], "region": ["n", "s", "w"]}
)


def _draw(rows: int = ROWS, seed: int = 1) -> dict[str, np.ndarray]:
    """An age, a wage that follows it, an illness of the old, and a region of its own."""
    draw = np.random.default_rng(seed)
    age = np.clip(draw.normal(45, 18, rows).round(), 0, 99).astype(int)
    wage = np.clip((age + draw.normal(0, 8, rows)).round(), 0, 99).astype(int)
    ill = np.where(draw.random(rows) < 0.02 + 0.5 * (age > 60), "yes", "no")
    region = np.array(["n", "s", "w"])[draw.integers(0, 3, rows)]
    return {"age": age.astype(str), "wage": wage.astype(str), "ill": ill, "region": region}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dc.Release:
    ledger = tmp_path_factory.mktemp("groups") / "ledger"
    return dc.release(_draw(), SCHEMA, epsilon=1, ledger=ledger, account="a", create=True)


def test_levels_that_noise_would_drown_are_searched_in_groups(made: dc.Release) -> None:
    details = made.provenance.details
    assert set(details["groups"]) == {"age", "wage"}
    assert details["auxiliary"] == ["age_groups", "wage_groups"]
    beside = {name for members in details["sets"] for name in members}
    assert beside.isdisjoint({"age", "wage"}) and {"age_groups", "wage_groups"} <= beside
    for name in ("age", "wage"):
        assert made.network.dag.parents_of(name) == (f"{name}_groups",)
        # Nothing but tables of the attribute alone says how its levels are spread inside a group.
        assert sum(found.axes == (name,) for found in made.provenance.measurements) >= 2


def test_what_was_learned_is_near(made: dc.Release) -> None:
    rows = _draw()
    age, ill = rows["age"].astype(int), rows["ill"] == "yes"
    # Not from 61 on, where illness begins: a group may reach across.
    found = made.network.query("ill", {"age": [str(level) for level in range(68, 100)]}, intervals="none")
    assert found["yes"] == pytest.approx(ill[age >= 68].mean(), abs=0.12)
    drawn = made.sample(5_000, rng=1).pandas()
    assert list(drawn.columns) == ["age", "wage", "ill", "region"]
    true = np.corrcoef(age, rows["wage"].astype(int))[0, 1]
    assert np.corrcoef(drawn["age"].astype(int), drawn["wage"].astype(int))[0, 1] == pytest.approx(
        true, abs=0.08
    )
    margin = made.network.query("age", intervals="none").probabilities
    assert np.abs(margin - np.bincount(age, minlength=100) / ROWS).sum() < 0.15


def test_a_release_of_groups_adds_up_and_is_found_out_if_its_groups_are_others(made: dc.Release) -> None:
    assert made.verify().sound
    groups = {name: list(codes) for name, codes in made.provenance.details["groups"].items()}
    last = max(groups["age"])
    groups["age"] = [min(code, last - 1) for code in groups["age"]]
    told = replace(made.provenance, details={**made.provenance.details, "groups": groups})
    other = replace(made, network=replace(made.network, provenance=told))
    assert not other.verify().sound
    with pytest.raises(
        NetworkError, match="groups of levels that the release names are not those of its schema"
    ):
        other.network.query("ill", {"age": "30"}, intervals="guaranteed", of="table")


def test_a_release_survives_the_way_through_a_file(made: dc.Release, tmp_path: Path) -> None:
    made.write(tmp_path)
    again = dc.read(tmp_path / "release.json")
    assert again.network.declared == SCHEMA
    asked = {"age": [str(level) for level in _find_group(made, 30)]}
    first, second = (
        network.query("ill", asked, intervals="guaranteed") for network in (made.network, again.network)
    )
    assert first.lower == pytest.approx(second.lower) and first.upper == pytest.approx(second.upper)
    arrows = made.network.list_arrows()
    assert arrows and {name for arrow in arrows for name in arrow} <= set(SCHEMA.names)
    assert f"{len(arrows)} arrows between" in made.describe_graph()


def _find_group(made: dc.Release, level: int) -> list[int]:
    codes = made.provenance.details["groups"]["age"]
    return [int(i) for i in np.flatnonzero(np.array(codes) == codes[level])]


def test_intervals_of_whole_groups_and_of_parts_of_one(made: dc.Release) -> None:
    """What was measured is a table over groups: it bounds questions about them, and calibrates no others."""
    rows = _draw()
    age, ill = rows["age"].astype(int), rows["ill"] == "yes"
    codes = np.array(made.provenance.details["groups"]["age"])
    start = int(codes[62])
    whole = [int(i) for i in np.flatnonzero((codes >= start) & (codes < start + 8))]
    asked = {"age": [str(level) for level in whole]}
    true = ill[np.isin(age, whole)].mean()
    sure = made.network.query("ill", asked, intervals="guaranteed")
    near = made.network.query("ill", asked, intervals="calibrated")
    assert sure.lower is not None and near.lower is not None
    assert sure.lower[1] <= true <= sure.upper[1]
    assert near.upper[1] - near.lower[1] < sure.upper[1] - sure.lower[1] < 0.6
    group = next(members for level in range(25, 60) if len(members := _find_group(made, level)) > 1)
    part = {"age": str(group[0])}
    wide = made.network.query("ill", part, intervals="guaranteed")
    assert wide.lower[1] <= ill[age == group[0]].mean() <= wide.upper[1]
    assert made.network.query("age", intervals="calibrated").lower is not None
    with pytest.raises(NetworkError, match="no measured table holds ill and age together"):
        made.network.query("ill", part, intervals="calibrated")


def test_means_and_counts_of_whole_groups(made: dc.Release) -> None:
    rows = _draw()
    codes = np.array(made.provenance.details["groups"]["age"])
    whole = np.flatnonzero(codes >= codes[62])
    event = {"age": [str(level) for level in whole], "ill": "yes"}
    true = (np.isin(rows["age"].astype(int), whole) & (rows["ill"] == "yes")).sum()
    found = count(made.network, event)
    assert found.lower is not None and found.lower <= true <= found.upper
    assert found.upper - found.lower < ROWS / 4


def test_plausible_networks_of_groups(made: dc.Release) -> None:
    drawn = draw_networks(made.network, 3, rng=1)
    point = made.network.query("ill", {"age": "70"}, intervals="none")["yes"]
    found = [network.query("ill", {"age": "70"}, intervals="none")["yes"] for network in drawn]
    assert max(abs(value - point) for value in found) < 0.2 and len(set(found)) == 3


def test_two_releases_with_groups_of_their_own_are_compared(made: dc.Release) -> None:
    other = dc.release(_draw(seed=2), SCHEMA, epsilon=1, ledger=None)
    distance = compare(made.network, other.network)
    assert [node.name for node in distance.nodes] == list(SCHEMA.names)
    assert distance.mean_marginal < 0.1


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
def test_sets_that_were_named_keep_their_levels_and_a_target_does_not(unit: str) -> None:
    with dc.open_airlock(_draw(), SCHEMA, budget="2", unit=unit) as airlock:
        named = adaptive(airlock, spend=1, sets=[("age", "ill")])
        aimed = adaptive(airlock, spend=1, target="ill")
        assert airlock.remaining.is_zero
    assert named.provenance is not None and aimed.provenance is not None
    assert set(named.provenance.details["groups"]) == {"wage"}
    assert any(found.axes == ("age", "ill") for found in named.provenance.measurements)
    batch = aimed.provenance.details["batches"][0]
    assert sorted(map(sorted, batch)) == [["age_groups", "ill"], ["ill", "region"], ["ill", "wage_groups"]]


def test_few_levels_and_little_noise_need_no_groups() -> None:
    few = dc.Schema.of({"age": range(24), "ill": ["no", "yes"]})
    rows = _draw()
    codes = {"age": (rows["age"].astype(int) // 5).astype(str), "ill": rows["ill"]}
    for schema, table, spend in ((few, codes, "1/10"), (SCHEMA, rows, "1000")):
        with dc.open_airlock(table, schema, budget=spend) as airlock:
            found = adaptive(airlock, spend=spend)
        assert found.provenance is not None and "groups" not in found.provenance.details
        assert found.schema == schema


@pytest.mark.parametrize("encoding", [None, "binary"])
def test_a_release_of_derived_attributes_is_audited_with_rows_of_the_declared_ones(
    encoding: str | None,
) -> None:
    """Groups and bits follow from the columns of a table, which has none of their own."""
    rows = {name: column[:3_000] for name, column in _draw().items()}
    with dc.open_airlock(rows, SCHEMA, budget="3") as airlock:
        release = (
            adaptive(airlock, spend="3")
            if encoding is None
            else dc.learn.privbayes(airlock, spend="3", encoding=encoding)
        )
    assert release.declared == SCHEMA != release.schema
    assert dc.audit(release, split=rows).outcome.value != "broken"
    others = _draw(3_000, seed=3)
    assert dc.audit(release, members=rows, reference=others, complete=True).outcome.value != "broken"


def test_columns_that_say_the_same_keep_their_levels() -> None:
    """Two moments of a call follow each other level by level, and groups would lose that; a smooth pair has groups."""
    rows = _draw()
    noon = np.random.default_rng(5).integers(0, 80, ROWS)
    schema = dc.Schema.of(
        {"called": range(80), "came": range(81), **{found.name: found.levels for found in SCHEMA}}
    )
    table = {"called": noon.astype(str), "came": (noon + (noon % 7 == 0)).astype(str), **rows}
    with dc.open_airlock(table, schema, budget=dc.ZCDP("1/2")) as airlock:
        found = adaptive(airlock, spend=dc.ZCDP("2/5"))
        few = adaptive(airlock, spend=dc.ZCDP("1/10"), width=2)
        assert airlock.remaining.is_zero
    assert found.provenance is not None
    assert set(found.provenance.details["groups"]) == {"age", "wage"}
    assert ["called", "came"] in found.provenance.details["sets"]
    drawn = found.sample(2_000, rng=1).codes()
    assert (np.abs(drawn["called"].astype(int) - drawn["came"]) <= 1).mean() > 0.8
    assert (
        few.provenance is not None
    )  # what cannot be paid for level by level is searched in groups all the same
    assert set(few.provenance.details["groups"]) == {"called", "came", "age", "wage"}


def test_an_attribute_and_its_groups_in_one_question(made: dc.Release) -> None:
    """Neither may take the place of the other: rows must have one of the levels and be in the group."""
    rows = _draw()
    age, codes = rows["age"].astype(int), np.array(made.provenance.details["groups"]["age"])
    names = made.network.schema["age_groups"].levels
    two = np.flatnonzero(np.isin(codes, [codes[62], codes[35]]))
    asked = {"age": [str(level) for level in two], "age_groups": [names[codes[62]]]}
    true = (rows["ill"] == "yes")[codes[age] == codes[62]].mean()
    found = made.network.query("ill", asked, intervals="guaranteed")
    assert found.lower is not None and found.lower[1] <= true <= found.upper[1]
    apart = {
        "age": [str(level) for level in np.flatnonzero(codes == codes[35])],
        "age_groups": [names[codes[62]]],
    }
    assert count(made.network, apart).lower in (None, 0)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda details: details["groups"].clear(),
        lambda details: details["groups"].pop("wage"),
        lambda details: details["auxiliary"].append("ill"),
        lambda details: details["groups"]["age"].__setitem__(0, 10**9),
    ],
)
def test_groups_that_do_not_fit_their_names_are_refused_at_once(
    made: dc.Release, spoil: Callable[[Any], Any]
) -> None:
    details = deepcopy({name: made.provenance.details[name] for name in ("groups", "auxiliary")})
    spoil(details)
    told = replace(made.provenance, details={**made.provenance.details, **details})
    with pytest.raises(NetworkError, match="are not those of its schema"):
        replace(made.network, provenance=told).list_arrows()
