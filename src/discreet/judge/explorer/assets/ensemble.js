// Calibrated intervals: networks drawn from what the noise leaves likely, and the middle of their answers.

const DRAWS_AT_ONCE = 20;
const MOST_KEPT = 1 << 22;

/** The ensemble of the page: 16-bit fourth roots of probabilities, which keep small ones to a few digits.
 *
 * There are two sets of draws, by two who believed different things beforehand. Where their intervals differ, the noisy tables
 * did not decide, and there is no interval that would hold as often as it says. */
class Ensemble {
  constructor(plan, document) {
    this.plan = plan;
    this.document = document;
    this.parts = [...this.unpack(document.codes), ...this.unpack(document.others)];
    this.kept = 2 * plan.total * document.draws <= MOST_KEPT;
    this.trees = new Map();
  }

  unpack(packed) {
    const { plan } = this, { draws } = this.document;
    const codes = new Uint16Array(readBytes(packed).buffer);
    const cells = plan.families.map((family) => family.reduce((product, v) => product * plan.sizes[v], 1));
    const starts = [0];
    for (const count of cells) starts.push(starts[starts.length - 1] + count);
    const total = starts[cells.length], parts = [];
    if (codes.length !== total * draws) throw new Error("the ensemble does not fit the network");
    for (let first = 0; first < draws; first += DRAWS_AT_ONCE) {
      const width = Math.min(DRAWS_AT_ONCE, draws - first);
      const tables = plan.families.map((family, v) => {
        const values = new Float64Array(cells[v] * width), size = plan.sizes[v];
        for (let b = 0; b < width; b++) {
          const from = (first + b) * total + starts[v];
          for (let c = 0; c < cells[v]; c += size) {
            let sum = 0;
            for (let x = 0; x < size; x++) {
              const p = (codes[from + c + x] / 65535) ** 4;
              values[(c + x) * width + b] = p;
              sum += p;
            }
            for (let x = 0; x < size; x++) values[(c + x) * width + b] /= sum;
          }
        }
        return values;
      });
      parts.push({ tables, width });
    }
    return parts;
  }

  /** Answer in small parts, so that the page never stops; `done` gets the ends of every attribute, unless it is overtaken. */
  bound(weights, isCurrent, done) {
    const answers = this.parts.map(() => null);
    const step = (k) => {
      if (!isCurrent()) return;
      const start = performance.now();
      while (k < this.parts.length && performance.now() - start < 12) {
        answers[k] = this.answer(k, weights);
        k++;
      }
      if (k < this.parts.length) setTimeout(step, 0, k);
      else done(this.compare(answers, weights));
    };
    step(0);
  }

  /** For each attribute the ends of its levels, or null where the two sets of draws do not agree. */
  compare(answers, weights) {
    const half = answers.length / 2, { apart, negligible } = this.document, { starts, sizes } = this.plan;
    const fewest = Math.min(this.document.reach / weighEvidence(answers.slice(0, half)), 1);
    const [one, other] = [this.cut(answers.slice(0, half)), this.cut(answers.slice(half))];
    return sizes.map((size, v) => {
      if (!one || !other) return null;
      for (let k = starts[v]; k < starts[v] + size; k++) {
        const both = Math.max(one.high[k], other.high[k]) - Math.min(one.low[k], other.low[k]);
        const narrow = Math.min(one.high[k] - one.low[k], other.high[k] - other.low[k]);
        if (both > apart * narrow + negligible) return null;
      }
      const reach = weights.has(v) ? 0 : fewest;
      const low = one.low.slice(starts[v], starts[v + 1]), high = one.high.slice(starts[v], starts[v + 1]);
      return { low: low.map((end) => Math.max(end - reach, 0)), high: high.map((end) => Math.min(end + reach, 1)) };
    });
  }

  answer(k, weights) {
    const { tables, width } = this.parts[k];
    let tree = this.trees.get(this.kept ? k : width);
    if (!tree) {
      tree = new JunctionTree(this.plan, tables, width);
      this.trees.set(this.kept ? k : width, tree);
    } else if (!this.kept) {
      tree.fill(tables);
    }
    tree.propagate(weights);
    return { marginals: Float64Array.from(tree.marginals), logs: Float64Array.from(tree.logs), width };
  }

  /** The central share of the draws that allow the evidence; an end has the rank k/(draws + 1), that of a further draw. */
  cut(answers) {
    const levels = this.plan.starts[this.plan.sizes.length];
    const possible = answers.reduce((sum, part) => sum + part.logs.filter((log) => log > -Infinity).length, 0);
    if (possible < 2) return null;
    const low = new Float64Array(levels), high = new Float64Array(levels), values = new Float64Array(possible);
    for (let level = 0; level < levels; level++) {
      let at = 0;
      for (const { marginals, logs, width } of answers) {
        for (let b = 0; b < width; b++) if (logs[b] > -Infinity) values[at++] = marginals[level * width + b];
      }
      values.sort();
      low[level] = quantile(values, this.document.tail);
      high[level] = quantile(values, 1 - this.document.tail);
    }
    return { low, high };
  }
}

/** The mean probability of the evidence in the draws: counts are whole, so an end is widened by half a row that fits it. */
function weighEvidence(answers) {
  let sum = 0, draws = 0;
  for (const { logs, width } of answers) for (let b = 0; b < width; b++, draws++) sum += Math.exp(logs[b]);
  return sum / draws;
}

/** An interval that holds the answer itself, too: what was learned is as likely as what was drawn. */
function spanPoint({ low, high }, point) {
  return { low: low.map((end, x) => Math.min(end, point[x])), high: high.map((end, x) => Math.max(end, point[x])) };
}

/** A likely interval within the sure one: the half row that is added to its ends is much where little fits the evidence. */
function clip(likely, sure, point) {
  const within = (end, x) => Math.min(Math.max(end, sure.low[x]), sure.high[x]);
  return spanPoint({ low: likely.low.map(within), high: likely.high.map(within) }, point);
}

function quantile(sorted, share) {
  const at = Math.min(Math.max(share * (sorted.length + 1) - 1, 0), sorted.length - 1);
  const below = Math.floor(at), above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (at - below) * (sorted[above] - sorted[below]);
}

function readBytes(base64) {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
