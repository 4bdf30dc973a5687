// Exact inference: a junction tree on typed arrays [Lauritzen & Spiegelhalter 1988; Jensen et al. 1990].
//
// A tree carries `width` networks of the same graph side by side, the network fastest: cell c of network b is at c·width + b.
// The page's own network is a tree of width 1; the ensemble behind the intervals goes through in wider ones.

/** The cliques that an elimination order makes, the tree that joins them, and where every table and attribute lives. */
function planTree(sizes, families, order, mostCells) {
  const count = sizes.length;
  const near = sizes.map(() => new Set());
  for (const family of families) {
    for (const one of family) for (const other of family) if (one !== other) near[one].add(other);
  }
  const rank = new Int32Array(count);
  order.forEach((v, i) => { rank[v] = i; });
  const later = new Array(count), home = new Int32Array(count), link = [], cliques = [];
  const children = sizes.map(() => []);
  for (const v of order) {
    const rest = [...near[v]].filter((u) => rank[u] > rank[v]).sort((a, b) => rank[a] - rank[b]);
    for (const one of rest) for (const other of rest) if (one !== other) near[one].add(other);
    later[v] = rest;
    // A clique that an earlier one contains is no clique of its own.
    const holder = children[v].find((u) => later[u].length === rest.length + 1);
    if (holder === undefined) {
      home[v] = cliques.length;
      cliques.push([v, ...rest]);
      link.push(-1);
    } else {
      home[v] = home[holder];
    }
    link[home[v]] = rest.length ? rest[0] : -1;
    if (rest.length) children[rest[0]].push(v);
  }
  const cells = cliques.map((clique) => clique.reduce((product, v) => product * sizes[v], 1));
  const total = cells.reduce((sum, found) => sum + found, 0);
  if (!(total <= mostCells)) return { total, tooWide: true };

  // From the root outwards; what does not hang together is joined by empty separators.
  const root = home[order[count - 1]];
  const above = link.map((v, i) => (v >= 0 ? home[v] : i === root ? -1 : root));
  const below = cliques.map(() => []);
  above.forEach((up, i) => { if (up >= 0) below[up].push(i); });
  const sequence = [root];
  for (let i = 0; i < sequence.length; i++) sequence.push(...below[sequence[i]]);

  const strides = cliques.map((clique) => stridesOf(clique, sizes));
  const separators = cliques.map((clique, i) => {
    if (above[i] < 0) return null;
    const upper = new Set(cliques[above[i]]);
    const shared = clique.filter((v) => upper.has(v));
    const inner = stridesOf(shared, sizes);
    return {
      cells: shared.reduce((product, v) => product * sizes[v], 1),
      down: mapCells(cliques[i], strides[i], cells[i], sizes, shared, inner),
      up: mapCells(cliques[above[i]], strides[above[i]], cells[above[i]], sizes, shared, inner),
    };
  });
  const smallest = sizes.map((_, v) => {
    let best = -1;
    cliques.forEach((clique, i) => { if ((best < 0 || cells[i] < cells[best]) && clique.includes(v)) best = i; });
    return best;
  });
  const homes = families.map((family) => {
    const first = family.reduce((a, b) => (rank[a] < rank[b] ? a : b));
    return home[first];
  });
  const starts = new Int32Array(count + 1);
  sizes.forEach((size, v) => { starts[v + 1] = starts[v] + size; });
  return { sizes, families, cliques, cells, strides, above, sequence, separators, smallest, homes, starts, total };
}

/** How far apart the levels of each variable are in a table over these, the last fastest. */
function stridesOf(variables, sizes) {
  const found = new Map();
  let stride = 1;
  for (let k = variables.length - 1; k >= 0; k--) {
    found.set(variables[k], stride);
    stride *= sizes[variables[k]];
  }
  return found;
}

/** For every cell of a table over `variables` the cell of a smaller one over `shared`. */
function mapCells(variables, strides, cells, sizes, shared, inner) {
  const found = new Int32Array(cells);
  for (const v of shared) {
    const stride = strides.get(v), size = sizes[v], step = inner.get(v);
    for (let block = 0; block < cells; block += stride * size) {
      for (let level = 1; level < size; level++) {
        const at = block + level * stride, add = level * step;
        for (let i = 0; i < stride; i++) found[at + i] += add;
      }
    }
  }
  return found;
}

/** A number of networks over one plan: evidence in, marginals of every attribute out. */
class JunctionTree {
  /** `tables[v]` has the axes of families[v] in order, the last fastest, then the networks. */
  constructor(plan, tables, width) {
    this.plan = plan;
    this.width = width;
    this.base = plan.cells.map((cells) => new Float64Array(cells * width).fill(1));
    this.fill(tables);
    this.work = plan.cells.map((cells) => new Float64Array(cells * width));
    this.messages = plan.separators.map((found) => (found ? new Float64Array(found.cells * width) : null));
    this.fresh = plan.separators.map((found) => (found ? new Float64Array(found.cells * width) : null));
    this.logs = new Float64Array(width);
    this.marginals = new Float64Array(plan.starts[plan.sizes.length] * width);
  }

  /** Multiply the networks' tables into the cliques. */
  fill(tables) {
    const { plan, width } = this;
    for (const values of this.base) values.fill(1);
    plan.families.forEach((family, v) => {
      const home = plan.homes[v];
      const inner = stridesOf(family, plan.sizes);
      const map = mapCells(plan.cliques[home], plan.strides[home], plan.cells[home], plan.sizes, family, inner);
      multiply(this.base[home], map, plan.cells[home], tables[v], width);
    });
  }

