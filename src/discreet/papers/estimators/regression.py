"""Linear regression, private by a draw of its posterior or by noise on its sums, as a scikit-learn regressor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from discreet.papers.estimators.ball_draw import NOT_PROVED, arrange_sums, calibrate_ball
from discreet.papers.estimators.shared import open_account
from discreet.papers.estimators.sums import BoundedColumn, Sums
from discreet.values.budget import Finite
from discreet.values.errors import DataError, MechanismError, MissingExtra
from discreet.values.schema import Attribute, Schema
from discreet.values.text import Number, require_share

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("the estimators need scikit-learn: pip install 'discreet[sklearn]'") from None

if TYPE_CHECKING:
    from discreet.core.queries import Keeper

Floats = npt.NDArray[np.float64]
Bounds = tuple[float, float]

GRAIN = Fraction(1, 2**20)
"""Products of scaled features are summed in steps of this size."""


class PrivateLinearRegression(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression on features and a label with public bounds; values beyond them are clipped.

    Everything is scaled to [−1, 1] by the bounds first; prior and radius are in that scale. `method="statistics"`
    measures the sums of all products with noise and solves with them; `interval` and `predict(…, return_std=True)`
    count the privacy noise in. `method="sample"` draws the weights from the posterior under a Gaussian prior of
    `precision`, truncated to the ball of `radius`, tempered to what ε pays for [002, Sec. Experiments]; its ε is not
    proved to the last bit, as `promise_` says.

    Parameters: `epsilon`, what a fit costs; `bounds`, one pair for all features or one for each; `target`, the
    bounds of the label; `unit`, `ledger`, `account`, `budget` as in `PrivateNaiveBayes`.
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1,
        bounds: Bounds | Sequence[Bounds] = (-1.0, 1.0),
        target: Bounds = (-1.0, 1.0),
        method: str = "statistics",
        precision: float = 1.0,
        radius: float = 1.0,
        unit: str = "add-remove",
        ledger: Any = None,
        account: str | None = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.target = target
        self.method = method
        self.precision = precision
        self.radius = radius
        self.unit = unit
        self.ledger = ledger
        self.account = account
        self.budget = budget

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows, once, for ε; the rows are not kept."""
        if self.method not in ("statistics", "sample"):
            raise MechanismError(f"the method must be statistics or sample, not {self.method!r}")
        checked, label = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
        middle, half = _read_bounds(self.bounds, checked.shape[1])
        (middle_y,), (half_y,) = _read_bounds(self.target, 1)
        scaled = [np.ones(len(checked)), *np.clip((checked - middle) / half, -1.0, 1.0).T]
        scaled.append(np.clip((np.asarray(label, dtype=np.float64) - middle_y) / half_y, -1.0, 1.0))
        last = len(scaled) - 1
        pairs = [(i, j) for i in range(last + 1) for j in range(max(i, 1), last + 1)]
        names = [f"{i}*{j}" for i, j in pairs]
        schema = Schema((Attribute.binned("label", (-1.0, 0.0, 1.0)),))
        rows = {
            "label": scaled[last],
            **{n: scaled[i] * scaled[j] for n, (i, j) in zip(names, pairs, strict=True)},
        }
        airlock = open_account(
            rows,
            schema,
            epsilon=self.epsilon,
            unit=self.unit,
            ledger=self.ledger,
            account=self.account,
            budget=self.budget,
            numbers=names,
        )
        with airlock:
            spend = airlock.read_spend(self.epsilon)
            if self.method == "sample":
                weights = self._sample(airlock, spend, pairs, names, last)
            else:
                weights = self._solve(airlock, spend, pairs, names, last)
        self._half, self._middle, self._half_y = half, middle, half_y
        self.weights_ = weights
        self.coef_ = weights[1:] * half_y / half
        self.intercept_ = float(middle_y + half_y * weights[0] - self.coef_ @ middle)
        self.cost_ = spend
        exact = "noise on whole numbers, proved" if self.method == "statistics" else NOT_PROVED
        self.promise_ = f"{spend} ({airlock.unit}); {exact}"
        return self

    def predict(
        self, X: Any, return_std: bool = False
    ) -> npt.NDArray[np.float64] | tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """The expected label of every row and, if asked for, its standard deviation, privacy noise included."""
        check_is_fitted(self)
        checked = validate_data(self, X, dtype=np.float64, reset=False)
        mean = np.asarray(checked @ self.coef_ + self.intercept_)
        if not return_std:
            return mean
        covariance = self._require_covariance()
        scaled = np.column_stack([np.ones(len(checked)), (checked - self._middle) / self._half])
        variance = np.einsum("ij,jk,ik->i", scaled, covariance, scaled) + self.residual_variance_
        return mean, np.sqrt(variance) * self._half_y

    def interval(self, coverage: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds for every coefficient, the intercept left out, that count sampling and privacy noise in.

        If `lift_` is above 0, there are too few rows for ε, and the bounds are about weights that were shrunk.
        """
        check_is_fitted(self)
        require_share(coverage, "the coverage", MechanismError)
        errors = np.sqrt(np.diag(self._require_covariance()))[1:] * self._half_y / self._half
        reach = NormalDist().inv_cdf(0.5 + coverage / 2.0) * errors
        return self.coef_ - reach, self.coef_ + reach

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # privacy noise has no seed
        tags.regressor_tags.poor_score = True  # on the few rows of a test, noise of a fair ε wins
        return tags

    def _sample(
        self, airlock: Keeper, spend: Finite, pairs: list[tuple[int, int]], names: list[str], last: int
    ) -> Floats:
        wanted = [(pair, name) for pair, name in zip(pairs, names, strict=True) if pair != (last, last)]
        specification = calibrate_ball(
            [pair for pair, _ in wanted],
            [BoundedColumn(name, -1, 1, GRAIN) for _, name in wanted],
            last,
            spend,
            unit=airlock.unit,
            precision=self.precision,
            radius=self.radius,
        )
        self.temper_ = float(specification.temper)
        return np.array(airlock.ask(specification))

    def _solve(
        self, airlock: Keeper, spend: Finite, pairs: list[tuple[int, int]], names: list[str], last: int
    ) -> Floats:
        """w = (A + bI)⁻¹Σxy with A = Σxxᵀ; cov w = A⁻¹(σ²A + V)A⁻¹ with V the covariance of the noise in A·w − Σxy."""
        columns = [
            BoundedColumn(name, 0 if i == j else -1, 1, GRAIN)
            for name, (i, j) in zip(names, pairs, strict=True)
        ]
        shares: tuple[Finite, ...] = spend.split([len(columns), 1])
        if airlock.unit.fixes_rows:
            rows, rows_variance = float(airlock.rows), 0.0
            found = airlock.ask(Sums.price(columns, spend, unit=airlock.unit))
        else:
            found = airlock.ask(Sums.price(columns, shares[0], unit=airlock.unit))
            (total,) = airlock.measure([()], spend=shares[1])
            rows, rows_variance = max(float(total.noisy.values), 1.0), total.law.variance
        sums = [measured.total(rows) for measured in found]
        variances = [measured.law.variance * float(GRAIN) ** 2 for measured in found]
        gram, target = arrange_sums(pairs, sums, last, rows)
        spread, spread_y = arrange_sums(pairs, variances, last, rows_variance)
        # A symmetric matrix of such noise has eigenvalues up to about 2√q·σ: below that the sums say nothing, and the
        # smallest eigenvalue is lifted there, which shrinks the weights [Wang 2018, AdaSSP].
        reach = 2.0 * math.sqrt(last * float(spread.max()))
        self.lift_ = max(0.0, reach - float(np.linalg.eigvalsh(gram)[0]))
        gram += self.lift_ * np.eye(last)
        inverse = np.linalg.inv(gram + self.precision * np.eye(last))
        weights = np.asarray(inverse @ target)
        residual = (sums[-1] - 2 * weights @ target + weights @ gram @ weights) / rows
        noise = np.outer(weights, weights) * spread
        # Taken one deviation of its own noise too large: one that is too small would make every interval too short.
        squares = weights**2
        doubt = math.sqrt(variances[-1] + 4 * squares @ spread_y + 2 * squares @ spread @ squares) / rows
        self.residual_variance_ = float(np.clip(residual + doubt, 1e-6, 1.0))
        np.fill_diagonal(noise, spread_y + (spread * weights**2).sum(axis=1))
        self.covariance_ = inverse @ (noise + self.residual_variance_ * gram) @ inverse
        return weights

    def _require_covariance(self) -> Floats:
        if self.method != "statistics":
            raise MechanismError(
                "one draw of the weights does not show their spread; fit with method='statistics'"
            )
        return np.asarray(self.covariance_)


def _read_bounds(bounds: Any, size: int) -> tuple[Floats, Floats]:
    """The middle and half the width of each feature's bounds."""
    found = np.asarray(bounds, dtype=np.float64)
    if found.shape == (2,):
        found = np.tile(found, (size, 1))
    if found.shape != (size, 2) or not np.isfinite(found).all() or not (found[:, 0] < found[:, 1]).all():
        raise DataError(
            f"bounds must be a pair (low, high), or one for each of {size} features, not {bounds!r}"
        )
    return found.mean(axis=1), (found[:, 1] - found[:, 0]) / 2.0
