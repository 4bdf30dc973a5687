"""One synthesiser on rows of codes; runs in an environment of its own, which has discreet only where discreet is meant.

Reads {"method", "sizes", "epsilon", "delta", "rho", "draw", "drawing", "codes", "answer"} from the file that is
named first, writes `draw` synthetic rows of codes to the npz file `answer`, and prints seconds and memory as JSON.
"""

from __future__ import annotations

import json
import math
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Codes = dict[str, np.ndarray]
Draw = Callable[[], Codes]
"""Fitting gives a function that draws the rows."""
Begin = Callable[[], None]
"""Called once all imports are done: from there on time counts, compiling included."""


def fit_ours(codes: Codes, task: dict[str, Any], begin: Begin) -> Draw:
    """Our default search in pure ε, PrivBayes in pure ε, or the default search in the ρ that the peers get."""
    from discreet.entrance import open_airlock
    from discreet.learning.adaptive import adaptive
    from discreet.learning.privbayes import privbayes
    from discreet.values.budget import ZCDP, PureDP
    from discreet.values.schema import Schema

    begin()
    schema = Schema.of({name: range(size) for name, size in task["sizes"].items()})
    learn = privbayes if task["method"] == "ours_privbayes" else adaptive
    budget = ZCDP(task["rho"]) if task["method"] == "ours_zcdp" else PureDP(task["epsilon"])
    with open_airlock(codes, schema, budget=budget) as airlock:
        network = learn(airlock, spend=budget)
    return lambda: network.sample(task["draw"], rng=0).codes()


def fit_opendp(codes: Codes, task: dict[str, Any], begin: Begin) -> Draw:
    """OpenDP's MST or AIM with all keys public, in the ρ that (ε, δ) affords, to two digits."""
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib")
    algorithm = dp.mbi.AIM() if task["method"].endswith("aim") else dp.mbi.MST()
    begin()
    # Rounded down: with some amounts its own parts add up to a rounding error too much, and it refuses them.
    step = 10.0 ** (math.floor(math.log10(float(task["rho"]))) - 1)
    rho = math.floor(float(task["rho"]) / step) * step
    context = dp.Context.compositor(
        data=pl.DataFrame({name: column.astype(np.int64) for name, column in codes.items()}).lazy(),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    keys = {name: list(range(size)) for name, size in task["sizes"].items()}
    table = context.query(rho=rho).contingency_table(keys=keys, algorithm=algorithm).release()

    def draw() -> Codes:
        found = table.synthesize(rows=task["draw"], method=task["drawing"])
        # It adds a level for what is in no key; such rows are few, and count as the first level.
        return {name: found[name].fill_null(0).to_numpy() for name in task["sizes"]}

    return draw


def fit_dpmm(codes: Codes, task: dict[str, Any], begin: Begin) -> Draw:
    """dpmm's PrivBayes (as it comes, with normalised information), MST or AIM, without its own binning."""
    import pandas as pd
    from dpmm.pipelines import AIMPipeline, MSTPipeline, PrivBayesPipeline

    begin()
    kinds = {"dpmm_privbayes": PrivBayesPipeline, "dpmm_mst": MSTPipeline, "dpmm_aim": AIMPipeline}
    model = kinds[task["method"]](
        epsilon=float(task["epsilon"]), delta=float(task["delta"]), disable_processing=True, n_jobs=2
    )
    frame = pd.DataFrame({name: column.astype(np.int64) for name, column in codes.items()})
    model.fit(frame, dict(task["sizes"]))
    return lambda: {
        name: column.to_numpy() for name, column in model.generate(n_records=task["draw"]).items()
    }


def fit_datasynthesizer(codes: Codes, task: dict[str, Any], begin: Begin) -> Draw:
    """DataSynthesizer's PrivBayes with the degree in the method's name; domains are given, so that none is read."""
    import pandas as pd
    from DataSynthesizer.DataDescriber import DataDescriber
    from DataSynthesizer.DataGenerator import DataGenerator

    begin()
    folder = Path(tempfile.mkdtemp(dir="."))
    names = list(task["sizes"])
    frame = pd.DataFrame({name: [f"v{code}" for code in codes[name]] for name in names})
    frame.to_csv(folder / "rows.csv", index=False)
    domains = {name: [f"v{code}" for code in range(size)] for name, size in task["sizes"].items()}
    (folder / "domains.json").write_text(json.dumps(domains))
    describer = DataDescriber(category_threshold=10**6)
    describer.describe_dataset_in_correlated_attribute_mode(
        str(folder / "rows.csv"),
        k=int(task["method"][-1]),
        epsilon=float(task["epsilon"]),
        attribute_to_datatype=dict.fromkeys(names, "String"),
        attribute_to_is_categorical=dict.fromkeys(names, True),
        attribute_to_is_candidate_key=dict.fromkeys(names, False),
        categorical_attribute_domain_file=str(folder / "domains.json"),
    )
    describer.save_dataset_description_to_file(str(folder / "model.json"))

    def draw() -> Codes:
        generator = DataGenerator()
        generator.generate_dataset_in_correlated_attribute_mode(task["draw"], str(folder / "model.json"))
        found = generator.synthetic_dataset
        return {name: found[name].str[1:].astype(int).to_numpy() for name in names}

    return draw


FITS = {"ours": fit_ours, "opendp": fit_opendp, "dpmm": fit_dpmm, "datasynthesizer": fit_datasynthesizer}


def measure_work() -> float:
    """Seconds that processors have worked for this process and its children, however busy the machine is."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(found.ru_utime + found.ru_stime for found in used)


def main() -> None:
    """Fit, draw, and tell what it took."""
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    with np.load(task["codes"]) as file:
        codes = {name: file[name] for name in task["sizes"]}
    fit = FITS[task["method"].partition("_")[0]]
    starts: list[tuple[float, float]] = []
    draw = fit(codes, task, lambda: starts.append((time.perf_counter(), measure_work())))
    fitted, work = time.perf_counter(), measure_work()
    drawn = draw()
    done = time.perf_counter()
    np.savez(task["answer"], **{name: np.asarray(drawn[name]).astype(np.int64) for name in task["sizes"]})
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    (start, before) = starts[0]
    print(
        json.dumps(
            {
                "fit_s": fitted - start,
                "cpu_s": work - before,
                "sample_s": done - fitted,
                "peak_mb": peak / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
