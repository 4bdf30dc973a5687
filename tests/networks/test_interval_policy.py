"""One policy for intervals: whoever asks gets the same answer, and a release that cannot have them says why."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from discreet.doors.cli import main
from discreet.judge.report import make_page
from discreet.networks.credal import calibrated, from_noise
from discreet.networks.formats.release import Release, read_release
from discreet.networks.intervals import Intervals, explain_lack
from discreet.networks.network import Network
from discreet.values.errors import NetworkError, QueryError

GOLDEN = Path(__file__).parents[1] / "golden"
QUESTION, EVENT = "P(ill | smoke=yes)", "P(ill=severe | smoke=yes)"
REASON = "the learner adaptive chose its tables by what earlier noisy ones had shown"
ADVICE = "release again with --graph (this network will do) or --learner privbayes, which costs budget again"
PROMISE = "95 % sure, for all answers together: without the noise, the answer would lie in [ ]."


def open_golden(name: str) -> Release:
    """A release that was made once."""
    return read_release(GOLDEN / f"{name}.json")


def ask(capsys: pytest.CaptureFixture[str], name: str, *options: str) -> tuple[int, str, str]:
    """The exit code of `discreet query`, and what it prints."""
    code = main(["query", str(GOLDEN / f"{name}.json"), QUESTION, EVENT, *options])
    printed = capsys.readouterr()
    return code, printed.out, printed.err


# The families of the second all lie in measured tables; that alone must not earn it a claim.
@pytest.mark.parametrize("name", ["adaptive", "adaptive-rho"])
def test_a_search_is_refused_intervals_at_every_door(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Query, the command line, JSON, `from_noise` and `calibrated`, the report: all say why, and what to do."""
    release = open_golden(name)
    network = release.network
    refusal = explain_lack(network.dag, network.provenance)
    assert REASON in refusal
    assert ADVICE in refusal

    for answer in (network.query("ill", {"smoke": "yes"}), network.query_event({"ill": "mild"})):
        assert answer.lower is None
        assert answer.meaning == f"No intervals: {refusal}."
    for kind in ("guaranteed", "calibrated"):
        with pytest.raises(NetworkError, match=REASON):
            network.query("ill", intervals=kind)
        with pytest.raises(NetworkError, match=REASON):
            network.query_event({"ill": "mild"}, intervals=kind)
        assert ask(capsys, name, "--interval", kind) == (2, "", f"error: no intervals: {refusal}\n")

    code, out, _ = ask(capsys, name)
    assert code == 0
    assert out.count(f"No intervals: {refusal}.") == 2
    assert "[" not in out
    for line in ask(capsys, name, "--json")[1].splitlines():
        assert "lower" not in line
        assert json.loads(line)["meaning"] == f"No intervals: {refusal}."

    for make in (from_noise, lambda found: calibrated(found, rng=1)):
        with pytest.raises(NetworkError, match=REASON):
            make(network)

    page = make_page(release)
    assert f"No intervals: {refusal}." in page
    assert "95 % sure" not in page


def test_a_planned_release_has_the_same_intervals_at_every_door(capsys: pytest.CaptureFixture[str]) -> None:
    """The numbers of `query` are those of the command line, of JSON and of `from_noise`; the report draws them."""
    release = open_golden("planned")
    network = release.network
    assert explain_lack(network.dag, network.provenance) == ""
    answer = network.query("ill", {"smoke": "yes"}, intervals="guaranteed")
    quick = network.query("ill", {"smoke": "yes"})
    event = network.query_event({"ill": "severe"}, {"smoke": "yes"}, intervals=Intervals.GUARANTEED)
    assert answer.meaning == quick.meaning == event.meaning == PROMISE
    assert answer.lower is not None and answer.upper is not None
    assert quick.lower == pytest.approx(answer.lower) and quick.upper == pytest.approx(answer.upper)
    assert (event.lower, event.upper) == pytest.approx(answer.interval("severe"), abs=1e-9)
    assert (answer.lower < answer.probabilities).all() and (answer.probabilities < answer.upper).all()

    made = from_noise(network)
    outer = made.query("ill", {"smoke": "yes"}, method="outer")
    assert outer.lower == pytest.approx(answer.lower, abs=1e-9)
    assert outer.upper == pytest.approx(answer.upper, abs=1e-9)
    assert outer.meaning.startswith(PROMISE)

    code, out, _ = ask(capsys, "planned", "--interval", "guaranteed")
    assert code == 0
    assert f"[{answer.lower[0]:.4f}, {answer.upper[0]:.4f}]" in out
    assert out.count(PROMISE) == 2
    found, weighed = map(
        json.loads, ask(capsys, "planned", "--interval", "guaranteed", "--json")[1].splitlines()
    )
    assert [cell["lower"] for cell in found["distribution"]] == pytest.approx(answer.lower)
    assert [cell["upper"] for cell in found["distribution"]] == pytest.approx(answer.upper)
    assert (weighed["lower"], weighed["upper"]) == pytest.approx((event.lower, event.upper))
    assert found["meaning"] == weighed["meaning"] == PROMISE

    page = make_page(release)
    assert "95 % sure, for all lines together" in page
    assert "No intervals" not in page


def test_calibrated_intervals_are_those_of_a_fixed_seed(capsys: pytest.CaptureFixture[str]) -> None:
    """`query` and the command line draw with the same seed, so that the same question has the same answer."""
    network = open_golden("planned").network
    answer = network.query("ill", {"smoke": "yes"}, intervals="calibrated")
    drawn = calibrated(network, rng=0).query("ill", {"smoke": "yes"})
    assert answer.lower is not None and answer.upper is not None
    assert drawn.lower == pytest.approx(answer.lower) and drawn.upper == pytest.approx(answer.upper)
    assert drawn.probabilities == pytest.approx(answer.probabilities)
    found = json.loads(ask(capsys, "planned", "--interval", "calibrated", "--json")[1].splitlines()[0])
    assert [cell["lower"] for cell in found["distribution"]] == pytest.approx(answer.lower)
    assert found["meaning"] == answer.meaning == drawn.meaning
    wide = network.query("ill", {"smoke": "yes"})
    assert wide.lower is not None and wide.upper is not None
    assert (answer.upper - answer.lower < wide.upper - wide.lower).all()


def test_an_encoding_is_refused_with_another_way_out() -> None:
    """Bits were measured, not levels."""
    network = open_golden("privbayes-binary").network
    assert "--encoding vanilla" in network.query("ill").meaning
    with pytest.raises(NetworkError, match="--encoding vanilla"):
        from_noise(network)


def test_what_was_not_asked_for_is_not_said() -> None:
    """Without intervals an answer is bare, whatever the network; an unknown kind is refused before any work."""
    for name in ("planned", "adaptive"):
        network = open_golden(name).network
        answer = network.query("ill", intervals="none")
        assert (answer.lower, answer.upper, answer.meaning) == (None, None, "")
        with pytest.raises(QueryError, match="intervals must be guaranteed, calibrated or none, not 'wide'"):
            network.query("ill", intervals="wide")
    plain = Network.build({"a": ["x", "y"]}, {"a": []}, {"a": [0.5, 0.5]})
    assert plain.query("a").meaning == ""
    with pytest.raises(NetworkError, match="does not say what was measured"):
        plain.query("a", intervals="calibrated")
    private = open_golden("planned").network
    with pytest.raises(QueryError, match="given as a likelihood"):
        private.query("ill", likelihood={"smoke": np.array([0.5, 1.0])}, intervals="guaranteed")
