"""The private credal network: intervals around a privately learned network that bracket what noise has hidden."""

from __future__ import annotations

from discreet.compute.bounds import bound_conditionals, bound_counts
from discreet.networks.credal.makers import Strength, read_strength
from discreet.networks.credal.network import CredalNetwork
from discreet.networks.network import Network
from discreet.values.errors import NetworkError
from discreet.values.table import Table


def from_noise(network: Network, coverage: float = 0.95, strength: Strength = 0.0) -> CredalNetwork:
    """All networks that the noisy measurements of a release leave possible, at the stated coverage.

    With probability at least `coverage` over the noise, ALL its intervals hold at once: the network that the
    custodian would have published without noise (its rows the relative frequencies n_xπ/n_π) is one of its
    networks, and so every bound of every query contains that network's answer. It is post-processing of what
    was paid for, hence as private as the release, and no arithmetic on it recovers the frequencies.

    `strength` widens every row by the S of the imprecise Dirichlet model, which states sampling uncertainty
    on top.
    """
    provenance = network.provenance
    if provenance is None:
        raise NetworkError("the network does not say what was measured; only a privately learned one does")
    if not 0 < coverage < 1:
        raise NetworkError(f"a coverage lies strictly between 0 and 1, not {coverage}")
    dag, schema = network.dag, network.schema
    for measurement in provenance.measurements:
        _check_shape(measurement.noisy, network)
    sets = [members for family in dag.families() for members in (family, family[:-1])]
    counts = bound_counts(provenance.measurements, sets, schema.names, coverage)
    lower, upper = [], []
    for name in dag.nodes:
        family = dag.family(name)
        if frozenset(family) not in counts:
            raise NetworkError(
                f"no table over all rows was measured that contains {', '.join(family)}, so nothing is known about "
                f"the rows of {name!r}"
            )
        cells, rows = counts[frozenset(family)], counts[frozenset(family[:-1])]
        shape = [schema[parent].size for parent in rows.axes]
        sorted_family = (*rows.axes, name)
        spread = Table(
            family[:-1], read_strength(strength, name, [schema[parent].size for parent in family[:-1]])
        ).arrange(rows.axes)
        ends = bound_conditionals(cells, rows, name, spread.values.reshape(shape))
        low, high = (Table(sorted_family, end).arrange(family) for end in ends)
        lower.append(low)
        upper.append(high)
    meaning = f"With probability at least {coverage:g}, [ ] contains the answer that noise has hidden."
    if strength != 0:
        meaning += " It allows for sampling as well, by the imprecise Dirichlet model."
    return CredalNetwork(
        schema,
        dag,
        tuple(lower),
        tuple(upper),
        meaning,
        provenance,
    )


def _check_shape(noisy: Table, network: Network) -> None:
    for name, size in noisy.sizes.items():
        if name in network.schema and network.schema[name].size != size:
            raise NetworkError(
                f"the measured table over {noisy.axes} has {size} levels of {name!r}; the schema has "
                f"{network.schema[name].size}"
            )
