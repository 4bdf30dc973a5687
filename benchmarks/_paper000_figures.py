"""The figures of `paper000.py`: errors by ε with error bars for each network, and the ε saving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from _paper000_trials import LEARNERS, Cells
from discreet.compute.metrics import FLOOR

PANELS = (
    ("parameter", "parameters"),
    ("marginal", "marginal queries"),
    ("conditional", "conditional queries"),
)
MARKERS = dict(zip(LEARNERS, ("o", "v", "s", "D", "^"), strict=True))


def draw_errors(cells: Cells, network: str, epsilons: Sequence[str], runs: range, path: Path) -> None:
    """Mean L1 and KL of parameters, marginals and conditionals by ε, as in Figures 2 and 4, with standard errors."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 6.4), sharex=True, layout="constrained")
    for row, metric in enumerate(("l1", "kl")):
        for column, (kind, title) in enumerate(PANELS):
            panel = axes[row][column]
            for learner in LEARNERS:
                found = [
                    cells.collect("queries", network, learner, epsilon, f"{kind}_{metric}", runs)
                    for epsilon in epsilons
                ]
                if not all(values.size for values in found):
                    continue
                means = [values.mean() for values in found]
                bars = [
                    values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else 0.0 for values in found
                ]
                panel.errorbar(
                    [float(epsilon) for epsilon in epsilons],
                    means,
                    yerr=bars,
                    label=learner,
                    marker=MARKERS[learner],
                    markersize=4,
                    capsize=2,
                )
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.grid(alpha=0.3)
            if row == 0:
                panel.set_title(title)
            else:
                panel.set_xlabel("ε")
        axes[row][0].set_ylabel("L1" if metric == "l1" else f"KL (floor {FLOOR:g})")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(LEARNERS))
    figure.suptitle(f"{network}: mean error, {len(runs)} runs, bars ± 1 standard error")
    figure.savefig(path, dpi=75)
    plt.close(figure)


def draw_savings(
    savings: Mapping[tuple[str, str, str], tuple[float, float]], learners: Sequence[str], path: Path
) -> None:
    """The ε that D-Ind needs to match each learner at ε = 1, by network, for the weighted L1 of the conditionals."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    networks = list(dict.fromkeys(network for network, _, _ in savings))
    figure, panel = plt.subplots(figsize=(9, 4))
    width = 0.8 / len(learners)
    for k, learner in enumerate(learners):
        found = [savings.get((network, learner, "weighted"), (np.nan, np.nan)) for network in networks]
        panel.bar(
            np.arange(len(networks)) + k * width,
            [value for value, _ in found],
            width,
            yerr=[error for _, error in found],
            capsize=2,
            label=learner,
        )
    panel.axhline(1.0, color="black", linewidth=0.8)
    panel.axhline(3.0, color="grey", linewidth=0.8, linestyle="--", label="the paper's claim for Algorithm 1")
    panel.set_xticks(np.arange(len(networks)) + width * (len(learners) - 1) / 2, networks)
    panel.set_ylabel("ε of D-Ind / ε")
    panel.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
