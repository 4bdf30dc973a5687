"""Values as text: numbers read and written exactly, everything else shown briefly and on one line."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from decimal import Context, Decimal
from difflib import SequenceMatcher
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from discreet.values.errors import DiscreetError, FormatError, SchemaError

Number = Fraction | Decimal | int | float | str

_DECIMAL = re.compile(r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,3})?")
_DEEP_KEY = re.compile(
    r"""(?<![\w"'\\-])(?:(?:[\w-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*\.[ \t]*){65}""", re.ASCII
)
_RATIO = re.compile(r"[+-]?\d{1,400}\s*/\s*\d{1,400}")


def read_fraction(value: Number, what: str, error: type[DiscreetError]) -> Fraction:
    """The exact value of a number; a float counts as the decimal text that it prints as.

    0.1 is read as 1/10, because that is what the caller wrote, and not as the binary number nearest to it.
    """
    if isinstance(value, bool):
        raise error(f"{what} must be a number, not {value!r}")
    if isinstance(value, Fraction | int):
        return Fraction(value)
    if isinstance(value, np.generic):
        value = value.item()  # its own repr is not a number
    if isinstance(value, int | float | Decimal):
        if not math.isfinite(value):
            raise error(f"{what} must be a finite number, not {value}")
        value = repr(value) if isinstance(value, float) else str(value)
    if not isinstance(value, str):
        raise error(f"{what} must be a number or its text, not {type(value).__name__}")
    text = value.strip()
    # The patterns also bound the size: Fraction("1e999999999") would fill the memory.
    if _DECIMAL.fullmatch(text):
        return Fraction(text)
    if _RATIO.fullmatch(text):
        above, below = text.split("/")
        if int(below):
            return Fraction(int(above), int(below))
    raise error(f'{what} must be a finite number such as "0.1", "1/3" or "1e-6", not {value!r}')


def read_positive(value: Number, what: str, error: type[DiscreetError]) -> Fraction:
    """The exact value of a number that must be above zero."""
    found = read_fraction(value, what, error)
    if found <= 0:
        raise error(f"{what} must be above 0, not {show_fraction(found)}")
    return found


def require_share(value: Fraction | float, what: str, error: type[DiscreetError]) -> None:
    """Refuse what does not lie strictly between 0 and 1."""
    if not 0 < value < 1:
        shown = show_fraction(value) if isinstance(value, Fraction) else value
        raise error(f"{what} must lie strictly between 0 and 1, not {shown}")


def show_fraction(value: Fraction) -> str:
    """The shortest exact spelling (1/8, 0.1, 1e-6), or six digits after a ≈ where that is long."""
    candidates = [str(value)]
    twos_and_fives = value.denominator
    for prime in (2, 5):
        while twos_and_fives % prime == 0:
            twos_and_fives //= prime
    if twos_and_fives == 1 and value.denominator.bit_length() < 400:
        digits = _decimal_digits(value)
        candidates.insert(0, digits)
        if 0 < abs(value) < Fraction(1, 1000):
            mantissa = digits.split(".")[1].lstrip("0")
            point = f".{mantissa[1:]}" if mantissa[1:] else ""
            exponent = len(digits.split(".")[1]) - len(mantissa) + 1
            candidates.append(f"{'-' if value < 0 else ''}{mantissa[0]}{point}e-{exponent}")
    shortest = min(candidates, key=len)
    if len(shortest) <= 14:
        return shortest
    brief = (Decimal(value.numerator) / Decimal(value.denominator)).normalize(Context(prec=6))
    return f"≈ {brief:g}"  # through Decimal, for a float may not reach that far


def show_equation(symbol: str, value: Fraction) -> str:
    """An amount with its symbol: ε = 1/3, or ε ≈ 0.142857 where the exact text is long."""
    text = show_fraction(value)
    return f"{symbol} {text}" if text.startswith("≈") else f"{symbol} = {text}"


def show_count(count: int) -> str:
    """A number of cells; beyond 10^36 no digit tells anybody anything, and of thousands Python writes none."""
    return f"{count:,}" if count < 10**36 else "more than 10^36"


def show_bytes(count: int) -> str:
    """A size as people say it: 340 B, 12 kB, 27 GB."""
    for unit, size in (("PB", 10**15), ("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.0f} {unit}"
    return f"{count} B"


def _decimal_digits(value: Fraction) -> str:
    places = 0
    while (value * 10**places).denominator != 1:
        places += 1
    whole = str(abs(value.numerator * 10**places // value.denominator)).rjust(places + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{whole[: len(whole) - places]}.{whole[len(whole) - places :]}" if places else sign + whole


def float_below(value: Fraction) -> float:
    """The largest float that is not above an exact value."""
    nearest = _nearest(value)
    return (
        nearest if nearest != math.inf and Fraction(nearest) <= value else math.nextafter(nearest, -math.inf)
    )


def float_above(value: Fraction) -> float:
    """The smallest float that is not below an exact value."""
    return -float_below(-value)


def _nearest(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


LISTED = 8
"""How many of a list's members a message names before it trails off."""
COMPARED, WORD = 500, 40
"""How many members, and letters of each, are compared with what was asked for."""

SHOWN = 60
"""How many characters of a value a message shows."""


def show(value: object) -> str:
    """The repr of a value, cut to `SHOWN` characters; of a text, the quotes stay closed."""
    if isinstance(value, str) and len(value) > SHOWN:
        value = value[: SHOWN + 1]  # so that the repr of a huge cell is never made
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        text = f"a huge {type(value).__name__}"
    if len(text) <= SHOWN:
        return text
    return f"{text[: SHOWN - 2]}…{text[0]}" if isinstance(value, str) else text[: SHOWN - 1] + "…"


def show_line(text: str) -> str:
    """A text on one line of a terminal: blanks folded, and no character that would move its cursor or its colours."""
    return show_text(" ".join(text.split()))


def show_text(text: str) -> str:
    """A text of several lines for a terminal: no character but a line break moves its cursor or its colours."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(
        char
        if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")
        else char.encode("unicode_escape", "surrogatepass").decode()
        for char in text
    )


def list_some(values: Iterable[object], like: object = None) -> str:
    """The first `LISTED` values, shown and separated by commas, with an ellipsis for the rest.

    Where not all of them fit, those come first that are spelt most `like` what was asked for.
    """
    if isinstance(like, str):
        values = list(islice(values, COMPARED))
        if len(values) > LISTED:
            wanted = like[:WORD].casefold()
            values.sort(
                key=lambda value: -SequenceMatcher(None, wanted, str(value)[:WORD].casefold()).ratio()
            )
    found = [show(value) for value in islice(values, LISTED + 1)]
    return ", ".join(found[:LISTED] + ["…"] * (len(found) > LISTED))


def require_keys(
    document: object, what: str, keys: Collection[str], optional: Collection[str] = ()
) -> Mapping[str, Any]:
    """A document with these keys and no others: what stood under another would be published without a look."""
    known = [*keys, *optional]
    if not isinstance(document, Mapping):
        raise FormatError(f"{what} must have the keys {list_some(known)}, not be {show(document)}")
    for key in document:
        if key not in known:
            raise FormatError(f"{what} has the unknown key {show(key)}; allowed are {list_some(known)}")
    for key in keys:
        if key not in document:
            raise FormatError(f"{what} lacks the key {show(key)}")
    return document


def load_toml(text: str) -> dict[str, Any]:
    """What TOML says; keys of more than 64 names are refused first, because their readers take the square of that."""
    import tomllib

    if _DEEP_KEY.search(text):
        raise FormatError("not valid TOML here: a key has more than 64 names with dots between them")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FormatError(f"not valid TOML: {error}") from None
    except (RecursionError, ValueError) as error:  # arrays nested too deep; an integer of thousands of digits
        raise FormatError(f"not valid TOML: {type(error).__name__}: {error}") from None


TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""What turns the direction of the text around it: a page would show "no" where the document says "on", or move what
stands behind a name before it."""


def require_name(what: str, name: object) -> None:
    """Refuse a name that is not text, is blank, or holds a character that would break a line or a file."""
    if not isinstance(name, str):
        raise SchemaError(f"{what} {show(name)} is a {type(name).__name__}; it must be text")
    if not name.strip():
        raise SchemaError(f"{what} {show(name)} is empty; it needs at least one visible character")
    for char in name:
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp"):
            raise SchemaError(
                f"{what} {show(name)} contains {char!r}; control characters and surrogates are not allowed"
            )
    _require_straight(what, name)


def require_label(what: str, label: object) -> None:
    """Refuse a level that is not text, or that UTF-8 or a C string cannot hold."""
    if not isinstance(label, str):
        raise SchemaError(f"{what} {show(label)} is a {type(label).__name__}; levels are text")
    if "\0" in label or not _encodable(label):
        raise SchemaError(
            f"{what} {show(label)} contains a NUL or a surrogate; neither is allowed in a level"
        )
    _require_straight(what, label)


def _require_straight(what: str, text: str) -> None:
    if not text.isascii() and (found := TURNING.intersection(text)):
        raise SchemaError(
            f"{what} {show(text)} contains {min(found)!r}, which turns the text behind it around; take it out"
        )


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


_ID_NAME = re.compile(
    r"(^|[_ .-])(id|ids|nr|no|key|uuid|guid|mrn|ssn|pid|patient|person|member|client|subject|case)($|[_ .-])",
    re.I,
)
"""How columns that name people or records are called."""
_CAMEL_ID = re.compile(r"[a-z](Id|ID|Key|UUID)$")


def is_id_name(name: str) -> bool:
    """Whether a column is called like one that names people or records."""
    return bool(_ID_NAME.search(name) or _CAMEL_ID.search(name))
