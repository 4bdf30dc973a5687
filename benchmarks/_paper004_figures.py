"""The figures of paper 004 as jobs, each a point that is measured once for every seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from warnings import catch_warnings, simplefilter

import numpy as np

from _paper004_baselines import (
    by_contingency,
    by_fourier,
    by_laplace,
    by_mended_margins,
    by_uniform,
    one_hot,
    train_privately,
)
from _paper004_data import Data
from _paper004_journal import Job
from _paper004_scores import ScoredTable
from discreet.entrance import open_airlock
from discreet.learning.adaptive import adaptive
from discreet.learning.privbayes import privbayes
from discreet.networks.network import Network
from discreet.values.budget import PureDP

TARGETS = {
    "adult": {
        "sex": ["Female"],
        "education": [
            "Bachelors",
            "Masters",
            "Prof-school",
            "Doctorate",
            "Assoc-voc",
            "Assoc-acdm",
        ],
        "income": [">50K"],
        "marital_status": ["Never-married"],
    },
    "nltcs": {"iadl10": ["1"], "adl3": ["1"], "iadl6": ["1"], "adl4": ["1"]},
}
"""What the classifiers predict, and the levels that count as yes: on adult female, a post-secondary degree (33 %), over
50 000 a year, never married; on nltcs unable to get outside, to manage money, to bathe, to travel. The columns of this
nltcs.csv are not named after the survey's items: counts of its patterns tell that they are Y16, Y15, Y14, Y13, Y1, Y11,
Y10, …, Y2, Y12 (3 853 rows of zeros, 4 with Y1 alone, 9 with Y2, 19 with Y3; 55.5 % have Y12, 67.6 % Y7). So Y12 is
iadl10, Y14 adl3, Y5 iadl6 and Y13 adl4."""
UNIT = "replace-one"
"""The paper's unit: n is public, and noise is twice that of add-remove. Every method here pays it."""
PASSES = 300
NO_NOISE = "1000000"
"""An ε at which noise decides nothing."""
THETAS = ("1", "2", "3", "4", "8", "16")

PRINTED, VANILLA = "printed", "printed, vanilla R"
"""The paper's method: F, with the binary encoding where attributes have more levels; and a reading that it has not,
R on the attributes as they are, which is better."""

SEARCHES = 20
"""Runs of Figure 2 (the paper has 50): a search over known scores costs little."""
COSTLY = 2
"""Runs of the binary encoding with F in Figures 4 and 5: half a minute each where k is 3."""

Epsilons = tuple[str, ...]


def learn(data: Data, epsilon: str, method: str, seed: int) -> Network:
    """A network of this table by one of our methods, or by the paper's as printed."""
    budget = PureDP(epsilon)
    with open_airlock(data.columns, data.schema, budget=budget, unit=UNIT) as airlock:
        if method == "adaptive":
            return adaptive(airlock, spend=budget)
        if method == "independent":
            return privbayes(airlock, spend=budget, k=0, rng=seed)
        if method == "privbayes":
            return privbayes(airlock, spend=budget, rng=seed)
        plain = data.binary or method == VANILLA
        return privbayes(
            airlock, spend=budget, beta="1/2", score="F" if method == PRINTED else "R", selection="exponential",
            estimation="printed", encoding="vanilla" if plain else "binary", rng=seed,
        )  # fmt: skip


def synthesise(data: Data, epsilon: str, method: str, seed: int) -> dict[str, np.ndarray]:
    """As many synthetic rows as there are true ones."""
    return draw_rows(learn(data, epsilon, method, seed), data.rows, method, seed)


def draw_rows(network: Network, rows: int, method: str, seed: int) -> dict[str, np.ndarray]:
    """So many synthetic rows: balanced ones, but independent ones of the paper's method, as printed."""
    return network.sample(rows, rng=seed, balanced=method not in (PRINTED, VANILLA)).codes()


