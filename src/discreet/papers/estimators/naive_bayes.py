"""Naive Bayes from a private posterior, as a scikit-learn classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from discreet.papers.estimators.shared import (
    Domain,
    declare_features,
    name_features,
    open_account,
    pick_columns,
)
from discreet.papers.posterior import fourier, laplace, maximum, sample
from discreet.values.errors import DataError, MechanismError, MissingExtra
from discreet.values.graph import DAG
from discreet.values.schema import Attribute, Schema
from discreet.values.text import Number

try:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingExtra("the estimators need scikit-learn: pip install 'discreet[sklearn]'") from None

MECHANISMS = ("laplace", "fourier", "sample", "maximum")


class PrivateNaiveBayes(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Naive Bayes over discrete features, learned at a cost of ε by one of the four mechanisms of [002].

    `domains` and `classes` are public and declared: how many levels each feature has (or its edges, or its levels), and
    the labels. A value outside them is refused, and nothing is spent. With `ledger` (a path) and `account` each fit is
    debited from a lasting budget; without them nothing is kept, and a warning says so.

    Parameters: `epsilon`, what a fit costs; `mechanism`, laplace, fourier, sample or maximum; `prior`, the α of the
    Dirichlet priors; `unit`, add-remove or replace-one; `options`, further arguments of the mechanism, such as
    {"floor": 0.05}; `budget`, that of the account if the fit is to open it.
    """

    def __init__(
        self,
        *,
        epsilon: Number = 1,
        domains: Domain | Mapping[str, Domain] = 2,
        classes: Sequence[Any] = (0, 1),
        mechanism: str = "laplace",
        prior: float = 1.0,
        unit: str = "add-remove",
        options: Mapping[str, Any] | None = None,
        ledger: Any = None,
        account: str | None = None,
        budget: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.domains = domains
        self.classes = classes
        self.mechanism = mechanism
        self.prior = prior
        self.unit = unit
        self.options = options
        self.ledger = ledger
        self.account = account
        self.budget = budget

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows, once, for ε; the rows are not kept."""
        if self.mechanism not in MECHANISMS:
            raise MechanismError(
                f"the mechanism must be one of {', '.join(MECHANISMS)}, not {self.mechanism!r}"
            )
        many = dict(self.options or {}).get("samples", 1)
        if many != 1:  # before anything is paid: a classifier is one network
            raise MechanismError(f"a classifier is one drawn network; leave out samples={many!r}")
        checked, target = validate_data(self, X, y, dtype=None)
        check_classification_targets(target)
        labels = np.unique(np.asarray(self.classes))
        if labels.size < 2:
            raise DataError(f"a classifier needs at least 2 declared classes, not {labels.size}")
        names = name_features(self)
        label = "class"
        while label in names:
            label += "_"
        levels = Attribute.of(label, range(labels.size))
        schema = Schema((levels, *declare_features(names, self.domains)))
        rows = {
            label: _encode_labels(target, labels),
            **pick_columns(X if hasattr(X, "iloc") else checked, names),
        }
        dag = DAG.build({label: (), **dict.fromkeys(names, (label,))})
        airlock = open_account(
            rows,
            schema,
            epsilon=self.epsilon,
            unit=self.unit,
            ledger=self.ledger,
            account=self.account,
            budget=self.budget,
        )
        options = dict(self.options or {})
        with airlock:
            spend = airlock.read_spend(self.epsilon)
            if self.mechanism in ("laplace", "fourier"):
                update = laplace if self.mechanism == "laplace" else fourier
                self.posterior_ = update(airlock, dag, spend=spend, prior=self.prior, **options)
                self.network_ = self.posterior_.network()
            elif self.mechanism == "sample":
                (self.network_,) = sample(airlock, dag, spend=spend, prior=self.prior, **options)
            else:
                self.network_ = maximum(airlock, dag, spend=spend, prior=self.prior, **options)
        self.classes_ = labels
        self.cost_ = spend
        return self

    def predict_log_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """log P(class | features) of every row, in the order of `classes_`."""
        check_is_fitted(self)
        checked = validate_data(self, X, dtype=None, reset=False)
        label, *features = self.network_.nodes
        schema = self.network_.schema.select(features)
        codes = schema.encode(pick_columns(X if hasattr(X, "iloc") else checked, features))
        with np.errstate(divide="ignore"):
            joint = np.tile(np.log(self.network_.cpt(label).values), (len(checked), 1))
            for name in features:
                joint += np.log(self.network_.cpt(name).values).T[codes[name]]
        # A row that every class excludes is left to the classes themselves.
        lost = np.isneginf(joint).all(axis=1)
        joint[lost] = np.log(np.full(self.classes_.size, 1.0 / self.classes_.size))
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """P(class | features) of every row, in the order of `classes_`."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of every row."""
        best = np.argmax(self.predict_log_proba(X), axis=1)
        return np.asarray(self.classes_[best])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True  # privacy noise has no seed
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.classifier_tags.poor_score = True  # on the few rows of a test, noise of a fair ε wins
        return tags


def _encode_labels(target: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    place = {label: code for code, label in enumerate(labels.tolist())}
    found, index = np.unique(target, return_inverse=True)
    strange = [label for label in found.tolist() if label not in place]
    if strange:
        raise DataError(f"label {strange[0]!r} is not among the declared classes {labels.tolist()}")
    return np.asarray([place[label] for label in found.tolist()], dtype=np.int64)[index]
