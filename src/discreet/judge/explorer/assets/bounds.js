// Guaranteed intervals: bounds on an answer over all networks whose conditionals lie within their intervals.
//
// Attributes are summed out children first. Each conditional is chosen, for each context by itself, to make the signed
// function V = A − μB least; messages are kept as intervals. V(μ) bounds P(e)·(E[f | e] − μ) from below for every network
// of the set, so the greatest μ with V(μ) ≥ 0 is a lower bound; Newton's method finds it in a few steps. This is the
// children-first order of discreet.compute.bounds.outer, which tries others, too, and may be narrower.

const MOST_CONTEXTS = 1 << 17; // for the attribute in question
const CARD_CONTEXTS = 1 << 14; // for each of the others
const NEWTON_STEPS = 60;
const OUTWARD = 1e-9;

/** The ends of P(target = level | weights) for every level, or null if that is too much work here. */
function boundTarget(network, target, weights, mostCells = MOST_CONTEXTS) {
  const steps = planInduction(network, target, weights, mostCells);
  if (!steps) return null;
  const size = network.sizes[target];
  const low = new Float64Array(size), high = new Float64Array(size).fill(1);
  for (let level = 0; level < size; level++) {
    low[level] = Math.max(0, findRoot(network, steps, target, level, 1) - OUTWARD);
    high[level] = Math.min(1, -findRoot(network, steps, target, level, -1) + OUTWARD);
  }
  // No network of the set allows the evidence if they claim to bound every level away from itself.
  return low.reduce((a, b) => a + b, 0) > 1 + 1e-6 || low.some((end, x) => end > high[x]) ? null : { low, high };
}

/** The attributes that matter, children first, and the contexts that each sees; null if there are too many. */
function planInduction(network, target, weights, mostCells) {
  const relevant = new Set([target, ...weights.keys()]);
  for (const v of [...network.topological].reverse()) {
    if (relevant.has(v)) for (const parent of network.parents[v]) relevant.add(parent);
  }
  const scopes = [], steps = [], waiting = new Map();
  for (const v of relevant) waiting.set(v, network.children[v].filter((u) => relevant.has(u)).length);
  let signed = [target], cells = 0;
  const look = (v) => {
    const used = [], members = new Set(network.parents[v]);
    scopes.forEach((scope, i) => {
      if (!scope || !scope.includes(v)) return;
      used.push(i);
      for (const u of scope) members.add(u);
    });
    const carries = signed.includes(v);
    if (carries) for (const u of signed) members.add(u);
    members.delete(v);
    const context = [...members];
    return { v, used, carries, context, count: context.reduce((product, u) => product * network.sizes[u], network.sizes[v]) };
  };
  const ready = [...relevant].filter((v) => !waiting.get(v));
  while (ready.length) {
    // Of those whose effects are gone, the one that sees the fewest contexts.
    const next = ready.map(look).reduce((a, b) => (b.count < a.count ? b : a));
    const { v, used, carries, context, count } = next;
    cells += count;
    if (!(cells <= mostCells)) return null;
    const full = [...context, v], strides = stridesOf(full, network.sizes);
    const onto = (scope) => mapCells(full, strides, count, network.sizes, scope, stridesOf(scope, network.sizes));
    steps.push({
      v, used, carries, count, size: network.sizes[v], evidence: weights.get(v) || null,
      maps: used.map((i) => onto(scopes[i])),
      signedMap: carries ? onto(signed) : null,
      own: onto([...network.parents[v], v]),
    });
    for (const i of used) scopes[i] = null;
    scopes.push(carries ? null : context);
    if (carries) signed = context;
    ready.splice(ready.indexOf(v), 1);
    for (const u of network.parents[v]) {
      waiting.set(u, waiting.get(u) - 1);
      if (!waiting.get(u)) ready.push(u);
    }
  }
  return steps;
}

/** The greatest μ for which V(μ) is not negative, for f = ±1 at a level: V is concave and falls, so Newton comes down. */
function findRoot(network, steps, target, level, sign) {
  let mu = sign > 0 ? 1 : 0;
  for (let step = 0; step < NEWTON_STEPS; step++) {
    const [a, b] = descend(network, steps, target, level, sign, mu);
    if (!(b > 0) || a / b >= mu - 1e-13) return mu;
    mu = a / b;
  }
  return sign > 0 ? 0 : -1;
}

