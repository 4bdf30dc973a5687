"""A short tour on a network that comes with the package: questions, an explanation, synthetic rows.

Nothing in it is private yet: the network is a textbook's, so there are no rows to protect and no budget to spend.
"""

from __future__ import annotations

import time
from pathlib import Path

from discreet.models import examples
from discreet.models.network import Network

ROWS = 1000
SEED = 7
PATIENT = {"smoke": "yes", "dysp": "yes", "xray": "yes"}


def main(folder: Path = Path("demo")) -> None:
    """Run the tour, write what it makes into `folder`, and print the paths, then `demo_seconds`."""
    start = time.perf_counter()
    network = examples.asia()
    print(
        "The chest clinic (Lauritzen and Spiegelhalter, 1988), a public textbook example; no private data here."
    )
    print(f"{network}: {', '.join(network.nodes)}\n")
    ask(network)
    written = write_all(network, folder)
    print()
    for path in written:
        print(path)
    print(f"demo_seconds: {time.perf_counter() - start:.2f}")


def ask(network: Network) -> None:
    """Print exact answers to a few what-if questions."""
    print("What if? Exact answers:")
    print(network.query("lung"))
    print(network.query("lung", given={"smoke": "yes"}))
    print(network.query("lung", given=PATIENT))
    print(network.query(["lung", "bronc"], given=PATIENT))
    best = network.most_probable(given=PATIENT)
    levels = ", ".join(f"{name}={level}" for name, level in best.levels.items())
    print(f"The most probable explanation of this patient: {levels} (probability {best.probability:.4f})\n")


def write_all(network: Network, folder: Path) -> list[Path]:
    """Write the network for other tools and for discreet, and synthetic rows; compare these with the network."""
    folder.mkdir(parents=True, exist_ok=True)
    bif, document, rows_file = folder / "asia.bif", folder / "asia.json", folder / "asia_rows.csv"
    network.write_bif(bif)
    network.write(document)
    rows = network.sample(ROWS, rng=SEED)
    rows.write(rows_file)
    codes = rows.codes()
    print(f"{ROWS} synthetic rows, seed {SEED}, share of 'yes' in the rows and in the network:")
    for name, marginal in network.posteriors().items():
        print(f"  {name:<8}{(codes[name] == 0).mean():>8.3f}{marginal[0]:>8.3f}")
    return [bif, document, rows_file]


if __name__ == "__main__":
    main()
