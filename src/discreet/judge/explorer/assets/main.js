// The page: one state, one network, and everything drawn from the two.

class App {
  constructor(data) {
    this.document = data;
    this.network = readNetwork(data);
    const { sizes, families, tables } = this.network;
    this.state = new State(this.network);
    this.plan = planTree(sizes, families, data.order, MOST_CELLS);
    this.tooWide = Boolean(this.plan.tooWide);
    const levels = sizes.reduce((a, b) => a + b, 0);
    this.starts = new Int32Array(sizes.length + 1);
    sizes.forEach((size, v) => { this.starts[v + 1] = this.starts[v] + size; });
    if (this.tooWide) {
      this.before = new Float64Array(levels).fill(NaN);
    } else {
      this.tree = new JunctionTree(this.plan, tables, 1);
      this.tree.propagate(new Map());
      this.before = Float64Array.from(this.tree.marginals);
    }
    this.after = Float64Array.from(this.before);
    this.ends = sizes.map(() => null);
    this.ensemble = null;
    this.cache = new Map();
    this.turn = 0;
    const sure = this.network.lower || data.unconditional, likely = data.ensemble;
    this.state.intervals = [sure && likely && "both", likely && "calibrated", sure && "guaranteed", "none"].filter(Boolean);
    Object.assign(this.state.usual, {
      target: this.suggestTarget(), tab: this.tooWide ? "paths" : "answer", view: window.innerWidth < 760 ? "list" : "map",
      interval: sure ? this.state.intervals.find((kind) => kind !== "calibrated") : this.state.intervals[0],
    });
    this.state.reset();
    this.cards = sizes.map((_, v) => new Card(this.network, v, this.slice(this.before, v)));
    this.page = new Page(this);
    this.stage = new Stage(this.page.stage, this.network, this.cards);
    this.panel = new Panel(this.page.panel, this);
    this.page.begin();
    this.follow();
    this.open(location.hash);
  }

  /** The state that a link describes, all of it: what the link does not mention is as usual. */
  open(link) {
    const { view, focus } = this.state, first = !this.turn;
    const strange = this.state.read(link);
    if (first || focus || this.state.focus || view !== this.state.view) this.arrange();
    this.update();
    if (strange.length) this.page.say(`Not all of this link fits this network: ${strange.join("; ")}.`, true);
    // A page begins at its beginning, with the promise, unless a link asks for what would be far away.
    if (!first || (link.includes("~target=") && this.network.sizes.length > 40)) this.stage.reveal(this.state.target);
  }

  /** The effect with the most behind it: what people ask about first. */
  suggestTarget() {
    const { parents, children, topological, auxiliary } = this.network;
    const behind = new Map();
    for (const v of topological) {
      const found = new Set();
      for (const u of parents[v]) { found.add(u); for (const w of behind.get(u)) found.add(w); }
      behind.set(v, found);
    }
    const ends = topological.filter((v) => !children[v].length && !auxiliary[v]);
    return (ends.length ? ends : topological).reduce((a, b) => (behind.get(b).size > behind.get(a).size ? b : a));
  }

  slice(values, v) {
    return values.subarray(this.starts[v], this.starts[v + 1]);
  }

  set(v, level) {
    this.state.set(v, level);
    this.update();
  }

  exclude(v, level) {
    if (this.state.exclude(v, level)) this.update();
    else this.page.say("One level must remain possible.", true);
  }

  release(v) {
    this.state.release(v);
    this.update();
  }

  clear() {
    if (!this.state.evidence.size) return;
    this.state.clear();
    this.update();
  }

  undo() {
    if (this.state.undo()) this.update();
    else this.page.say("There is nothing to undo.", false);
  }

  choose(what) {
    const { state } = this;
    const moved = ("focus" in what && what.focus !== state.focus) || ("view" in what && what.view !== state.view) ||
      ("target" in what && what.target !== state.target && state.focus);
    Object.assign(state, what);
    if (state.other === state.target) state.other = -1;
    if ("target" in what) this.page.openPanel();
    if (moved) this.arrange();
    if ("interval" in what) this.findEnds();
    this.refresh();
    if ("target" in what) this.stage.reveal(state.target);
  }

  /** Place the cards: all of them, or the chosen one with its causes, effects and their other causes. */
  arrange() {
    const { network, state } = this;
    let nodes = null;
    if (state.focus) {
      const near = new Set([state.target, ...network.parents[state.target], ...network.children[state.target]]);
      for (const child of network.children[state.target]) for (const u of network.parents[child]) near.add(u);
      nodes = network.topological.filter((v) => near.has(v));
    } else if (state.view === "list") {
      nodes = network.topological.filter((v) => !network.auxiliary[v]);
    }
    this.stage.arrange(nodes, state.view);
  }

