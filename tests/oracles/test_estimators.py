"""The estimators against scikit-learn: its contract, its pipelines and clones, and its own estimates without noise."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import CategoricalNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

from discreet.entrance import open_ledger
from discreet.papers.estimators.ball_draw import BallPosterior, bound_record, calibrate_ball, draw_in_ball
from discreet.papers.estimators.naive_bayes import MECHANISMS, PrivateNaiveBayes
from discreet.papers.estimators.regression import PrivateLinearRegression
from discreet.papers.estimators.shared import PrivacyWarning
from discreet.papers.estimators.sums import BoundedColumn
from discreet.values.budget import PureDP
from discreet.values.errors import DataError, DiscreetError, MechanismError, Overspent, SchemaError
from discreet.values.schema.bins import Bins
from discreet.values.unit import ROW_UNITS, Unit

NO_SEED = "compares two fits on the same rows, and privacy noise has no seed"
CHECKS_THAT_CANNOT_HOLD = {
    "check_classifiers_classes": "labels that were not declared are refused: reading them off the rows leaks",
    "check_classifiers_train": "probabilities are over the declared classes, not over those that the rows show",
    "check_classifier_data_not_an_array": NO_SEED,
    "check_regressor_data_not_an_array": NO_SEED,
    "check_regressors_int": NO_SEED,
    "check_supervised_y_2d": NO_SEED,
    "check_fit_idempotent": NO_SEED,
    "check_pipeline_consistency": NO_SEED,
}
"""Checks of scikit-learn's `check_estimator` that a private estimator may fail, and why."""

WIDE = Bins((-math.inf, -1.0, 0.0, 1.0, math.inf))


@pytest.fixture(autouse=True)
def _without_the_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        yield


def bits(rows: int = 4000, features: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = (rng.random(rows) < 0.4).astype(int)
    return (rng.random((rows, features)) < np.where(y[:, None], 0.7, 0.35)).astype(int), y


def line(rows: int = 4000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (rows, 3))
    return X, X @ WEIGHTS + 3 + rng.normal(0, 2, rows)


WEIGHTS = np.array([1.0, -2.0, 0.5])
SCALE = {"bounds": (0.0, 10.0), "target": (-25.0, 25.0)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "estimator",
    [
        PrivateNaiveBayes(epsilon=100, domains=WIDE, classes=(0, 1, 2, 3)),
        pytest.param(
            PrivateNaiveBayes(epsilon=100, domains=WIDE, classes=(0, 1, 2, 3), mechanism="maximum"),
            marks=pytest.mark.slow,
        ),
        PrivateLinearRegression(epsilon=100, bounds=(-5, 5), target=(-300, 300)),
        PrivateLinearRegression(epsilon=100, method="sample"),
    ],
    ids=lambda found: f"{type(found).__name__}-{getattr(found, 'method', getattr(found, 'mechanism', ''))}",
)
def test_scikit_learns_contract_holds_but_for_what_is_listed(estimator: object) -> None:
    found = check_estimator(estimator, on_fail=None, on_skip=None)
    failed = {check["check_name"]: check["exception"] for check in found if check["status"] == "failed"}
    assert set(failed) <= set(CHECKS_THAT_CANNOT_HOLD), failed
    assert sum(check["status"] == "passed" for check in found) >= 40


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
@pytest.mark.parametrize("mechanism", ["laplace", "fourier"])
def test_with_a_huge_budget_naive_bayes_is_scikit_learns(mechanism: str, unit: str) -> None:
    X, y = bits()
    ours = PrivateNaiveBayes(epsilon=10**6, mechanism=mechanism, unit=unit).fit(X, y)
    theirs = CategoricalNB(alpha=1.0, min_categories=2).fit(X, y)
    assert ours.predict_proba(X) == pytest.approx(theirs.predict_proba(X), abs=2e-3)
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.995


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_learns(mechanism: str) -> None:
    X, y = bits()
    model = PrivateNaiveBayes(epsilon=40, mechanism=mechanism).fit(X, y)
    assert model.score(X, y) > 0.7
    assert model.cost_ == PureDP(40)
    assert model.predict_proba(X[:5]).sum(axis=1) == pytest.approx(np.ones(5))
    assert hasattr(model, "posterior_") == (mechanism in ("laplace", "fourier"))


def test_features_of_a_frame_with_levels_edges_and_counts() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "colour": rng.choice(["red", "green", "blue"], 3000),
            "age": rng.uniform(0, 90, 3000),
            "children": rng.integers(0, 4, 3000),
        }
    )
    y = np.where((frame["colour"] == "red") | (frame["age"] > 60), "ill", "well")
    domains = {"colour": ["red", "green", "blue"], "age": Bins((0.0, 30.0, 60.0, 90.0)), "children": 4}
    model = PrivateNaiveBayes(epsilon=10, domains=domains, classes=["well", "ill"]).fit(frame, y)
    assert model.score(frame, y) > 0.85
    assert list(model.classes_) == ["ill", "well"]
    assert model.network_.schema["age"].size == 3
    with pytest.raises(SchemaError, match="'age' has no declared domain"):
        PrivateNaiveBayes(domains={"colour": 2}, classes=["well", "ill"]).fit(frame[["colour", "age"]], y)