  /** Take in weights of levels (by attribute: an array) and spread them; false if no network allows them. */
  propagate(weights) {
    const { plan, width, work, messages, fresh, logs } = this;
    this.enter(weights);
    for (let k = plan.sequence.length - 1; k > 0; k--) {
      const i = plan.sequence[k], link = plan.separators[i], message = messages[i];
      project(work[i], link.down, plan.cells[i], message, width);
      scale(message, link.cells, width, logs);
      multiply(work[plan.above[i]], link.up, plan.cells[plan.above[i]], message, width);
    }
    scale(work[plan.sequence[0]], plan.cells[plan.sequence[0]], width, logs);
    for (let k = 1; k < plan.sequence.length; k++) {
      const i = plan.sequence[k], link = plan.separators[i], update = fresh[i], old = messages[i];
      project(work[plan.above[i]], link.up, plan.cells[plan.above[i]], update, width);
      for (let c = 0; c < update.length; c++) update[c] = old[c] > 0 ? update[c] / old[c] : 0;
      multiply(work[i], link.down, plan.cells[i], update, width);
    }
    this.sum();
    return logs.some((value) => value > -Infinity);
  }

  /** Each attribute's marginal from its smallest clique. */
  sum() {
    const { plan, width, work, marginals } = this;
    marginals.fill(0);
    const totals = new Float64Array(width);
    plan.sizes.forEach((size, v) => {
      const clique = plan.smallest[v], from = work[clique], stride = plan.strides[clique].get(v);
      const start = plan.starts[v] * width, span = stride * width;
      totals.fill(0);
      for (let block = 0; block < from.length; block += span * size) {
        for (let level = 0; level < size; level++) {
          const at = block + level * span, to = start + level * width;
          for (let i = 0; i < span; i += width) {
            for (let b = 0; b < width; b++) marginals[to + b] += from[at + i + b];
          }
        }
      }
      for (let level = 0; level < size; level++) {
        for (let b = 0; b < width; b++) totals[b] += marginals[start + level * width + b];
      }
      for (let level = 0; level < size; level++) {
        for (let b = 0; b < width; b++) {
          if (totals[b] > 0) marginals[start + level * width + b] /= totals[b];
        }
      }
    });
  }

  /** The most probable levels of all attributes together, and the logarithm of how probable; only of width 1. */
  explain(weights) {
    const { plan, work, messages } = this;
    this.enter(weights);
    let log = 0;
    for (let k = plan.sequence.length - 1; k > 0; k--) {
      const i = plan.sequence[k], link = plan.separators[i], message = messages[i].fill(0);
      for (let c = 0; c < plan.cells[i]; c++) {
        const at = link.down[c];
        if (work[i][c] > message[at]) message[at] = work[i][c];
      }
      const peak = message.reduce((a, b) => (a > b ? a : b), 0);
      if (peak === 0) return null;
      log += Math.log(peak);
      for (let c = 0; c < message.length; c++) message[c] /= peak;
      multiply(work[plan.above[i]], link.up, plan.cells[plan.above[i]], message, 1);
    }
    const best = new Int32Array(plan.cliques.length);
    for (const i of plan.sequence) {
      const link = plan.separators[i];
      const fixed = link ? link.up[best[plan.above[i]]] : 0;
      let top = -1;
      for (let c = 0; c < plan.cells[i]; c++) {
        if ((!link || link.down[c] === fixed) && work[i][c] > (top < 0 ? 0 : work[i][top])) top = c;
      }
      if (top < 0) return null;
      best[i] = top;
      if (!link) log += Math.log(work[i][top]);
    }
    const levels = plan.sizes.map((size, v) => {
      const clique = plan.smallest[v];
      return Math.floor(best[clique] / plan.strides[clique].get(v)) % size;
    });
    return { levels, log };
  }

  enter(weights) {
    const { plan, width, base, work } = this;
    this.logs.fill(0);
    base.forEach((values, i) => work[i].set(values));
    for (const [v, given] of weights) {
      const clique = plan.smallest[v], values = work[clique], size = plan.sizes[v];
      const span = plan.strides[clique].get(v) * width;
      for (let block = 0; block < values.length; block += span * size) {
        for (let level = 0; level < size; level++) {
          const at = block + level * span;
          for (let i = 0; i < span; i++) values[at + i] *= given[level];
        }
      }
    }
  }
}

/** Sum a table into a smaller one, for all networks. */
function project(from, map, cells, to, width) {
  to.fill(0);
  if (width === 1) {
    for (let c = 0; c < cells; c++) to[map[c]] += from[c];
    return;
  }
  for (let c = 0, at = 0; c < cells; c++) {
    const target = map[c] * width;
    for (let b = 0; b < width; b++) to[target + b] += from[at++];
  }
}

/** Multiply a smaller table into a larger one, for all networks. */
function multiply(values, map, cells, by, width) {
  if (width === 1) {
    for (let c = 0; c < cells; c++) values[c] *= by[map[c]];
    return;
  }
  for (let c = 0, at = 0; c < cells; c++) {
    const source = map[c] * width;
    for (let b = 0; b < width; b++) values[at++] *= by[source + b];
  }
}

/** Divide each network's table by its sum, and note the logarithm of that; nothing may become too small to tell from 0. */
function scale(values, cells, width, logs) {
  for (let b = 0; b < width; b++) {
    let total = 0;
    for (let at = b; at < cells * width; at += width) total += values[at];
    logs[b] += total > 0 ? Math.log(total) : -Infinity;
    if (total > 0) for (let at = b; at < cells * width; at += width) values[at] /= total;
  }
}
