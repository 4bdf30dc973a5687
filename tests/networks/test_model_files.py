"""Files that hold a model: what they hold is told by their content, and comes back as it was written."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.networks.credal import CredalNetwork, contaminate
from discreet.networks.formats.documents import describe_provenance
from discreet.networks.formats.release import Release, parse, read, read_graph, read_model, read_release
from discreet.networks.network import Network
from discreet.networks.posterior import Posterior
from discreet.values.errors import DiscreetError, FormatError
from discreet.values.graph import DAG
from discreet.values.schema import Schema
from discreet.values.table import Table

GOLDEN = Path(__file__).parents[1] / "golden"
SCHEMA = Schema.of({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
DAG_ONE = DAG.build({"smoke": [], "lung": ["smoke"]})
ALPHAS = (
    Table(("smoke",), np.array([3.5, 7.25])),
    Table(("smoke", "lung"), np.array([[1e-300, 2.0], [1e300, 0.1]])),
)


def make_posterior() -> Posterior:
    """A posterior of α between the smallest and the largest, with the provenance of a release."""
    known = read_release(GOLDEN / "planned.json")
    sizes = known.network.schema.sizes
    alphas = tuple(
        Table(family, np.full([sizes[name] for name in family], 0.5))
        for family in known.network.dag.families()
    )
    return Posterior(known.network.schema, known.network.dag, alphas, provenance=known.provenance)


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".anything"])
def test_a_file_is_known_by_what_it_holds(suffix: str, tmp_path: Path) -> None:
    """A release, a network, a credal network, a posterior and BIF, whatever they are called."""
    asia = dc.examples.asia()
    path = tmp_path / f"file{suffix}"
    asia.write(path)
    found = read(path)
    assert isinstance(found, Network) and found.close_to(asia)
    asia.write_bif(path)
    found = read(path)
    assert isinstance(found, Network) and found.close_to(asia)
    contaminate(asia, 0.25).write(path)
    found = read(path)
    assert isinstance(found, CredalNetwork) and found.contains(asia)
    dc.write_release(read_release(GOLDEN / "planned.json"), path)
    found = read(path)
    assert isinstance(found, Release) and found.provenance.learner == "planned"
    Posterior(SCHEMA, DAG_ONE, ALPHAS).write(path)
    assert isinstance(read(path), Posterior)
    assert (path.read_bytes()[:2] == gzip.compress(b"")[:2]) == suffix.endswith(".gz")


def test_a_posterior_survives_to_the_last_bit() -> None:
    for made in (Posterior(SCHEMA, DAG_ONE, ALPHAS), make_posterior()):
        text = json.dumps(made.to_json())
        again = parse(text, "posterior.json")
        assert isinstance(again, Posterior)
        assert (again.schema, again.dag) == (made.schema, made.dag)
        for mine, theirs in zip(made.alphas, again.alphas, strict=True):
            np.testing.assert_array_equal(mine.values, theirs.values)
        assert json.dumps(again.to_json()) == text
    assert again.provenance is not None
    known = read_release(GOLDEN / "planned.json").provenance
    assert describe_provenance(again.provenance) == describe_provenance(known)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda found: found.update(version=2), "newer"),
        (lambda found: found.update(extra=1), "unknown"),
        (lambda found: found.pop("alphas"), "lacks the key 'alphas'"),
        (lambda found: found["alphas"].pop(), "1 tables for 2 nodes"),
        (lambda found: found["alphas"][0].append(1.0), "3 numbers; it needs 2"),
        (lambda found: found["alphas"][0].__setitem__(0, 0), "above 0"),
        (lambda found: found["alphas"][0].__setitem__(0, -1.0), "at least 0"),
        (lambda found: found["alphas"][0].__setitem__(0, 10**400), "that a float can hold"),
        (lambda found: found["alphas"][0].__setitem__(0, True), "not a number"),
        (lambda found: found["parents"].reverse(), "should be"),
        (lambda found: found.update(provenance={}), "a provenance lacks the key 'learner'"),
        (lambda found: found.update(provenance=3), "a provenance must have the keys"),
    ],
)
def test_a_posterior_that_was_tampered_with_is_refused(
    spoil: Callable[[dict[str, Any]], Any], said: str
) -> None:
    document = copy.deepcopy(Posterior(SCHEMA, DAG_ONE, ALPHAS).to_json())
    spoil(document)
    with pytest.raises(FormatError, match=said) as refused:
        parse(json.dumps(document), "posterior.json")
    assert str(refused.value).startswith("posterior.json: ")


def test_infinite_numbers_in_a_posterior_are_refused() -> None:
    text = json.dumps(Posterior(SCHEMA, DAG_ONE, ALPHAS).to_json())
    with pytest.raises(FormatError, match="larger than any number"):
        parse(text.replace("7.25", "1e999"), "posterior.json")


@pytest.mark.parametrize("text", ["{}", '{"format": "discreet-novel"}', '{"format": ["discreet-network"]}'])
def test_an_unknown_format_is_refused_with_those_that_are_known(text: str) -> None:
    with pytest.raises(FormatError, match="discreet reads 'discreet-release', 'discreet-network'"):
        parse(text, "x.json")


def test_one_network_or_one_graph_of_any_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A posterior stands for the network of its means; a credal network has a graph, but not one network."""
    path = tmp_path / "posterior.json"
    made = Posterior(SCHEMA, DAG_ONE, (ALPHAS[0], Table(("smoke", "lung"), np.ones((2, 2)))))
    made.write(path)
    assert read_model(path).close_to(made.network())
    assert read_graph(path, SCHEMA) == DAG_ONE
    assert main(["query", str(path), "P(smoke=yes)", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["probability"] == pytest.approx(3.5 / 10.75)
    contaminate(made.network(), 0.1).write(path)
    assert read_graph(path, SCHEMA) == DAG_ONE
    with pytest.raises(FormatError, match="a whole set of networks"):
        read_model(path)
    assert main(["synthesize", str(path), "--out", str(tmp_path / "rows.csv")]) == 2
    assert "a whole set of networks" in capsys.readouterr().err


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DiscreetError, match="cannot be read"):
        read(tmp_path / "nothing.json")
