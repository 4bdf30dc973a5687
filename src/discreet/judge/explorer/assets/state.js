// What the reader has chosen: evidence, the attribute in question, the view. All of it fits into a link.

/** Evidence on one attribute: the level that it has, or those that it has not. */
class Evidence {
  constructor(size, is = -1, not = []) {
    this.size = size;
    this.is = is;
    this.not = new Set(not);
  }

  get weights() {
    return Float64Array.from({ length: this.size }, (_, k) => Number(this.is >= 0 ? k === this.is : !this.not.has(k)));
  }
}

class State {
  constructor(network) {
    this.network = network;
    this.evidence = new Map();
    this.past = [];
    this.usual = { target: -1, other: -1, tab: "answer", view: "map", interval: "none", focus: false };
    this.intervals = ["none"];
    this.reset();
  }

  /** Everything but evidence as a page without a link has it. */
  reset() {
    Object.assign(this, this.usual);
  }

  get weights() {
    return new Map([...this.evidence].map(([v, found]) => [v, found.weights]));
  }

  /** Set a level, or release it if it is set. */
  set(v, level) {
    this.remember();
    const found = this.evidence.get(v);
    if (found && found.is === level) this.evidence.delete(v);
    else this.evidence.set(v, new Evidence(this.network.sizes[v], level));
  }

  /** Rule a level out, or in again; false if it is the last one left. */
  exclude(v, level) {
    const found = this.evidence.get(v), size = this.network.sizes[v];
    const not = new Set(found && found.is < 0 ? found.not : []);
    if (not.has(level)) not.delete(level);
    else not.add(level);
    if (not.size >= size) return false;
    this.remember();
    if (not.size) this.evidence.set(v, new Evidence(size, -1, not));
    else this.evidence.delete(v);
    return true;
  }

  release(v) {
    this.remember();
    this.evidence.delete(v);
  }

  clear() {
    this.remember();
    this.evidence.clear();
  }

  remember() {
    this.past.push(this.writeEvidence());
    if (this.past.length > 200) this.past.shift();
  }

  undo() {
    if (!this.past.length) return false;
    this.read(this.past.pop(), true);
    return true;
  }

  writeEvidence() {
    const { names, levels } = this.network, parts = [];
    for (const [v, found] of this.evidence) {
      if (found.is >= 0) parts.push(`${encode(names[v])}=${encode(levels[v][found.is])}`);
      else for (const k of [...found.not].sort((a, b) => a - b)) parts.push(`${encode(names[v])}!=${encode(levels[v][k])}`);
    }
    return parts.join("&");
  }

  /** The state as the part of a link after #. */
  write() {
    const { names } = this.network, parts = [this.writeEvidence()];
    if (this.target >= 0) parts.push(`~target=${encode(names[this.target])}`);
    if (this.tab !== this.usual.tab) parts.push(`~tab=${this.tab}`);
    if (this.other >= 0) parts.push(`~with=${encode(names[this.other])}`);
    if (this.focus) parts.push("~focus=yes");
    if (this.view !== this.usual.view) parts.push(`~view=${this.view}`);
    if (this.interval !== this.usual.interval) parts.push(`~interval=${this.interval}`);
    return parts.filter(Boolean).join("&");
  }

  /** Take over what a link says, and return in words what in it does not fit this network. */
  read(text, evidenceOnly = false) {
    const { network } = this, strange = [];
    this.evidence.clear();
    if (!evidenceOnly) this.reset();
    for (const part of text.replace(/^#/, "").split("&").filter(Boolean)) {
      const found = /^(~?)(.*?)(!?=)(.*)$/s.exec(part);
      const [name, level] = found ? [decode(found[2]), decode(found[4])] : [decode(part), ""];
      if (found && found[1]) {
        if (!evidenceOnly && !this.readChoice(name, level)) strange.push(`“${name} ${level}” is not known here`);
        continue;
      }
      const v = network.index.get(name), k = v === undefined ? undefined : network.codes[v].get(level);
      if (k === undefined) {
        strange.push(v === undefined ? `there is no “${name}”` : `${name} has no level “${level}”`);
        continue;
      }
      const known = this.evidence.get(v) || new Evidence(network.sizes[v]), is = found[3] === "=";
      if (is && (known.is < 0 ? !known.not.has(k) : known.is === k)) this.evidence.set(v, new Evidence(network.sizes[v], k));
      else if (!is && known.is < 0 && known.not.size < known.size - 1) this.evidence.set(v, new Evidence(known.size, -1, [...known.not, k]));
      else if (is || (known.is < 0 ? !known.not.has(k) : known.is === k)) strange.push(`${name} would have no level left`);
    }
    if (this.other === this.target) this.other = -1;
    return strange;
  }

  readChoice(name, value) {
    const v = this.network.index.get(value);
    if (name === "target" && v !== undefined) this.target = v;
    else if (name === "with" && v !== undefined) this.other = v;
    else if (name === "tab" && ["answer", "influence", "paths", "explanation"].includes(value)) this.tab = value;
    else if (name === "view" && ["map", "list"].includes(value)) this.view = value;
    else if (name === "interval" && this.intervals.includes(value)) this.interval = value;
    else if (name === "focus") this.focus = value === "yes";
    else return false;
    return true;
  }
}

function encode(text) {
  return encodeURIComponent(text).replace(/[!~'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