def test_pipelines_and_clones_work() -> None:
    X, y = bits()
    model = make_pipeline(
        FunctionTransformer(lambda found: found - 0.5), PrivateNaiveBayes(epsilon=50, domains=WIDE)
    )
    assert clone(model).fit(X, y).score(X, y) > 0.7
    copy = clone(PrivateNaiveBayes(epsilon="1/3", options={"floor": 0.1}, mechanism="maximum"))
    assert copy.epsilon == "1/3" and copy.options == {"floor": 0.1}
    X, y = line()
    regression = make_pipeline(FunctionTransformer(), PrivateLinearRegression(epsilon=20, **SCALE))
    assert clone(regression).fit(X, y).score(X, y) > 0.85


def test_cross_validation_warns_without_a_ledger() -> None:
    X, y = bits(600)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        cross_val_score(PrivateNaiveBayes(epsilon=10), X, y, cv=3)
    told = [str(found.message) for found in caught if issubclass(found.category, PrivacyWarning)]
    assert len(told) == 3 and "each fold" in told[0]


def test_cross_validation_spends_the_account_of_a_ledger(tmp_path: Path) -> None:
    place = str(tmp_path / "clinic.ledger")
    open_ledger(place, create=True).close()
    X, y = bits(600)
    model = PrivateNaiveBayes(epsilon=1, ledger=place, account="clinic", budget=PureDP(4))
    cross_val_score(model, X, y, cv=3, error_score="raise")
    model.fit(X, y)
    with pytest.raises(Overspent):
        clone(model).fit(X, y)
    regression = PrivateLinearRegression(epsilon=1, ledger=place, account="clinic", **SCALE)
    with pytest.raises(Overspent):
        regression.fit(*line(100))
    with open_ledger(place) as ledger:
        assert ledger.remaining("clinic").is_zero


@pytest.mark.parametrize(
    ("model", "error"),
    [
        (PrivateNaiveBayes(classes=(0,)), DataError),
        (PrivateNaiveBayes(classes=(1, 2)), DataError),
        (PrivateNaiveBayes(mechanism="gibbs"), MechanismError),
        (PrivateNaiveBayes(epsilon=0), DiscreetError),
        (PrivateNaiveBayes(domains=[2]), SchemaError),
        (PrivateNaiveBayes(domains=1.5), SchemaError),
        (PrivateNaiveBayes(domains=[["no", "yes"]] * 6), DataError),
        (PrivateNaiveBayes(mechanism="sample", options={"samples": 3}), MechanismError),
        (PrivateLinearRegression(method="gibbs"), MechanismError),
        (PrivateLinearRegression(bounds=(1, 1)), DataError),
        (PrivateLinearRegression(bounds=[(0, 1)] * 5), DataError),
        (PrivateLinearRegression(target=(0, math.inf)), DataError),
        (PrivateLinearRegression(method="sample", radius=0.0), MechanismError),
        (PrivateLinearRegression(method="sample", precision=-1.0), MechanismError),
    ],
)
def test_bad_declarations_are_refused(model: PrivateNaiveBayes, error: type[DiscreetError]) -> None:
    with pytest.raises(error):
        model.fit(*bits(50))


def test_several_posterior_samples_are_refused_before_they_are_paid_for(tmp_path: Path) -> None:
    place = tmp_path / "ledger"
    with pytest.raises(MechanismError, match="one drawn network"):
        PrivateNaiveBayes(
            mechanism="sample", options={"samples": 2}, ledger=place, account="a", budget="1"
        ).fit(*bits(50))
    assert not place.exists()


def test_a_regression_says_what_of_its_epsilon_is_proved() -> None:
    X, y = line(200)
    assert "proved" in PrivateLinearRegression(**SCALE).fit(X, y).promise_
    assert "not proved" in PrivateLinearRegression(method="sample", **SCALE).fit(X, y).promise_


def test_an_unfitted_model_says_so() -> None:
    for model in (PrivateNaiveBayes(), PrivateLinearRegression()):
        with pytest.raises(NotFittedError):
            model.predict(np.zeros((1, 2)))


@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
def test_with_a_huge_budget_regression_is_ridge(unit: str) -> None:
    X, y = line()
    ours = PrivateLinearRegression(epsilon=10**6, unit=unit, **SCALE).fit(X, y)
    theirs = Ridge(alpha=1e-6).fit(X, y)
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=5e-3)
    assert ours.score(X, y) == pytest.approx(theirs.score(X, y), abs=1e-3)


