// Where the cards go: causes above effects, few crossings, arrows that go round what they do not touch.
//
// A layered drawing [Sugiyama et al. 1981]: layers of bounded width, from the effects upwards; stand-ins where an arrow
// passes a layer; orders by the mean place of the neighbours; places that keep their distance.

const CARD = { width: 196, title: 34, line: 18, row: 22, foot: 8 };
const GAP = { across: 24, down: 58, tight: 42, passing: 9, standIn: 2 };
const FEW = 20;
const SWEEPS = 16;

/** Places of the nodes (left and top), routes of the arrows, and the size of it all; causes above effects, or left of them. */
function layOut(nodes, parentsOf, heightOf, sideways = false) {
  const inside = new Set(nodes);
  const parents = new Map(nodes.map((v) => [v, parentsOf(v).filter((u) => inside.has(u))]));
  const children = new Map(nodes.map((v) => [v, []]));
  for (const v of nodes) for (const u of parents.get(v)) children.get(u).push(v);
  const layerOf = assignLayers(nodes, parents, children);
  // Across is along a layer, deep is from layer to layer.
  const across = (v) => (sideways ? heightOf(v) : CARD.width), deep = (v) => (sideways ? CARD.width : heightOf(v));
  const { layers, above } = insertStandIns(nodes, parents, layerOf, across);
  const ordered = orderLayers(layers, above);
  const x = placeAcross(ordered, above);

  const starts = [], ends = [], gap = nodes.length > FEW ? GAP.tight : GAP.down;
  let at = 0;
  for (const layer of ordered) {
    starts.push(at);
    ends.push(at + Math.max(...layer.map((slot) => (slot.node === undefined ? 0 : deep(slot.node)))));
    at = ends[ends.length - 1] + gap;
  }
  let least = Infinity, most = -Infinity;
  for (const layer of ordered) for (const slot of layer) {
    least = Math.min(least, x.get(slot) - slot.width / 2);
    most = Math.max(most, x.get(slot) + slot.width / 2);
  }
  const turn = ([one, other]) => (sideways ? [other, one] : [one, other]);
  const places = new Map(), starting = new Map(), slotOf = new Map(), routes = [];
  ordered.forEach((layer, i) => layer.forEach((slot) => {
    if (slot.node === undefined) return;
    slotOf.set(slot.node, slot);
    const first = starts[i] + (ends[i] - starts[i] - deep(slot.node)) / 2;
    starting.set(slot.node, first);
    const [left, top] = turn([x.get(slot) - slot.width / 2 - least, first]);
    places.set(slot.node, { left, top });
  }));
  for (const v of nodes) for (const slot of above.get(slotOf.get(v))) {
    let upper = slot;
    const points = [[x.get(slotOf.get(v)) - least, starting.get(v)]];
    while (upper.node === undefined) {
      points.push([x.get(upper) - least, ends[upper.layer]], [x.get(upper) - least, starts[upper.layer]]);
      upper = above.get(upper)[0];
    }
    points.push([x.get(slotOf.get(upper.node)) - least, starting.get(upper.node) + deep(upper.node)]);
    routes.push({ from: upper.node, to: v, points: points.reverse().map(turn) });
  }
  const [width, height] = turn([most - least, at - gap]);
  return { places, routes, width, height, sideways };
}

/** List scheduling from the effects upwards: a layer holds at most so many, those that are deepest come first. */
function assignLayers(nodes, parents, children) {
  const widest = Math.max(6, Math.ceil(Math.sqrt(nodes.length * 1.5)));
  const depth = new Map();
  const measure = (v) => {
    if (!depth.has(v)) depth.set(v, 1 + Math.max(-1, ...parents.get(v).map(measure)));
    return depth.get(v);
  };
  nodes.forEach(measure);
  const waiting = new Map(nodes.map((v) => [v, children.get(v).length]));
  const layerOf = new Map();
  let ready = nodes.filter((v) => !waiting.get(v)), layer = 0;
  while (ready.length) {
    ready.sort((a, b) => depth.get(b) - depth.get(a) || parents.get(b).length - parents.get(a).length);
    // An effect that nothing hangs below waits until its causes are near, or it would lie far below them.
    const deepest = depth.get(ready[0]);
    const taken = ready.filter((v) => children.get(v).length || depth.get(v) >= deepest - 1 || !parents.get(v).length)
      .slice(0, widest);
    for (const v of taken) layerOf.set(v, layer);
    ready = ready.filter((v) => !taken.includes(v));
    for (const v of taken) for (const u of parents.get(v)) {
      waiting.set(u, waiting.get(u) - 1);
      if (!waiting.get(u)) ready.push(u);
    }
    layer += 1;
  }
  return new Map(nodes.map((v) => [v, layer - 1 - layerOf.get(v)]));
}