  /** New evidence: propagate, move every bar, then find the intervals. */
  update() {
    const start = performance.now();
    this.turn += 1;
    if (!this.tooWide) {
      const possible = this.tree.propagate(this.state.weights);
      this.impossible = !possible;
      this.logEvidence = this.tree.logs[0];
      if (possible) this.after = Float64Array.from(this.tree.marginals);
    }
    this.drawBars();
    this.refresh();
    this.updateMilliseconds = performance.now() - start;
    this.findEnds();
  }

  drawBars() {
    const { state } = this, moved = state.evidence.size > 0;
    for (const card of this.cards) {
      const { v } = card;
      card.show(this.slice(this.after, v), this.slice(this.before, v), moved, state.evidence.get(v));
    }
    // Intervals of before are dimmed, unless the new ones come before an eye would notice.
    clearTimeout(this.dimTimer);
    this.dimTimer = setTimeout(() => this.page.stage.classList.toggle("pending", this.waiting), 100);
  }

  /** Some bars show an interval of before, or none yet. */
  get waiting() {
    return !this.endsReady && !this.ends.every(Boolean);
  }

  refresh() {
    const { state } = this;
    if (this.tooWide) state.tab = "paths"; // all that the graph alone can tell
    for (const card of this.cards) card.box.classList.toggle("chosen", card.v === state.target);
    this.page.show();
    if (this.impossible) this.page.explainImpossible(this.panel);
    else this.panel.show();
    this.lightUp();
    // The address can wait: the browser takes longer to change it than the page to change every bar.
    clearTimeout(this.addressTimer);
    this.addressTimer = setTimeout(() => this.writeAddress(), 150);
  }

  writeAddress() {
    try {
      history.replaceState(null, "", `#${this.state.write()}`);
    } catch {
      // A page inside a notebook has no address of its own.
    }
  }

  lightUp() {
    const { state } = this;
    if (state.tab !== "paths" || state.other < 0 || this.impossible) {
      this.stage.light(null, null);
      return;
    }
    const nodes = new Set([state.target, state.other]), arrows = new Set();
    for (const path of this.paths().open) {
      path.nodes.forEach((u, i) => {
        nodes.add(u);
        if (i) arrows.add(path.downs[i - 1] ? `${path.nodes[i - 1]}>${u}` : `${u}>${path.nodes[i - 1]}`);
      });
    }
    this.stage.light(nodes, arrows);
  }

  /** The intervals of all bars, in small parts after the bars have moved; a bar without one says so. */
  findEnds() {
    const turn = this.turn, { state, network } = this, { weights } = state, kind = state.interval;
    this.endsTurn = (this.endsTurn || 0) + 1;
    const own = this.endsTurn, current = () => this.turn === turn && this.endsTurn === own;
    this.ends = network.sizes.map(() => null);
    this.endsReady = false;
    const finish = () => { this.endsReady = true; this.showEnds(network.topological); };
    if (kind === "none" || this.impossible || this.tooWide) { finish(); return; }
    if (this.document.unconditional) {
      if (!state.evidence.size) {
        this.document.unconditional.ends.forEach((found, v) => { if (found) this.ends[v] = { sure: { low: found[0], high: found[1] } }; });
      }
      finish();
      return;
    }
    const wantsSure = network.lower && kind !== "calibrated", wantsLikely = this.document.ensemble && kind !== "guaranteed";
    const add = (v, found) => { this.ends[v] = { ...this.ends[v], ...found }; };
    const order = [state.target, ...network.topological.filter((v) => v !== state.target)];
    const bound = (i) => {
      if (!current()) return;
      const start = performance.now(), from = i;
      while (i < order.length && performance.now() - start < 12) {
        const v = order[i++], sure = boundTarget(network, v, weights, v === state.target ? MOST_CONTEXTS : CARD_CONTEXTS);
        const likely = this.ends[v] && this.ends[v].likely;
        if (sure) add(v, likely ? { sure, likely: clip(likely, sure, this.slice(this.after, v)) } : { sure });
      }
      if (!wantsLikely) this.showEnds(order.slice(from, i).filter((v) => this.ends[v]));
      if (i < order.length) setTimeout(bound, 0, i);
      else finish();
    };
    const calibrate = () => {
      if (!current()) return;
      this.ensemble = this.ensemble || new Ensemble(this.plan, this.document.ensemble);
      this.ensemble.bound(weights, current, (found) => {
        found.forEach((likely, v) => { if (likely) add(v, { likely: spanPoint(likely, this.slice(this.after, v)) }); });
        if (wantsSure) {
          this.showEnds(network.topological);
          setTimeout(bound, 0, 0);
        } else {
          finish();
        }
      });
    };
    setTimeout(wantsLikely ? calibrate : bound, 0, 0);
  }

