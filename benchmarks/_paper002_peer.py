"""diffprivlib's naive Bayes in an environment of its own, because it needs an older scikit-learn than ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from _environments import open_environment

ENVIRONMENT = ("diffprivlib-0.6.6", ["diffprivlib==0.6.6", "scikit-learn<1.6"])
"""The name of its environment, and what is installed there."""


def fit_peer(
    trials: list[tuple[np.ndarray, ...]], epsilons: list[float], *, install: bool
) -> dict[float, list[float]]:
    """The peer's accuracy in every trial (training rows, labels, test rows, labels) at every ε; nothing if it fails."""
    python = open_environment(*ENVIRONMENT, install=install)
    if isinstance(python, str):
        print(f"diffprivlib: {python}; accuracy_peer is nan")
        return {}
    try:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "trials.npz"
            arrays = {f"{i}-{j}": found for i, trial in enumerate(trials) for j, found in enumerate(trial)}
            np.savez(file, **arrays)
            answer = subprocess.run(
                [python, __file__, file, json.dumps(epsilons)],
                capture_output=True, text=True, timeout=600, check=True,
            )  # fmt: skip
        found = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        print(f"diffprivlib did not run, so accuracy_peer is nan: {str(error).splitlines()[0]}")
        return {}
    return {float(epsilon): scores for epsilon, scores in found.items()}


def work(file: str, epsilons: list[float]) -> None:
    """Run inside the environment: GaussianNB with bounds [0, 1] on the same bits."""
    import warnings

    from diffprivlib.models import GaussianNB

    warnings.simplefilter("ignore")
    stored = np.load(file)
    trials = sorted({int(name.partition("-")[0]) for name in stored.files})
    scores: dict[float, list[float]] = {epsilon: [] for epsilon in epsilons}
    for i in trials:
        X, y, test, labels = (stored[f"{i}-{j}"] for j in range(4))
        bounds = (np.zeros(X.shape[1]), np.ones(X.shape[1]))
        for epsilon in epsilons:
            model = GaussianNB(epsilon=epsilon, bounds=bounds)
            try:
                score = float(model.fit(X.astype(float), y).score(test.astype(float), labels))
            except ValueError:  # noise can leave it without a class
                score = float((labels == np.bincount(y).argmax()).mean())
            scores[epsilon].append(score)
    print(json.dumps(scores))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    work(sys.argv[1], json.loads(sys.argv[2]))