def compare_scores(
    data: Data, epsilons: Epsilons, degrees: tuple[int, ...], repeats: int | None = SEARCHES
) -> Iterator[Job]:
    """Figure 2: ΣI(X, Π) of the graphs that each score finds with half of ε, and without noise.

    The paper cuts attributes of more levels into bits; without that F has no meaning, and I and R are shown beside it.
    """

    names = {False: ("F", "I", "R") if data.binary else ("I", "R"), True: ("F", "I")}

    @cache
    def score(bits: bool) -> ScoredTable:
        return ScoredTable.of(data, max(degrees), names[bits], bits=bits)

    for bits in (False,) if data.binary else (True, False):
        for k in degrees:
            for name in names[bits]:
                for epsilon in (*epsilons, NO_NOISE):
                    yield Job(
                        "figure2-bits" if bits else "figure2", data.name,
                        f"{name}, k={k}" + ", no noise" * (epsilon == NO_NOISE), epsilon,
                        lambda seed, k=k, name=name, epsilon=epsilon, bits=bits: score(bits).search(
                            k, name, float(epsilon), seed
                        ),
                        repeats,
                    )  # fmt: skip


def compare_usefulness(data: Data, epsilons: Epsilons, thetas: tuple[str, ...] = THETAS) -> Iterator[Job]:
    """Figure 3: the error of PrivBayes with consistent tables for several θ; of adult over pairs, as printed, too."""
    draw = _Releases(lambda seed, theta, epsilon: _learn_useful(data, theta, epsilon, seed), data.rows)
    for theta in thetas:
        for epsilon in epsilons:
            for ways in (3,) if data.binary else (2, 3):
                yield Job(
                    f"figure3-{ways}way", data.name, f"θ={theta}", epsilon,
                    lambda seed, theta=theta, epsilon=epsilon, ways=ways: data.error(
                        draw(seed, theta, epsilon), ways
                    ),
                )  # fmt: skip


def _learn_useful(data: Data, theta: str, epsilon: str, seed: int) -> Network:
    with open_airlock(data.columns, data.schema, budget=PureDP(epsilon), unit=UNIT) as airlock:
        return privbayes(airlock, spend=epsilon, theta=theta, rng=seed)


class _Releases:
    """Synthetic rows by the way they were learned; several jobs in a row ask for the same ones."""

    def __init__(self, learn: Callable[[int, str, str], Network], rows: int) -> None:
        self._learn, self._rows = learn, rows
        self._drawn: dict[tuple[str, str], dict[int, dict[str, np.ndarray]]] = {}

    def __call__(self, seed: int, method: str, epsilon: str) -> dict[str, np.ndarray]:
        key = method, epsilon
        if key not in self._drawn:
            self._drawn = {key: {}}  # the last way's rows are not asked for again
        if seed not in self._drawn[key]:
            self._drawn[key][seed] = draw_rows(self._learn(seed, method, epsilon), self._rows, method, seed)
        return self._drawn[key][seed]


def compare_encodings(data: Data, epsilons: Epsilons, kinds: tuple[str, ...]) -> Iterator[Job]:
    """The error of PrivBayes with R for attributes as they are, as bits, and with taxonomies."""

    def run(seed: int, kind: str, epsilon: str) -> float:
        with open_airlock(data.columns, data.schema, budget=PureDP(epsilon), unit=UNIT) as airlock:
            network = privbayes(airlock, spend=epsilon, encoding=kind, rng=seed)  # type: ignore[arg-type]
        return data.error(network.sample(data.rows, rng=seed).codes())

    for kind in kinds if not data.binary else ():
        for epsilon in epsilons:
            yield Job(
                "encodings", data.name, kind, epsilon,
                lambda seed, kind=kind, epsilon=epsilon: run(seed, kind, epsilon),
            )  # fmt: skip