  showEnds(nodes) {
    for (const v of nodes) this.cards[v].showEnds(this.ends[v]);
    const unsure = this.endsReady && this.document.noisy;
    for (const card of this.cards) card.box.classList.toggle("unsure", Boolean(unsure) && !this.ends[card.v]);
    this.panel.body.classList.toggle("unsure", Boolean(unsure) && !this.ends[this.state.target]);
    if (nodes.includes(this.state.target) && this.state.tab === "answer" && !this.impossible) this.panel.moveAnswer();
    if (!this.waiting) this.page.stage.classList.remove("pending");
    this.page.showMeaning();
  }

  explainEnds(ends) {
    const { document: data, state } = this;
    const wanted = data.ensemble && ["both", "calibrated"].includes(state.interval);
    const undecided = wanted && this.endsReady && !(ends && ends.likely) && !state.evidence.has(state.target);
    const texts = [
      ends && ends.likely && `Band, likely: ${data.ensemble.meaning}`,
      ends && ends.sure && `Line, sure: ${(data.guaranteed || data.unconditional).meaning}`,
      undecided && data.ensemble.undecided,
    ].filter(Boolean);
    if (texts.length) return texts.join(" ");
    if (state.interval === "none" && state.usual.interval !== "none") return "Intervals are switched off: the bars look surer than they are.";
    if (!this.endsReady) return "The intervals are being worked out …";
    return data.lack || "No interval could be worked out for this answer.";
  }

  answer() {
    const v = this.state.target, ends = this.ends[v];
    return {
      before: this.slice(this.before, v), after: this.slice(this.after, v), ends,
      meaning: this.explainEnds(ends), source: this.document.source,
    };
  }

  influence(v) {
    const key = `influence ${v}`;
    if (!this.cache.has(key)) this.cache.set(key, rankByInformation(this.tree, v, new Map()));
    const before = this.cache.get(key);
    const now = this.state.evidence.size ? rankByInformation(this.tree, v, this.state.weights) : before;
    return { now, before };
  }

  paths() {
    const { network, state } = this;
    return findPaths(network, state.target, state.other, judgeEvidence(network, state.weights));
  }

  explanation() {
    const found = this.tree.explain(this.state.weights);
    if (!found) return null;
    const alone = this.network.sizes.map((_, v) => {
      const shares = this.slice(this.after, v);
      return shares.reduce((best, p, k) => (p > shares[best] ? k : best), 0);
    });
    return { levels: found.levels, probability: Math.min(1, Math.exp(found.log - this.logEvidence)), alone };
  }

  link() {
    // A page inside a notebook has no address of its own: the link is for the file.
    const page = location.protocol === "about:" ? "explorer.html" : location.href.replace(/#.*$/, "");
    return `${page}#${this.state.write()}`;
  }

  async copy(text, what) {
    const { copied } = this.panel;
    if (copied && copied.isConnected) {
      copied.value = text;
      copied.hidden = false;
    }
    try {
      await navigator.clipboard.writeText(text);
      this.page.say(`Copied the ${what}.`, false);
    } catch {
      if (copied && copied.isConnected) { copied.focus(); copied.select(); }
      this.page.say(`The browser does not allow copying: the ${what} stands below, ready to be copied by hand.`, true);
    }
  }

  closePanel() {
    this.page.closePanel();
  }

  follow() {
    this.stage.holder.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const v = Number(button.closest(".card").dataset.v);
      if (button.classList.contains("level")) {
        const level = Number(button.dataset.level);
        if (event.shiftKey || event.altKey) this.exclude(v, level);
        else this.set(v, level);
      } else {
        this.choose({ target: v, tab: button.classList.contains("rest") ? "answer" : this.state.tab });
      }
    });
    window.addEventListener("hashchange", () => {
      if (location.hash === `#${this.state.write()}` || decode(location.hash.slice(1)) === decode(this.state.write())) return;
      this.state.remember();
      this.open(location.hash);
    });
  }
}
