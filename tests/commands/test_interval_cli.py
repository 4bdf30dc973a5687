"""`discreet query` with intervals: of a private release, of a credal network, and none where there are none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import discreet as dc
from discreet.doors.cli import main
from discreet.networks.credal import contaminate
from discreet.networks.evidence import describe_evidence

QUESTION = "P(lung | smoke=yes)"


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A release of 20 000 rows of Asia."""
    asia = dc.examples.asia()
    rows = asia.sample(20_000, rng=1).arrow()
    with dc.open_airlock(rows, asia.schema, budget=dc.PureDP("1"), unit="add-remove") as airlock:
        network = dc.learn.planned(airlock, asia.dag, spend="1")
    path = tmp_path_factory.mktemp("release") / "release.json"
    dc.write_release(network, path)
    return str(path)


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A release of the adaptive search in which three attributes meet, but only pairs of them were measured."""
    asia = dc.examples.asia()
    names = ["smoke", "lung", "bronc"]
    rows = asia.sample(2_000, rng=1).arrow().select(names)
    pairs = [("smoke", "lung"), ("smoke", "bronc"), ("lung", "bronc")]
    schema = asia.schema.select(names)
    with dc.open_airlock(rows, schema, budget=dc.PureDP("1"), unit="add-remove") as airlock:
        network = dc.learn.adaptive(airlock, spend="1", sets=pairs, width=2)
    path = tmp_path_factory.mktemp("searched") / "release.json"
    dc.write_release(network, path)
    return str(path)


@pytest.fixture
def credal(tmp_path: Path) -> str:
    """Asia, each row with a tenth of anything mixed in."""
    path = tmp_path / "credal.json"
    contaminate(dc.examples.asia(), 0.1).write(path)
    return str(path)


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, object]]:
    """The JSON answers of one command."""
    assert main(["query", *arguments, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def read_ends(answer: dict[str, object]) -> tuple[float, float]:
    """The interval of the first level, or of the event."""
    cells = answer.get("distribution")
    cell = cells[0] if isinstance(cells, list) else answer
    assert 0 <= cell["lower"] <= cell["upper"] <= 1
    return cell["lower"], cell["upper"]


def test_a_release_is_asked_with_any_kind_of_interval(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Guaranteed ones unasked; calibrated ones are narrower; both for distributions and for events."""
    event = "P(lung=yes | smoke=yes)"
    plain = ask(capsys, release, QUESTION, event)
    sure = ask(capsys, release, QUESTION, event, "--interval", "guaranteed")
    likely = ask(capsys, release, QUESTION, event, "--interval", "calibrated")
    for k in range(2):
        assert read_ends(plain[k]) == pytest.approx(read_ends(sure[k]), abs=2e-3)
        (low, high), (least, most) = read_ends(sure[k]), read_ends(likely[k])
        assert most - least < high - low
        assert "95 % sure" in str(plain[k]["meaning"])
        assert "About 95 %" in str(likely[k]["meaning"])
    assert read_ends(plain[0]) == pytest.approx(read_ends(plain[1]), abs=1e-6)
    none = ask(capsys, release, QUESTION, event, "--interval", "none")
    assert all("lower" not in json.dumps(answer) and "meaning" not in answer for answer in none)


