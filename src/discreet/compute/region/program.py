"""A linear program over the counts that a region leaves open, whose optimum is certified by its own dual."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from discreet.values.errors import TableError

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]

ROUNDING = 1e-9
"""What is given away at each end for the rounding of sums of floats."""


class Contradiction(TableError):
    """No table of counts fits all intervals, so that one of them must have missed."""


@dataclass(slots=True, eq=False)
class Program:
    """min c·n with l ≤ A·n ≤ h and 0 ≤ n ≤ u; only c, l and h change from one question to the next."""

    rows: Places
    columns: Places
    values: Floats
    """The entries of A that are not 0."""
    low: Floats
    high: Floats
    most: Floats
    """u, finite."""
    _highs: Any = field(init=False, default=None)

    def minimise(self, cost: Floats) -> tuple[float, Floats]:
        """A number that the minimum is surely not below, and counts that come near it.

        Any multipliers y of the rows bound it from below: Σ (l·y⁺ − h·y⁻) + Σ min(0, c − Aᵀy)·u. So the solver need
        not be trusted, and a run that was cut short still has a bound.
        """
        solver = self._load()
        index = np.arange(len(cost), dtype=np.int32)
        solver.changeColsCost(len(cost), index, np.ascontiguousarray(cost))
        solver.run()
        if "nfeasible" in solver.modelStatusToString(solver.getModelStatus()):
            raise Contradiction("the noisy tables contradict each other")
        found = solver.getSolution()
        return self.certify(cost, np.array(found.row_dual)), np.array(found.col_value)

    def certify(self, cost: Floats, dual: Floats) -> float:
        """The bound from below that multipliers of the rows prove."""
        rest = cost - np.bincount(
            self.columns, weights=self.values * dual[self.rows], minlength=len(self.most)
        )
        ends = np.where(dual > 0, self.low, self.high) * dual
        return float(ends.sum() + (np.minimum(rest, 0.0) * self.most).sum())

    def move(self, low: Floats, high: Floats) -> None:
        """Change the intervals of the rows; what was solved before stays a good start."""
        self.low, self.high = low, high
        if self._highs is not None:
            index = np.arange(len(low), dtype=np.int32)
            self._highs.changeRowsBounds(len(low), index, low, high)

    def _load(self) -> Any:
        if self._highs is None:
            import highspy

            order = np.lexsort((self.columns, self.rows))
            lp = highspy.HighsLp()
            lp.num_col_, lp.num_row_ = len(self.most), len(self.low)
            lp.col_cost_ = np.zeros(len(self.most))
            lp.col_lower_, lp.col_upper_ = np.zeros(len(self.most)), self.most
            lp.row_lower_, lp.row_upper_ = self.low, self.high
            lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
            starts = np.searchsorted(self.rows[order], np.arange(len(self.low) + 1))
            lp.a_matrix_.start_ = starts.astype(np.int32)
            lp.a_matrix_.index_ = self.columns[order].astype(np.int32)
            lp.a_matrix_.value_ = self.values[order]
            self._highs = highspy.Highs()
            self._highs.setOptionValue("output_flag", False)
            self._highs.setOptionValue("threads", 1)
            self._highs.passModel(lp)
        return self._highs