function insertStandIns(nodes, parents, layerOf, across) {
  const layers = Array.from({ length: 1 + Math.max(...layerOf.values()) }, () => []);
  const above = new Map(), slotOf = new Map();
  for (const v of nodes) {
    const slot = { node: v, layer: layerOf.get(v), width: across(v) };
    slotOf.set(v, slot);
    layers[slot.layer].push(slot);
    above.set(slot, []);
  }
  for (const v of nodes) for (const u of parents.get(v)) {
    let last = slotOf.get(u);
    for (let i = layerOf.get(u) + 1; i < layerOf.get(v); i++) {
      const standIn = { node: undefined, layer: i, width: GAP.standIn };
      layers[i].push(standIn);
      above.set(standIn, [last]);
      last = standIn;
    }
    above.get(slotOf.get(v)).push(last);
  }
  return { layers, above };
}

function invert(above) {
  const below = new Map([...above.keys()].map((slot) => [slot, []]));
  for (const [slot, uppers] of above) for (const upper of uppers) below.get(upper).push(slot);
  return below;
}

function orderLayers(layers, above) {
  const below = invert(above);
  let current = layers.map((layer) => [...layer]), best = current, least = countCrossings(current, above);
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const down = sweep % 2 === 0, turned = current.map((layer) => [...layer]);
    for (let k = 1; k < turned.length; k++) {
      const i = down ? k : turned.length - 1 - k;
      const rank = new Map(turned[down ? i - 1 : i + 1].map((slot, j) => [slot, j]));
      const wanted = new Map(turned[i].map((slot, j) => {
        const near = (down ? above : below).get(slot).filter((other) => rank.has(other));
        return [slot, near.length ? mean(near.map((other) => rank.get(other))) : j];
      }));
      turned[i].sort((a, b) => wanted.get(a) - wanted.get(b));
    }
    current = turned;
    const crossings = countCrossings(current, above);
    if (crossings < least) { best = current; least = crossings; }
  }
  return best;
}

function countCrossings(layers, above) {
  let found = 0;
  for (let i = 1; i < layers.length; i++) {
    const rank = new Map(layers[i - 1].map((slot, j) => [slot, j]));
    const ends = layers[i].flatMap((slot) => above.get(slot).map((upper) => rank.get(upper)).sort((a, b) => a - b));
    for (let j = 0; j < ends.length; j++) for (let k = j + 1; k < ends.length; k++) if (ends[j] > ends[k]) found += 1;
  }
  return found;
}

function placeAcross(layers, above) {
  const below = invert(above), x = new Map();
  for (const layer of layers) spread(layer, layer.map(() => 0), x);
  for (let sweep = 0; sweep < 2 * SWEEPS; sweep++) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      spread(layer, layer.map((slot) => {
        const near = [...above.get(slot), ...below.get(slot)].map((other) => x.get(other));
        return near.length ? mean(near) : x.get(slot);
      }), x);
    }
  }
  return x;
}

/** The places nearest to the wanted ones, on average, at which nothing overlaps and the order stays. */
function spread(layer, wanted, x) {
  const offsets = [0];
  for (let i = 1; i < layer.length; i++) {
    const passing = layer[i - 1].node === undefined || layer[i].node === undefined;
    offsets.push(offsets[i - 1] + (layer[i - 1].width + layer[i].width) / 2 + (passing ? GAP.passing : GAP.across));
  }
  const groups = [];
  wanted.forEach((place, i) => {
    groups.push([place - offsets[i], 1]);
    while (groups.length > 1 && groups[groups.length - 2][0] > groups[groups.length - 1][0]) {
      const [late, n] = groups.pop(), [early, m] = groups.pop();
      groups.push([(late * n + early * m) / (n + m), n + m]);
    }
  });
  let i = 0;
  for (const [level, count] of groups) for (let k = 0; k < count; k++, i++) x.set(layer[i], level + offsets[i]);
}

function mean(values) {
  return values.reduce((a, b) => a + b, 0) / values.length;
}
