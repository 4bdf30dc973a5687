"""The networks behind a page's calibrated intervals, drawn once and packed small."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from discreet.networks.intervals import COVERAGE, SEED
from discreet.networks.intervals.calibrated import (
    APART,
    CAUTION,
    DRAWS,
    HALF,
    NEGLIGIBLE,
    Calibrated,
    draw_calibrated,
)
from discreet.networks.network import Network
from discreet.values.errors import TooLarge
from discreet.values.table import Array

FEWEST = 50
"""Draws below which the ends of a 95 % interval would rest on less than one of them."""

MOST_NUMBERS = 2**18
"""Numbers beyond which fewer networks are drawn, so that a page stays below a megabyte."""

MOST_BYTES = 2**22
"""What the fewest draws may take; a network with more cells gets no ensemble."""

UNDECIDED = (
    "No band: the noise leaves this answer to what one believed before, so a likely interval would not hold."
)


def draw_ensemble(network: Network) -> Calibrated:
    """The draws behind `discreet query --interval calibrated`, fewer of a large network.

    Refused where they would not hold as often as they say, and of a network that is too large. The caller has asked
    `explain_lack` whether there can be any.
    """
    assert network.provenance is not None
    cells = 2 * sum(cpt.cells for cpt in network.cpts)
    draws = max(FEWEST, min(DRAWS, MOST_NUMBERS // cells))
    if 2 * draws * cells > MOST_BYTES:
        raise TooLarge(
            f"no calibrated intervals: {cells // 2:,} cells are too many for a page to carry draws of"
        )
    drawn = draw_calibrated(
        network.schema, network.dag, network.cpts, network.provenance, COVERAGE, rng=SEED, draws=draws
    )
    drawn.require_signal()
    return drawn


def pack_ensemble(drawn: Calibrated) -> dict[str, Any]:
    """The draws as the page reads them, with the share of them that each tail leaves out, and when two sets agree."""
    return {
        "draws": len(drawn.draws[0]),
        "tail": CAUTION * (1.0 - drawn.coverage) / 2.0,
        "apart": APART,
        "negligible": NEGLIGIBLE,
        "reach": HALF / max(drawn.rows, HALF),
        "meaning": drawn.meaning,
        "undecided": UNDECIDED,
        "codes": _pack(drawn.draws),
        "others": _pack(drawn.others),
    }


def _pack(tables: tuple[Array, ...]) -> str:
    flat = np.concatenate([found.reshape(len(found), -1) for found in tables], axis=1)
    return base64.b64encode(encode_shares(flat).tobytes()).decode("ascii")


def encode_shares(shares: Array) -> np.ndarray[Any, np.dtype[np.uint16]]:
    """Probabilities as 16-bit fourth roots: p = (code / 65535)⁴ keeps 0.5 to 4 digits and one in a million to 3."""
    return np.rint(65535 * np.clip(shares, 0.0, 1.0) ** 0.25).astype("<u2")
