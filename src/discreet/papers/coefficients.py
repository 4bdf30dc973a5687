"""Noisy integer coefficients: linear statistics of counts, as the airlock lets them out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from discreet.values.errors import FormatError
from discreet.values.measurement import Measurement, NoiseLaw
from discreet.values.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """One block of integers for each attribute set, all with noise of the same law, which were paid for together."""

    blocks: tuple[Table, ...]
    """The axes carry the names of attributes; a block has as many entries along one as its matrix has rows."""
    law: NoiseLaw
    unit: str
    cost: str
    """The budget that was charged for all blocks, as the JSON text of `Budget.to_json`."""

    def to_json(self) -> dict[str, Any]:
        """The whole release; each block is written as a measured table is."""
        return {
            "blocks": [Measurement(block, self.law, self.unit, self.cost).to_json() for block in self.blocks],
            "law": self.law.to_json(),
            "unit": self.unit,
            "cost": json.loads(self.cost),
        }

    @classmethod
    def from_json(cls, document: object) -> Coefficients:
        """The coefficients that `to_json` wrote; anything malformed is refused."""
        if not isinstance(document, Mapping) or set(document) != {"blocks", "law", "unit", "cost"}:
            raise FormatError("coefficients have exactly the keys blocks, cost, law, unit")
        if not isinstance(document["blocks"], list) or not document["blocks"]:
            raise FormatError("coefficients need a list of at least one block")
        found = [Measurement.from_json(block) for block in document["blocks"]]
        if any(block.law != found[0].law or block.unit != found[0].unit for block in found):
            raise FormatError("the blocks of coefficients share one law and one unit")
        tables = tuple(block.noisy for block in found)
        return cls(tables, found[0].law, found[0].unit, json.dumps(document["cost"]))
