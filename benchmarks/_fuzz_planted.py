"""Weaknesses that the fuzzer must find: each undoes one defence in the child, and names the inputs that reach it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Weakness:
    """How a defence is undone, in which kinds of input it shows, and as what."""

    plant: Callable[[], None]
    kinds: tuple[str, ...]
    shows: str


def _set(module: str, name: str, value: Any) -> None:
    """Replace a name wherever it was imported to."""
    import importlib

    old = getattr(importlib.import_module(module), name)
    for found in list(sys.modules.values()):
        if getattr(found, "__name__", "").startswith("discreet") and getattr(found, name, None) is old:
            setattr(found, name, value)


def _read_any_exponent() -> None:
    _set("discreet.values.text", "_DECIMAL", re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?"))


def _look_twice_at_newlines() -> None:
    pattern = re.compile(r"^\s*(network|variable|probability)\b[^{(]*[{(]", re.MULTILINE)
    _set(
        "discreet.networks.formats.release", "_looks_like_bif", lambda text: pattern.search(text) is not None
    )


def _take_any_option() -> None:
    def require_options(learner: Any, options: Any) -> None:
        for (
            value
        ) in options.values():  # steps of a search, begun before anybody has asked how many there may be
            for _ in range(value if type(value) is int else 0):
                pass

    _set("discreet.learning.learner", "require_options", require_options)


def _show_escapes() -> None:
    _set("discreet.values.text", "show_line", lambda text: text)
    _set("discreet.values.text", "show", lambda value: str(value))


def _forget_types() -> None:
    _set("discreet.values.text", "require_keys", lambda document, what, keys, optional=(): document)


def _allow_any_amount() -> None:
    _set("discreet.doors.feasible", "require_meaningful", _read_promise_late)


def _read_promise_late(spend: Any) -> None:
    """The amount is looked at after the debit, as it once was."""
    from discreet.core.ledger import Ledger
    from discreet.values.errors import BudgetError

    real = Ledger.answer

    def answer(self: Ledger, *arguments: Any) -> bytes:
        if spend.amounts[0] > 700:
            raise BudgetError("too large, found too late")
        return real(self, *arguments)

    Ledger.answer = answer  # type: ignore[method-assign]


def _trust_arrow() -> None:
    import ctypes

    def check(label: str, path: Path) -> None:
        data = path.read_bytes()
        if data[:6] == b"ARROW1" and data != (path.parents[1] / "clinic" / path.name).read_bytes():
            ctypes.string_at(0)  # what an offset out of a damaged file does

    _set("discreet.rows.readers.arrow_check", "require_sound", check)


def _make_ledger_first() -> None:
    from discreet.core.ledger import require_line as real

    def require_line(what: str, text: str, **limits: int) -> None:
        if sys._getframe(1).f_globals["__name__"] != "discreet.doors.cli.budget":
            real(what, text, **limits)  # then the ledger is made already

    _set("discreet.core.ledger", "require_line", require_line)


def _say_more() -> None:
    def refuse(message: str) -> int:
        print("error:", message, file=sys.stderr)
        print("error: see above", file=sys.stderr)
        return 2

    _set("discreet.doors.cli.commands", "_refuse", refuse)


def _exit_otherwise() -> None:
    _set("discreet.doors.cli.commands", "BAD_INPUT", 3)


WEAKNESSES: dict[str, Weakness] = {
    "any exponent": Weakness(_read_any_exponent, ("arguments",), "hang"),
    "a quadratic pattern": Weakness(_look_twice_at_newlines, ("edges",), "hang"),
    "any option": Weakness(_take_any_option, ("searched",), "hang"),
    "escapes on the terminal": Weakness(_show_escapes, ("arguments", "schema", "edges"), "control character"),
    "types that nobody checks": Weakness(_forget_types, ("release",), "traceback"),
    "an amount found too late": Weakness(_allow_any_amount, ("arguments",), "paid, then refused"),
    "a damaged Arrow file": Weakness(_trust_arrow, ("arrow",), "crash"),
    "a ledger made too early": Weakness(_make_ledger_first, ("arguments",), "left behind"),
    "two lines": Weakness(_say_more, ("bif",), "not one line"),
    "another exit code": Weakness(_exit_otherwise, ("bif",), "exit code"),
}
