"""A malformed or hostile BIF file is refused with its name and line, quickly, and in no other way."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.networks import examples
from discreet.networks.formats.bif import format_bif, parse_bif, read_bif, write_bif
from discreet.networks.formats.bif_text import Tokens
from discreet.networks.network import Network
from discreet.values.errors import DiscreetError, FormatError, TooLarge

GOOD = """network unknown {
}
variable a {
  type discrete [ 2 ] { yes, no };
}
variable b {
  type discrete [ 2 ] { hi, lo };
}
probability ( a ) {
  table 0.25, 0.75;
}
probability ( b | a ) {
  (yes) 0.1, 0.9;
  (no) 0.5, 0.5;
}
"""
EXTRA = "variable c {\n  type discrete [ 2 ] { 0, 1 };\n}\n"


def test_the_good_file_is_good() -> None:
    assert parse_bif(GOOD).nodes == ("a", "b")


@pytest.mark.parametrize(
    ("before", "after", "line", "message"),
    [
        ("0.1, 0.9", "-0.1, 1.1", 13, "'-0.1' is not a number between 0 and 1"),
        ("0.25, 0.75", "0, 1.5", 10, "'1.5' is not a number between 0 and 1"),
        ("0.5, 0.5", "nan, 0.5", 14, "'nan' is not a number"),
        ("0.5, 0.5", "inf, 0.5", 14, "'inf' is not a number"),
        ("0.5, 0.5", "1e999, 0", 14, "'1e999' is not a number between"),
        ("0.5, 0.5", "0_5, 0.5", 14, "'0_5' is not a number"),
        ("0.5, 0.5", "٠.٥, 0.5", 14, "is not a number"),
        ("0.5, 0.5", "0.5.5, 0.5", 14, "'0.5.5' is not a number"),
        ("0.5, 0.5", "high, low", 14, "'high' is not a number"),
        ("0.5, 0.5", "__import__, 0.5", 14, "'__import__' is not a number"),
        (
            "0.1, 0.9",
            "0.2, 0.9",
            13,
            r"conditional \('yes'\) of 'b' sums to 1.1; it must sum to 1 within 0.001",
        ),
        ("0.25, 0.75", "0, 0", 10, r"conditional \(\) of 'a' sums to 0;"),
        ("0.5, 0.5", "0.5", 14, "a conditional of 'b' has 1 numbers, not 2"),
        ("0.5, 0.5", "0.5 0.25 0.25", 14, "a conditional of 'b' has 3 numbers, not 2"),
        ("0.25, 0.75", "0.25, 0.75, 0", 10, "a conditional of 'a' has 3 numbers, not 2"),
        ("  (no) 0.5, 0.5;\n", "", 12, r"variable 'b' lacks the conditional \('no'\)"),
        ("(no) 0.5", "(yes) 0.5", 14, r"variable 'b' has the conditional \('yes'\) twice"),
        ("(no) 0.5", "(maybe) 0.5", 14, "a conditional of 'b' names 'maybe', no state of 'a'"),
        ("(no) 0.5", "(no, hi) 0.5", 14, "a conditional of 'b' has 2 states, not 1"),
        ("(no) 0.5", "(no 0.5", 14, r"'\(' begins an entry that lacks its '\)'"),
        ("(no) 0.5", "table 0.5", 14, "a conditional of 'b' has 2 numbers, not 4"),
        ("(no) 0.5, 0.5", "table .5 .5 .5 .5", 14, "a whole table and also single conditionals"),
        ("(no) 0.5", "no 0.5", 14, "found 'no' where a conditional of 'b' should begin"),
        ("(no) 0.5, 0.5", "default 1 0; default 1 0", 14, "found 'default' where a conditional"),
        ("[ 2 ] { hi", "[ 3 ] { hi", 7, "variable 'b' declares '3' states and lists 2"),
        ("[ 2 ] { hi", "[ two ] { hi", 7, "variable 'b' declares 'two' states and lists 2"),
        ("[ 2 ] { hi", "[ 2.0 ] { hi", 7, "variable 'b' declares '2.0' states and lists 2"),
        ("{ hi, lo }", "{ hi lo mid }", 7, "variable 'b' declares '2' states and lists 3"),
        ("{ hi, lo }", "{ hi, hi }", 7, "variable 'b' lists the state 'hi' twice"),
        ("[ 2 ] { hi, lo }", "[ 0 ] { }", 7, "variable 'b' declares '0' states and lists 0"),
        ("type discrete [ 2 ] { hi", "type continuous [ 2 ] { hi", 7, "found 'continuous' where 'discrete'"),
        ("  type discrete [ 2 ] { hi, lo };\n", "", 6, "variable 'b' has no 'type discrete' line"),
        ("lo };", "lo }; type discrete [ 2 ] { x, y };", 7, "found 'type' in variable 'b'"),
        ("variable b", "variable a", 6, "variable 'a' is declared twice"),
        ("variable b", "variable {", 6, "found '{' where the name of a variable should be"),
        ("variable b", "variable c", 6, "variable 'c' has no probability block"),
        ("b | a", "b | z", 12, "variable 'b' has the unknown parent 'z'"),
        ("b | a", "b | a, a", 12, "variable 'b' names a parent twice, or itself"),
        ("b | a", "b | b", 12, "variable 'b' names a parent twice, or itself"),
        ("b | a", "b | | a", 12, "found '|' where the name of a parent should be"),
        ("( b | a )", "( a )", 12, "variable 'a' has two probability blocks"),
        ("network unknown {\n}\n", EXTRA, 1, "variable 'c' has no probability block"),
        ("variable a", "network x { }\nvariable a", 3, "found 'network' where 'variable' or"),
        ("variable a", "hello variable a", 3, "found 'hello' where 'variable' or"),
        ("unknown {", "unknown { hello", 1, "found 'hello' in the network block"),
        ("0.5, 0.5;\n}", "0.5, 0.5;\n", 14, "the file ends inside a block"),
        ("0.5, 0.5;", "0.5, 0.5", 14, r"'\(' begins an entry that lacks its ';'"),
        ("0.1, 0.9;", "0.1, 0.9", 14, r"found '\(' where ';' should end a conditional of 'b'"),
        ("0.25, 0.75;", "0.25, 0.75", 11, "found '}' where ';' should end a conditional of 'a'"),
        ("hi, lo }", 'hi, "lo }', 7, "a quoted name is never closed"),
        ("hi, lo }", "hi, lo /* }", 7, "a comment is never closed"),
        ("hi, lo }", "hi, lo /*/ }", 7, "a comment is never closed"),
        ("yes, no", f"yes, {'n' * 5000}", 4, "a state of 'a' has 5,000 characters; at most 4,096"),
        ("variable b", f"variable {'b' * 10**6}", 6, "the name of a variable has 1,000,000 characters"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_each_fault_is_named_with_its_line(before: str, after: str, line: int, message: str) -> None:
    assert before in GOOD
    with pytest.raises(FormatError, match=message) as refused:
        parse_bif(GOOD.replace(before, after, 1), "clinic.bif")
    assert str(refused.value).startswith(f"clinic.bif, line {line}: ")
    assert len(str(refused.value)) < 300
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'variable " " { type discrete [ 2 ] { x, y }; }\nprobability ( " " ) { table 0 1; }',
            "name ' ' is empty",
        ),
        (
            "variable v { type discrete [ 1 ] { x }; }\nprobability ( v ) { table 1; }",
            "'v': 1 levels; at least 2",
        ),
        (
            "variable v { type discrete [ 2 ] { x\0, y }; }\nprobability ( v ) { table 0 1; }",
            "contains a NUL",
        ),
    ],
)
def test_what_no_schema_allows_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(FormatError, match=f"^clinic.bif, line 2: .*{message}"):
        parse_bif("\n" + text, "clinic.bif")


def test_lines_are_counted_through_comments_and_quotes() -> None:
    text = '/* one\ntwo */ // three "\nvariable "a\nb" { type discrete [ 2 ] { x, x }; }'
    with pytest.raises(FormatError, match=r"^f, line 4: variable 'a\\nb' lists the state 'x' twice"):
        parse_bif(text, "f")


@pytest.mark.parametrize("text", ["", "  \n\t", "// nothing\n", "/* */"])
def test_an_empty_file_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="nothing in the file"):
        parse_bif(text, "empty.bif")


def test_a_file_without_variables_is_refused() -> None:
    with pytest.raises(FormatError, match="no variable is declared"):
        parse_bif("network unknown { }")


def test_a_cycle_is_refused_with_its_line() -> None:
    text = GOOD.replace("( a ) {\n  table 0.25, 0.75;", "( a | b ) {\n  (hi) 0.5, 0.5;\n (lo) 1, 0;")
    with pytest.raises(FormatError, match="line 9: the graph has a cycle; 'a' is on it or below it"):
        parse_bif(text)


def wide(parents: int, levels: int = 2) -> str:
    states = ", ".join(f"s{i}" for i in range(levels))
    names = [f"v{i}" for i in range(parents)]
    text = [
        f"variable {name} {{ type discrete [ {levels} ] {{ {states} }}; }}\n" for name in [*names, "child"]
    ]
    row = " ".join(["1"] + ["0"] * (levels - 1))
    text += [f"probability ( {name} ) {{ default {row}; }}\n" for name in names]
    return "".join(text) + f"probability ( child | {', '.join(names)} ) {{ default {row}; }}\n"


@pytest.mark.parametrize(("parents", "levels"), [(40, 2), (24, 2), (63, 900), (64, 2), (5000, 2), (3, 300)])
def test_many_parents_are_counted_before_anything_is_allocated(parents: int, levels: int) -> None:
    started = time.process_time()
    with pytest.raises(TooLarge, match=r"^big\.bif, line \d+: .*(cells|parents); at most [\d,]+ are allowed"):
        parse_bif(wide(parents, levels), "big.bif")
    assert time.process_time() - started < 5


def test_many_large_tables_are_too_large_together() -> None:
    text = wide(22)
    for copy in "xyz":
        text += f"variable {copy} {{ type discrete [ 4 ] {{ p, q, r, s }}; }}\n"
        parents = ", ".join(f"v{i}" for i in range(22))
        text += f"probability ( {copy} | {parents} ) {{ default 1 0 0 0; }}\n"
    with pytest.raises(
        TooLarge, match="with the table of 'y' there are 41,943,084 cells; at most 33,554,432"
    ):
        parse_bif(text)


def test_a_wide_default_that_fits_is_read() -> None:
    assert parse_bif(wide(10)).cpt("child").values.shape == (2,) * 11


def test_broken_and_swollen_gzip_is_refused(tmp_path: Path) -> None:
    packed = gzip.compress(GOOD.encode())
    path = tmp_path / "x.bif.gz"
    for broken in (packed[:-12], packed[:20], packed[:2], packed[:30] + b"\xff" * 9 + packed[39:]):
        path.write_bytes(broken)
        with pytest.raises(FormatError, match="not a complete gzip file"):
            read_bif(path)
    path.write_bytes(gzip.compress(b" " * 10**8))
    with pytest.raises(TooLarge, match="more than 33,554,432 bytes unpacked"):
        read_bif(path)
    path.write_text(GOOD)
    with pytest.raises(TooLarge, match="more than 100 bytes, the most that is read"):
        read_bif(path, max_bytes=100)


@pytest.mark.parametrize(
    "data", [b"\x00\x01\x02\xff\xfe", bytes(range(256)), b"\x89PNG\r\n\x1a\n", GOOD.encode("utf-16")]
)
def test_binary_garbage_is_refused(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.bif").write_bytes(data)
    with pytest.raises(FormatError, match=r"x\.bif, line \d: "):
        read_bif(tmp_path / "x.bif")


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"x\.bif: cannot be read: No such file"):
        read_bif(tmp_path / "x.bif")
    with pytest.raises(FormatError, match="is a folder; name a file in it"):
        read_bif(tmp_path)


def test_a_pickle_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "x.bif").write_bytes(b"cos\nsystem\n(S'touch " + bytes(tmp_path / "ran") + b"'\ntR.")
    with pytest.raises(FormatError):
        read_bif(tmp_path / "x.bif")
    assert not (tmp_path / "ran").exists()


N = 200_000


@pytest.mark.parametrize(
    "text",
    [
        '"' * N + '"',
        '"\\' * N,
        '\\"' * N,
        '"' + "\\\\" * N,
        "/*" * N,
        "//" * N,
        "/* */" * N + "x",
        "{" * N,
        "(" * N,
        ";" * N,
        "probability ( a ) { " + "(" * N,
        "probability ( a ) { " + "( ) ;" * N + "}",
        "variable a { " + "property ;" * N,
        "variable a { type discrete [ 9 ] { " + " ".join(map(str, range(N))),
        "network " + "x" * N,
        "".join(f"variable v{i} {{ type discrete [ 2 ] {{ a b }}; }}" for i in range(N // 20)),
        "probability ( " + " ".join(f"p{i}" for i in range(N)) + ") { }",
        GOOD.replace("0.25", "0." + "2" * N),
    ],
    ids=range(18),
)
def test_no_text_takes_more_than_linear_time(text: str) -> None:
    started = time.process_time()
    with pytest.raises(DiscreetError):
        parse_bif(text)
    assert time.process_time() - started < 10  # well under 1 s as a rule


def test_many_small_variables_are_read_in_linear_time() -> None:
    blocks = (
        f"variable v{i} {{ type discrete [ 2 ] {{ a b }}; }} probability ( v{i} ) {{ table 0 1; }}\n"
        for i in range(8_000)
    )
    started = time.process_time()
    assert len(parse_bif("".join(blocks)).nodes) == 8_000
    assert time.process_time() - started < 20  # about 1 s as a rule


def attempt(read: Callable[[], Network]) -> Network | DiscreetError:
    """The network or the refusal; anything else that is raised fails the test."""
    try:
        return read()
    except DiscreetError as error:
        return error


BYTES = format_bif(examples.asia()).encode()
WORDS = Tokens(BYTES.decode(), "asia").words
CHANGES = st.tuples(
    st.sampled_from(["flip", "cut", "insert", "repeat"]),
    st.integers(0, len(BYTES) - 1),
    st.integers(0, 40),
    st.sampled_from(
        [b"\x00", b'"', b"/*", b"//", b"{", b"}", b"(", b")", b";", b"|", b"nan", b"-", b"1e9", b"\xff"]
    ),
)


@settings(deadline=None, max_examples=300)
@given(changes=st.lists(CHANGES, min_size=1, max_size=5))
def test_a_damaged_file_is_read_or_refused(
    changes: list[tuple[str, int, int, bytes]], tmp_path_factory: object
) -> None:
    data = bytearray(BYTES)
    for how, at, length, extra in changes:
        if how == "flip" and at < len(data):
            data[at] ^= 1 << (length % 8)
        elif how == "cut":
            del data[at : at + length]
        elif how == "insert":
            data[at:at] = extra
        else:
            data[at:at] = data[at : at + length]
    path = tmp_path_factory.getbasetemp() / "damaged.bif"  # type: ignore[attr-defined]
    path.write_bytes(data)
    found = attempt(lambda: read_bif(path))
    if isinstance(found, DiscreetError):
        assert str(path) in str(found)
    else:
        assert format_bif(parse_bif(format_bif(found))) == format_bif(found)


@settings(deadline=None, max_examples=300)
@given(
    places=st.lists(
        st.tuples(st.integers(0, len(WORDS) - 1), st.integers(0, len(WORDS) - 1)), min_size=1, max_size=3
    ),
    how=st.sampled_from(["drop", "swap", "copy", "end"]),
)
def test_misplaced_words_are_read_or_refused(places: list[tuple[int, int]], how: str) -> None:
    words = list(WORDS)
    for here, there in places:
        if how == "drop":
            words[here] = ""
        elif how == "swap":
            words[here], words[there] = words[there], words[here]
        elif how == "copy":
            words[here] = words[there]
        else:
            words[here:] = []
            break
    found = attempt(lambda: parse_bif("\n".join(words), "words.bif"))
    if isinstance(found, DiscreetError):
        assert str(found).startswith("words.bif, line ")
    else:
        assert format_bif(parse_bif(format_bif(found))) == format_bif(found)


def test_writing_replaces_whole_files_only(tmp_path: Path) -> None:
    target = tmp_path / "x.bif"
    write_bif(examples.asia(), target)
    long = Network.build({"a": ["x" * 5000, "y"]}, {"a": []}, {"a": [0.5, 0.5]})
    with pytest.raises(FormatError, match="has 5,000 characters; BIF names have at most 4,096"):
        write_bif(long, target)
    assert read_bif(target).close_to(examples.asia(), 0)
    with pytest.raises(FormatError, match="No such file"):
        write_bif(examples.asia(), tmp_path / "nowhere" / "x.bif")
    assert [path.name for path in tmp_path.iterdir()] == ["x.bif"]