def test_intervals_are_printed_beside_the_numbers(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each level, and what the brackets mean."""
    assert main(["query", release, QUESTION, "P(lung=yes)"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == QUESTION
    assert lines[1].count("[") == lines[2].count("[") == 1
    assert lines[3].startswith("  95 % sure, for all answers together")
    assert lines[4].startswith("P(lung=yes) = 0.")
    assert lines[4].endswith("]")


def test_a_credal_network_answers_with_its_own(credal: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Bounds on distributions and events, and which levels may be the most probable."""
    found, event, decision = ask(
        capsys, credal, QUESTION, "P(lung=yes | smoke=yes)", "MAP(bronc | smoke=yes)"
    )
    low, high = read_ends(found)
    assert high - low == pytest.approx(0.1, abs=1e-6)
    assert read_ends(event) == pytest.approx((low, high), abs=1e-6)
    assert decision["certainly one of"] == ["yes"]
    assert main(["query", credal, "MAP(bronc | smoke=yes)"]) == 0
    assert capsys.readouterr().out == "the most probable bronc given smoke=yes is certainly yes\n"


def test_a_search_answers_what_no_table_holds_from_all_of_them(
    searched: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only pairs were measured: a question about three attributes has bounds from the pairs, and says so."""
    for answer in ask(capsys, searched, QUESTION, "P(lung=yes | smoke=yes, bronc=yes)"):
        read_ends(answer)
    assert "No measured table holds lung, smoke and bronc together." in str(answer["meaning"])
    sure = read_ends(answer)
    (likely,) = ask(capsys, searched, "P(lung=yes | smoke=yes, bronc=yes)", "--interval", "calibrated")
    low, high = read_ends(likely)
    assert sure[0] < low < high < sure[1]
    assert "made again from the noisy tables" in str(likely["meaning"])


def test_where_no_calibrated_interval_would_hold_the_guaranteed_one_is_shown(
    searched: str, release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the reason; a question that is wrong is refused all the same."""
    (sure,) = ask(capsys, searched, "surely(bronc | smoke=yes)", "--interval", "calibrated")
    assert str(sure["meaning"]).startswith("No calibrated interval: surely(…) is told by guaranteed")
    wide = ask(capsys, release, "P(asia=yes | bronc=yes)", "--of", "table", "--interval", "calibrated")[0]
    assert str(wide["meaning"]).startswith("No calibrated interval: no measured table holds asia and bronc")
    assert read_ends(wide) == read_ends(ask(capsys, release, "P(asia=yes | bronc=yes)", "--of", "table")[0])
    assert main(["query", searched, "P(nobody)", "--interval", "calibrated"]) == 2
    assert "unknown attribute 'nobody'" in capsys.readouterr().err


def test_a_count_says_why_its_interval_is_wide(searched: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Because only pairs were measured."""
    (found,) = ask(capsys, searched, "count(lung=yes, smoke=yes, bronc=yes)")
    assert "No measured table holds lung, smoke and bronc together." in str(found["meaning"])


def test_many_levels_are_named_by_the_first_and_the_last() -> None:
    """As those of bins that age>=70 leaves."""
    found = describe_evidence({"a": ["x", "y"], "b": [str(k) for k in range(9)]})
    assert found == "a=x|y, b=0|… 7 more …|8"


def test_a_release_on_the_graph_of_a_search_has_intervals(
    searched: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the message advises works: the learned graph, measured again."""
    found = dc.read_release(searched).network
    rows = dc.examples.asia().sample(2_000, rng=1).arrow().select(list(found.nodes))
    with dc.open_airlock(rows, found.schema, budget=dc.PureDP("1"), unit="add-remove") as airlock:
        network = dc.learn.planned(airlock, found.dag, spend="1")
    path = tmp_path / "again.json"
    dc.write_release(network, path)
    for answer in ask(capsys, str(path), QUESTION, "P(lung=yes | smoke=yes)"):
        read_ends(answer)
        assert "95 % sure" in str(answer["meaning"])


def test_an_encoding_has_intervals_through_its_bits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bits were measured, not levels, and each in a table of its own: bounds hold what they leave open."""
    schema = dc.Schema.of({"grade": range(3)})
    values = [str(code % 3) for code in range(300)]
    with dc.open_airlock({"grade": values}, schema, budget=dc.PureDP("1"), unit="add-remove") as airlock:
        network = dc.learn.privbayes(airlock, spend="1", encoding="binary", k=0)
    path = tmp_path / "bits.json"
    dc.write_release(network, path)
    (answer,) = ask(capsys, str(path), "P(grade)")
    low, high = read_ends(answer)
    room = high - low  # such an interval misses once in thousands of releases, by so much once in 10^9
    assert low - room <= 1 / 3 <= high + room
    assert room < 1 / 3
    assert "No measured table holds grade_bit1 and grade_bit2 together." in str(answer["meaning"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ASIA", QUESTION, "--interval", "calibrated"], "does not say what was measured"),
        (["ASIA", QUESTION, "--interval", "guaranteed"], "does not say what was measured"),
        (
            ["ASIA", QUESTION, "--interval", "wide"],
            "intervals must be guaranteed, calibrated or none, not 'wide'",
        ),
        (["CREDAL", QUESTION, "--interval", "calibrated"], "has intervals of its own"),
        (["CREDAL", "MPE(smoke=yes)"], "a credal network answers"),
        (["CREDAL", "P(lung | smoke=perhaps)"], "no such level"),
        (["CREDAL", "P(nose)"], "unknown attribute"),
    ],
)
def test_what_has_no_intervals_says_so(
    arguments: list[str], said: str, credal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line, exit code 2."""
    plain = tmp_path / "asia.json"
    dc.examples.asia().write(plain)
    places = {"ASIA": str(plain), "CREDAL": credal}
    assert main(["query", *(places.get(word, word) for word in arguments)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err
    assert printed.err.count("\n") == 1