/** A and B of the choice of conditionals that makes A − μB least. What does not depend on μ is worked out once. */
function descend(network, steps, target, level, sign, mu) {
  let a = new Float64Array(network.sizes[target]), b = new Float64Array(network.sizes[target]).fill(1);
  a[level] = sign;
  for (const step of steps) {
    if (!step.ends) step.ends = gatherMessages(step, steps);
    if (!step.carries) {
      if (!step.message) step.message = sumOut(network, step);
      continue;
    }
    [a, b] = sumSigned(network, step, a, b, mu);
  }
  // What is left are numbers: the parts of the graph that the target does not hang on.
  const used = new Set(steps.flatMap((step) => step.used));
  const value = a[0] - mu * b[0];
  let top = a[0], bottom = b[0];
  steps.forEach(({ message }, s) => {
    if (!message || used.has(s)) return;
    const end = value >= 0 ? message[0][0] : message[1][0];
    top *= end;
    bottom *= end;
  });
  return [top, bottom];
}

/** The ends of the product of all messages that an attribute receives, with its evidence. */
function gatherMessages(step, steps) {
  const { count, size, evidence } = step;
  const lower = new Float64Array(count).fill(1), upper = new Float64Array(count).fill(1);
  step.used.forEach((i, k) => {
    const map = step.maps[k], [least, most] = steps[i].message;
    for (let c = 0; c < count; c++) { lower[c] *= least[map[c]]; upper[c] *= most[map[c]]; }
  });
  if (evidence) {
    for (let c = 0; c < count; c++) { const w = evidence[c % size]; lower[c] *= w; upper[c] *= w; }
  }
  return [lower, upper];
}

/** The message of an attribute that the signed function does not mention: its least and its greatest mean. */
function sumOut(network, step) {
  const { v, size, count, own } = step, contexts = count / size;
  const values = new Float64Array(size), picks = new Float64Array(size), order = new Int32Array(size);
  return step.ends.map((from, side) => {
    const found = new Float64Array(contexts);
    for (let k = 0; k < contexts; k++) {
      for (let x = 0; x < size; x++) values[x] = from[k * size + x];
      choose(values, own, k * size, network.lower[v], network.upper[v], picks, order, side === 1);
      for (let x = 0; x < size; x++) found[k] += picks[x] * values[x];
    }
    return found;
  });
}

function sumSigned(network, step, a, b, mu) {
  const { v, size, count, own, signedMap } = step, contexts = count / size, [lower, upper] = step.ends;
  const nextA = new Float64Array(contexts), nextB = new Float64Array(contexts);
  const values = new Float64Array(size), picks = new Float64Array(size), order = new Int32Array(size);
  const partA = new Float64Array(size), partB = new Float64Array(size);
  for (let k = 0; k < contexts; k++) {
    for (let x = 0; x < size; x++) {
      const c = k * size + x, from = signedMap[c], value = a[from] - mu * b[from];
      const end = value >= 0 ? lower[c] : upper[c];
      partA[x] = a[from] * end;
      partB[x] = b[from] * end;
      values[x] = value * end;
    }
    choose(values, own, k * size, network.lower[v], network.upper[v], picks, order, false);
    for (let x = 0; x < size; x++) {
      nextA[k] += picks[x] * partA[x];
      nextB[k] += picks[x] * partB[x];
    }
  }
  return [nextA, nextB];
}

/** The probabilities within their ends that sum to 1 and make the mean of the values least, or greatest. */
function choose(values, own, at, least, most, picks, order, greatest) {
  const size = values.length;
  let left = 1;
  for (let x = 0; x < size; x++) {
    picks[x] = least[own[at + x]];
    left -= picks[x];
    let i = x;
    for (; i > 0 && (greatest ? values[order[i - 1]] < values[x] : values[order[i - 1]] > values[x]); i--) order[i] = order[i - 1];
    order[i] = x;
  }
  for (let i = 0; i < size && left > 0; i++) {
    const x = order[i], room = Math.min(left, most[own[at + x]] - picks[x]);
    picks[x] += room;
    left -= room;
  }
}
