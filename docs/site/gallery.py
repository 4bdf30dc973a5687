"""Five releases of public tables for the site: `python docs/site/gallery.py` writes them to build/gallery.

The tables come inside Python packages, so that nothing is downloaded. Levels and edges are declared here from the
descriptions of the tables and not read off them. Each release has its own explorer, report and statement.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import discreet as dc

ROOT = Path(__file__).parents[2]
PLACE = ROOT / "build" / "gallery"
INF = float("inf")


@dataclass(frozen=True)
class Picture:
    """One table of the gallery: where it is from, what its columns may hold, what is asked of it."""

    name: str
    title: str
    source: str
    load: Callable[[], Any]
    schema: dict[str, Any]
    question: str
    epsilon: int = 1
    graph: dict[str, list[str]] | None = None


def _statsmodels(name: str) -> Callable[[], Any]:
    def load() -> Any:
        from statsmodels import datasets

        return getattr(datasets, name).load_pandas().data

    return load


def _breast_cancer() -> Any:
    from sklearn.datasets import load_breast_cancer

    return load_breast_cancer(as_frame=True).frame


def _iris() -> Any:
    from sklearn.datasets import load_iris

    found = load_iris(as_frame=True)
    return found.frame.assign(species=found.target.map(dict(enumerate(found.target_names))))


def _cut(*edges: float) -> dc.Bins:
    return dc.Bins(edges)


PICTURES = (
    Picture(
        "health-insurance",
        "A health insurance experiment",
        "RAND's experiment, 20,190 person-years (statsmodels: randhie)",
        _statsmodels("randhie"),
        {
            "mdvis": dc.Bins((0, 1, 3, 6, 12, INF), highest=80),
            "lncoins": _cut(0, 0.1, 3, 4, 5),
            "idp": _cut(0, 0.5, 1),
            "physlm": _cut(0, 0.5, 1),
            "disea": dc.Bins((0, 5, 10, 15, 20, INF), highest=60),
            "hlthg": _cut(0, 0.5, 1),
            "hlthf": _cut(0, 0.5, 1),
            "hlthp": _cut(0, 0.5, 1),
        },
        "P(mdvis)",
    ),
    Picture(
        "marriage",
        "A magazine's survey on marriage",
        "Redbook's survey of 1974, 6,366 women (statsmodels: fair)",
        _statsmodels("fair"),
        {
            "rate_marriage": _cut(1, 2, 3, 4, 5, 6),
            "age": _cut(17, 20, 25, 30, 35, 40, 45),
            "yrs_married": _cut(0, 2, 5, 8, 12, 16, 25),
            "children": _cut(0, 1, 2, 3, 4, 6),
            "religious": _cut(1, 2, 3, 4, 5),
            "educ": _cut(9, 11, 13, 15, 16.5, 21),
            "affairs": dc.Bins((0, 0.001, 1, 5, INF), highest=60),
        },
        "P(children)",
    ),
    Picture(
        "election",
        "An election study",
        "American National Election Study of 1996, 944 people (statsmodels: anes96)",
        _statsmodels("anes96"),
        {
            "selfLR": _cut(1, 3, 5, 8),
            "PID": _cut(0, 2, 5, 7),
            "age": _cut(18, 35, 50, 65, 100),
            "educ": _cut(1, 3, 5, 8),
            "income": _cut(1, 12, 18, 25),
            "vote": _cut(0, 0.5, 1),
        },
        "P(age)",
        epsilon=2,
    ),
    Picture(
        "tumours",
        "Tumours under the microscope",
        "Wisconsin's diagnostic data, 569 tumours (scikit-learn: load_breast_cancer)",
        _breast_cancer,
        {
            "mean radius": _cut(5, 11, 13, 15, 18, 30),
            "mean texture": _cut(5, 16, 19, 22, 40),
            "mean concavity": _cut(0, 0.03, 0.07, 0.15, 0.5),
            "target": _cut(0, 0.5, 1),
        },
        "P(target)",
        epsilon=2,
        graph={
            "mean radius": ["target"],
            "mean texture": ["target"],
            "mean concavity": ["target"],
            "target": [],
        },
    ),
    Picture(
        "iris",
        "Irises: what 150 rows leave",
        "Fisher's irises, 150 flowers (scikit-learn: load_iris)",
        _iris,
        {
            "petal length (cm)": _cut(0, 2.5, 4.9, 8),
            "petal width (cm)": _cut(0, 0.8, 1.7, 3),
            "species": ["setosa", "versicolor", "virginica"],
        },
        "P(species)",
        epsilon=4,
        graph={"species": [], "petal length (cm)": ["species"], "petal width (cm)": ["species"]},
    ),
)


def make_gallery(place: Path = PLACE) -> None:
    """Release every table from a ledger of its own, and write the page beside them."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    lines = [
        "# Gallery",
        "",
        "Five releases of public tables, made by `docs/site/gallery.py` when the site is built. Open an explorer and "
        "click a bar.",
        "",
    ]
    for picture in PICTURES:
        print(f"{picture.name} …", file=sys.stderr, flush=True)
        ledger = place / f"{picture.name}.ledger"
        made = dc.release(
            picture.load()[list(picture.schema)],
            dc.Schema.of(picture.schema),
            picture.graph,
            epsilon=picture.epsilon,
            ledger=str(ledger),
            account=picture.name,
            create=True,
            about={"title": picture.title, "description": picture.source},
        )
        made.write(place / picture.name)
        checked = dc.verify(place / picture.name, ledger=str(ledger)).conclude()
        ledger.unlink()
        (place / picture.name / "statement.txt").write_text(_state(place / picture.name), "utf-8")
        lines += [
            f"## {picture.title}",
            "",
            f"{picture.source}. ε = {picture.epsilon}; {made.describe_graph()}. Verified: {checked}.",
            "",
            "```text",
            str(made.ask(picture.question)),
            "```",
            "",
            f"[Explorer](gallery/{picture.name}/explorer.html) · [Report](gallery/{picture.name}/report.html) · "
            f"[Statement](gallery/{picture.name}/statement.txt) · [Release](gallery/{picture.name}/release.json)",
            "",
        ]
    (place / "gallery.md").write_text("\n".join(lines), "utf-8")


def _state(path: Path) -> str:
    from discreet.doors.publishing import describe

    return describe(path) + "\n"


if __name__ == "__main__":
    make_gallery()