def test_a_draw_with_a_large_budget_is_near_the_least_squares_fit() -> None:
    X, y = line(20_000)
    model = PrivateLinearRegression(epsilon=1000, method="sample", radius=2.0, **SCALE).fit(X, y)
    assert model.coef_ == pytest.approx(WEIGHTS, abs=0.1)
    assert np.linalg.norm(model.weights_) <= 2.0
    with pytest.raises(MechanismError, match="does not show their spread"):
        model.interval()


def test_intervals_cover_as_often_as_they_say() -> None:
    """Two thousand rows at ε = 1, where the privacy noise is most of the error: 90 % of 90 fits, give or take."""
    held = plain = 0
    for seed in range(90):
        model = PrivateLinearRegression(epsilon=1, **SCALE).fit(*line(2000, seed))
        low, high = model.interval(0.9)
        held += int(((low <= WEIGHTS) & (high >= WEIGHTS)).sum())
        # Without the noise in it, the same interval would be a few times too short.
        reach = 1.645 * 2 / math.sqrt(2000 * 100 / 12)
        plain += int((np.abs(model.coef_ - WEIGHTS) <= reach).sum())
    assert 0.84 * 270 <= held <= 0.98 * 270  # five deviations
    assert plain < 0.6 * 270


def test_predictions_come_with_a_deviation_that_covers_labels() -> None:
    X, y = line(20_000)
    model = PrivateLinearRegression(epsilon=4, **SCALE).fit(X, y)
    mean, deviation = model.predict(X, return_std=True)
    inside = np.abs(y - mean) <= 1.96 * deviation
    assert 0.92 <= inside.mean() <= 0.995


@pytest.mark.parametrize("centre", [0.2, 0.9, 3.0, 40.0])
def test_the_chain_draws_from_the_truncated_gaussian(centre: float) -> None:
    """Against weights on a grid of the disc, with the mode well inside, near the border, outside, far outside."""
    precision = np.array([[9.0, 2.0], [2.0, 4.0]])
    linear = precision @ np.array([centre, -centre / 2])
    draws = np.array([draw_in_ball(precision, linear, 1.0) for _ in range(400)])
    assert (np.linalg.norm(draws, axis=1) <= 1.0 + 1e-12).all()
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 601)] * 2), axis=-1).reshape(-1, 2)
    grid = grid[(grid**2).sum(axis=1) <= 1.0]
    scores = grid @ linear - 0.5 * np.einsum("ij,jk,ik->i", grid, precision, grid)
    chance = np.exp(scores - scores.max())
    chance /= chance.sum()
    mean = chance @ grid
    spread = np.sqrt(chance @ (grid - mean) ** 2)
    assert np.abs(draws.mean(axis=0) - mean).max() < 6 * spread.max() / math.sqrt(400) + 0.004
    assert draws.std(axis=0) == pytest.approx(spread, rel=0.35, abs=0.004)  # six deviations


def test_no_record_moves_the_log_density_by_more_than_is_charged() -> None:
    """Brute force over corners of the data and directions of the weights, in both units."""
    rng = np.random.default_rng(1)
    columns = [BoundedColumn("1*1", -1, 1, "1/1048576")]
    for unit in ROW_UNITS:
        found = calibrate_ball([(1, 1)], columns, 3, PureDP(2), unit=unit, precision=1.0, radius=1.5)
        assert found.loss <= PureDP(2) and float(found.loss.epsilon) > 1.999
        weights = rng.normal(size=(4000, 3))
        weights *= 1.5 / np.linalg.norm(weights, axis=1, keepdims=True) * rng.random((4000, 1)) ** 0.2
        corners = np.array([[1, a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], dtype=float)
        losses = 0.5 * float(found.temper) * (corners[:, 3] - weights @ corners[:, :3].T) ** 2
        range_ = (losses.max(axis=0) - losses.min(axis=0)).max()
        charged = 2.0 if unit == Unit.ADD_REMOVE else 1.0  # a replaced record may do it twice
        assert 0.9 * charged < range_ <= charged


def test_a_ball_that_costs_more_than_it_states_is_refused() -> None:
    columns = (BoundedColumn("1*1", -1, 1, "1/1048576"),)
    good = calibrate_ball([(1, 1)], columns, 3, PureDP(2), unit=Unit.REPLACE_ONE, precision=1.0, radius=1.0)
    with pytest.raises(MechanismError, match="more than its cost"):
        BallPosterior(((1, 1),), columns, 3, good.temper * 2, 1.0, 1.0, PureDP(2), Unit.REPLACE_ONE)
    with pytest.raises(MechanismError, match="between −1 and 1"):
        BallPosterior(
            ((1, 1),), (BoundedColumn("1*1", -2, 1),), 3, good.temper, 1.0, 1.0, PureDP(2), Unit.REPLACE_ONE
        )
    assert bound_record(3, 1.0, columns[0].granularity, Unit.REPLACE_ONE) >= (1 + math.sqrt(3)) ** 2