def compare_marginals(data: Data, epsilons: Epsilons, sizes: tuple[int, ...]) -> Iterator[Job]:
    """Figure 4: mean total variation over all marginals of some sizes, which are asked of the same synthetic rows."""
    draw = _Releases(lambda seed, method, epsilon: learn(data, epsilon, method, seed), data.rows)

    baselines: dict[str, Callable[[Data, int, float, np.random.Generator], float]] = {
        "Laplace": by_laplace,
        "Fourier": by_fourier,
    }
    if data.binary:
        baselines |= {
            "Contingency": by_contingency,
            "Contingency, margins mended": by_mended_margins,
        }
    for epsilon in epsilons:
        for method in ("adaptive", "privbayes", PRINTED, *(() if data.binary else (VANILLA,))):
            for ways in sizes:
                yield Job(
                    f"figure4-{ways}way", data.name, method, epsilon,
                    lambda seed, method=method, epsilon=epsilon, ways=ways: data.error(
                        draw(seed, method, epsilon), ways
                    ),
                    COSTLY if method == PRINTED and not data.binary else None,
                )  # fmt: skip
        for ways in sizes:
            for name, estimate in baselines.items():
                yield Job(
                    f"figure4-{ways}way", data.name, name, epsilon,
                    lambda seed, estimate=estimate, epsilon=epsilon, ways=ways: estimate(
                        data, ways, float(epsilon), np.random.default_rng(seed)
                    ),
                )  # fmt: skip
            yield Job(
                f"figure4-{ways}way", data.name, "Uniform", epsilon,
                lambda _, ways=ways: by_uniform(data, ways), 1,
            )  # fmt: skip


def compare_classifiers(data: Data, epsilons: Epsilons, *, ours_only: bool = False) -> Iterator[Job]:
    """Figure 5: misclassification on a held-out fifth, of linear SVMs trained on synthetic rows."""
    index = np.random.default_rng(5).permutation(data.rows)
    cut = data.rows * 4 // 5
    train, test = data.take(index[:cut]), data.take(index[cut:])
    draw = _Releases(lambda seed, method, epsilon: learn(train, epsilon, method, seed), train.rows)
    judges = {
        target: _Classifier(test, target, [data.schema[target].code(level) for level in levels])
        for target, levels in TARGETS.get(data.name, {}).items()
    }
    for target, judge in judges.items():
        yield Job("figure5", data.name, f"NoPrivacy/{target}", "inf", lambda _, j=judge: j.fit(train), 1)
        yield Job("figure5", data.name, f"Majority/{target}", "inf", lambda _, j=judge: j.guess(train), 1)
    others = () if ours_only else (PRINTED,) if data.binary else (PRINTED, VANILLA)
    for epsilon in epsilons:
        for method in ("adaptive", *others):  # one release serves all four classifiers
            for target, judge in judges.items():
                yield Job(
                    "figure5", data.name, f"{method}/{target}", epsilon,
                    lambda seed, j=judge, m=method, e=epsilon: j.fit(train.wear(draw(seed, m, e))),
                    COSTLY if method == PRINTED and not data.binary else None,
                )  # fmt: skip
        # Four classifiers are trained at once, so each gets a quarter of the budget; Single gets all.
        for name, share in () if ours_only else (("PrivateERM", 4.0), ("PrivateERM (Single)", 1.0)):
            for target, judge in judges.items():
                yield Job(
                    "figure5", data.name, f"{name}/{target}", epsilon,
                    lambda seed, j=judge, e=epsilon, s=share: j.fit_privately(train, float(e) / s, seed),
                )  # fmt: skip


class _Classifier:
    """Predicts whether one attribute is at one of some levels; judged on held-out rows."""

    def __init__(self, test: Data, target: str, yes: list[int]) -> None:
        self.test, self.target, self.yes = test, target, yes

    def label(self, found: Data) -> np.ndarray:
        return np.where(np.isin(found.codes[self.target], self.yes), 1, -1)

    def guess(self, train: Data) -> float:
        majority = 1 if self.label(train).mean() > 0 else -1
        return float((self.label(self.test) != majority).mean())

    def fit(self, found: Data) -> float:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.svm import LinearSVC

        if len(np.unique(self.label(found))) < 2:
            return float((self.label(self.test) != self.label(found)[0]).mean())
        # Hinge loss and C = 1, as printed; rows of many equal features need many passes of its coordinate descent.
        model = LinearSVC(C=1.0, loss="hinge", dual=True, max_iter=PASSES, random_state=0)
        with catch_warnings():
            simplefilter("ignore", ConvergenceWarning)
            model.fit(one_hot(found, self.target), self.label(found))
        return float((model.predict(one_hot(self.test, self.target)) != self.label(self.test)).mean())

    def fit_privately(self, train: Data, epsilon: float, seed: int) -> float:
        w = train_privately(
            one_hot(train, self.target), self.label(train), epsilon, np.random.default_rng(seed)
        )
        return float((np.sign(one_hot(self.test, self.target) @ w) != self.label(self.test)).mean())
