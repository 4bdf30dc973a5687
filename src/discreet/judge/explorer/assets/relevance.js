// What matters for what: mutual information, d-separation, and the paths along which knowledge flows.

/** The uncertainty of a distribution in bits. */
function entropyOf(shares) {
  return shares.reduce((sum, p) => (p > 0 ? sum - p * Math.log2(p) : sum), 0);
}

/** I(target; X | evidence) in bits for every attribute X: one propagation for each level of the target. */
function rankByInformation(tree, target, weights) {
  const { sizes, starts } = tree.plan;
  const before = Float64Array.from(marginalsUnder(tree, weights) || []);
  if (!before.length) return null;
  const found = new Float64Array(sizes.length);
  for (let level = 0; level < sizes[target]; level++) {
    const share = before[starts[target] + level];
    if (!(share > 0)) continue;
    const narrowed = new Map(weights);
    const one = new Float64Array(sizes[target]);
    one[level] = 1;
    narrowed.set(target, one);
    const after = marginalsUnder(tree, narrowed);
    if (!after) continue;
    sizes.forEach((size, v) => {
      for (let k = starts[v]; k < starts[v] + size; k++) {
        if (after[k] > 0 && before[k] > 0) found[v] += share * after[k] * Math.log2(after[k] / before[k]);
      }
    });
  }
  for (let v = 0; v < found.length; v++) found[v] = Math.max(0, found[v]);
  found[target] = 0;
  return { bits: found, entropy: entropyOf(before.slice(starts[target], starts[target] + sizes[target])) };
}

function marginalsUnder(tree, weights) {
  return tree.propagate(weights) ? tree.marginals : null;
}

/** Who is known for certain, and whose common effects are known in part: what opens and blocks paths. */
function judgeEvidence(network, weights) {
  const known = new Set(), hinted = new Set();
  for (const [v, given] of weights) {
    hinted.add(v);
    if (given.reduce((count, w) => count + (w > 0 ? 1 : 0), 0) === 1) known.add(v);
  }
  // A common effect passes knowledge on if it, or anything that it leads to, is known at least in part.
  for (const v of [...network.topological].reverse()) {
    if (hinted.has(v)) for (const parent of network.parents[v]) hinted.add(parent);
  }
  return { known, hinted };
}

/** Whether a path may go on through `middle`, having come `downwards` along an arrow and leaving so, too, or not. */
function passes(middle, arrivedDown, leavesDown, { known, hinted }) {
  if (arrivedDown && !leavesDown) return hinted.has(middle);
  return !known.has(middle);
}

/** All attributes that one tells something about, given the evidence: the Bayes ball [Shachter 1998]. */
function reachFrom(network, source, judged) {
  const reached = new Set();
  if (judged.known.has(source)) return reached;
  const seen = new Set(), agenda = [[source, null]];
  while (agenda.length) {
    const [v, arrivedDown] = agenda.pop();
    const mark = `${v}${arrivedDown}`;
    if (seen.has(mark)) continue;
    seen.add(mark);
    if (v !== source && !judged.known.has(v)) reached.add(v);
    for (const child of network.children[v]) {
      if (arrivedDown === null || passes(v, arrivedDown, true, judged)) agenda.push([child, true]);
    }
    for (const parent of network.parents[v]) {
      if (arrivedDown === null || passes(v, arrivedDown, false, judged)) agenda.push([parent, false]);
    }
  }
  reached.delete(source);
  return reached;
}

const MOST_PATHS = 12;
const MOST_TRAILS = 20000;

/** The shortest paths between two attributes, open ones first; each says where it is blocked, if anywhere. */
function findPaths(network, from, to, judged) {
  const open = searchTrails(network, from, to, judged, true);
  const any = searchTrails(network, from, to, judged, false);
  const blocked = any.filter((path) => path.blocks.length);
  return { open, blocked, connected: reachFrom(network, from, judged).has(to) };
}

function searchTrails(network, from, to, judged, openOnly) {
  const found = [];
  let queue = [{ nodes: [from], downs: [], blocks: [] }], looked = 0;
  while (queue.length && found.length < MOST_PATHS && looked < MOST_TRAILS) {
    const next = [];
    for (const trail of queue) {
      if (++looked > MOST_TRAILS) break;
      const last = trail.nodes[trail.nodes.length - 1];
      const steps = [
        ...network.children[last].map((v) => [v, true]),
        ...network.parents[last].map((v) => [v, false]),
      ];
      for (const [v, down] of steps) {
        if (trail.nodes.includes(v)) continue;
        const blocks = [...trail.blocks];
        if (trail.downs.length) {
          const arrived = trail.downs[trail.downs.length - 1];
          if (!passes(last, arrived, down, judged)) {
            if (openOnly) continue;
            blocks.push({ at: last, effect: arrived && !down });
          }
        }
        const longer = { nodes: [...trail.nodes, v], downs: [...trail.downs, down], blocks };
        if (v !== to) next.push(longer);
        else if (found.length < MOST_PATHS) found.push(longer);
      }
    }
    queue = next;
  }
  return found;
}
