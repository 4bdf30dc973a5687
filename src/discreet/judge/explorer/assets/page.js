// What stands around the map: head and promise, what is assumed, search, keys, and words for those who listen.

class Page {
  constructor(app) {
    this.app = app;
    const find = (id) => document.getElementById(id);
    for (const id of ["kicker", "heading", "pill", "promise", "given", "evidence-probability", "undo", "clear", "search",
      "matches", "map", "list", "focus", "fit", "closer", "farther", "intervals", "stage", "panel", "status", "message", "meaning"]) {
      this[id.replace(/-./, (found) => found[1].toUpperCase())] = find(id);
    }
  }

  begin() {
    const { app } = this, data = app.document;
    this.kicker.textContent = data.kicker;
    this.heading.textContent = data.title;
    this.writePromise(data);
    const click = (button, act) => button.addEventListener("click", act);
    click(this.undo, () => app.undo());
    click(this.clear, () => app.clear());
    click(this.map, () => app.choose({ view: "map" }));
    click(this.list, () => app.choose({ view: "list" }));
    click(this.focus, () => app.choose({ focus: !app.state.focus }));
    click(this.fit, () => app.stage.fit());
    click(this.closer, () => app.stage.zoom(1.25));
    click(this.farther, () => app.stage.zoom(0.8));
    this.fillIntervals(data);
    this.intervals.addEventListener("change", () => app.choose({ interval: this.intervals.value }));
    this.followSearch();
    this.followKeys();
    if (app.tooWide) this.warnOfWidth();
  }

  writePromise(data) {
    this.pill.textContent = data.short;
    this.pill.classList.toggle("none", Boolean(data.broken));
    this.pill.classList.toggle("unknown", !data.facts.length);
    this.pill.addEventListener("click", () => {
      const open = this.promise.hidden;
      this.promise.hidden = !open;
      this.pill.setAttribute("aria-expanded", String(open));
    });
    const words = make("div", "words");
    for (const text of data.sentences) words.append(make("p", "", text));
    if (data.shares) {
      const bar = make("div", "shares", null, { role: "img", "aria-label": data.shares.words });
      for (const [kind, share] of data.shares.parts) {
        const part = make("i", kind);
        part.style.width = `${100 * share}%`;
        bar.append(part);
      }
      words.append(bar, make("p", "note", data.shares.words));
    }
    const facts = make("dl", "facts");
    for (const [name, text] of data.facts) facts.append(make("dt", "", name), make("dd", "", text));
    const links = make("p", "links");
    for (const [text, address] of data.links) links.append(make("a", "", text, { href: address }));
    this.promise.append(words, facts);
    if (data.links.length) this.promise.append(links);
  }

  fillIntervals(data) {
    const kinds = [], sure = Boolean(this.app.network.lower || data.unconditional), likely = Boolean(data.ensemble);
    if (sure && likely) kinds.push(["both", "likely and sure intervals"]);
    if (likely) kinds.push(["calibrated", "likely intervals (calibrated)"]);
    if (sure) kinds.push(["guaranteed", "sure intervals (guaranteed)"]);
    kinds.push(["none", kinds.length ? "no intervals" : "no intervals known"]);
    for (const [value, text] of kinds) this.intervals.append(make("option", "", text, { value }));
    this.intervals.disabled = kinds.length === 1;
  }

  /** Everything but bars: what is assumed, which buttons are on. */
  show() {
    const { app } = this, { state, network } = app;
    this.map.setAttribute("aria-pressed", String(state.view === "map"));
    this.list.setAttribute("aria-pressed", String(state.view === "list"));
    this.focus.setAttribute("aria-pressed", String(state.focus));
    for (const button of [this.fit, this.closer, this.farther]) button.hidden = state.view === "list";
    this.intervals.value = state.interval;
    this.undo.disabled = !state.past.length;
    this.clear.disabled = !state.evidence.size;
    this.given.replaceChildren();
    if (!state.evidence.size) {
      this.given.append(make("li", "hint", app.tooWide ? "Click a level: which paths would knowing it open or block?" : "Click a bar: what if you knew it? All the others move."));
    }
    for (const [v, found] of state.evidence) {
      const text = found.is >= 0
        ? `${network.names[v]} = ${network.levels[v][found.is]}`
        : `${network.names[v]} ≠ ${join([...found.not].map((k) => network.levels[v][k]), "or")}`;
      const item = make("li", "chip");
      const release = make("button", "", text, { type: "button", "aria-label": `Release ${text}`, title: "Release" });
      release.addEventListener("click", () => { app.release(v); this.clear.disabled ? this.search.focus() : this.clear.focus(); });
      item.append(release);
      this.given.append(item);
    }
    const p = Math.exp(app.logEvidence);
    this.evidenceProbability.textContent = state.evidence.size && !app.impossible && !app.tooWide ? `which is so in ${percent(p)} of all cases` : "";
    this.announce();
  }

  announce() {
    const { app } = this, { state, network } = app;
    if (app.impossible || app.tooWide) return;
    const shares = app.slice(app.after, state.target), given = describeEvidence(state);
    const parts = network.levels[state.target].map((level, k) => `${level} ${percent(shares[k])}`).slice(0, 8);
    this.status.textContent = `${given ? `If ${given}: ` : ""}${network.names[state.target]}: ${parts.join(", ")}.`;
  }

  showMeaning() {
    const { app } = this, { state } = app;
    const texts = [];
    if (app.ends.some((found) => found && found.likely)) texts.push(`Band: ${app.document.ensemble.meaning}`);
    if (app.ends.some((found) => found && found.sure)) texts.push(`Line: ${(app.document.guaranteed || app.document.unconditional).meaning}`);
    if (app.endsReady && !texts.length) texts.push(app.explainEnds(null));
    else if (app.document.lack && !app.document.unconditional) texts.push(app.document.lack);
    if (!texts.length && state.interval !== "none") texts.push("The intervals are being worked out …");
    this.meaning.textContent = texts.join(" ");
  }

  /** What cannot be is said in words, with a way out. */
  explainImpossible(panel) {
    const { app } = this, { state } = app;
    panel.begin("impossible");
    panel.body.replaceChildren();
    panel.head.textContent = "This cannot be";
    panel.body.append(make("p", "", `In this network it never happens that ${describeEvidence(state)}. Its probability is 0, so there is nothing to conclude from it; the bars still show the last state that was possible.`));
    const culprits = [...state.evidence.keys()].filter((v) => {
      const rest = state.weights;
      rest.delete(v);
      return app.tree.propagate(rest);
    });
    panel.body.append(make("p", "note", culprits.length ? "Release one of these, and it becomes possible:" : "No single piece is to blame: several of them contradict each other."));
    for (const v of culprits) {
      const button = make("button", "", `Release ${app.network.names[v]}`, { type: "button" });
      button.addEventListener("click", () => app.release(v));
      panel.body.append(button);
    }
    const back = make("button", "", "Undo the last step", { type: "button" });
    back.addEventListener("click", () => app.undo());
    if (state.past.length) panel.body.append(back);
    this.status.textContent = "This cannot be: what is assumed has probability 0.";
    this.openPanel();
  }

  warnOfWidth() {
    const { app } = this;
    const cells = app.plan.total < 1e15 ? Math.round(app.plan.total).toLocaleString("en") : "more than 10^15";
    this.say(`This network is too wide for exact answers in a browser: its junction tree needs ${cells} cells, and at most ` +
      `${MOST_CELLS.toLocaleString("en")} are worked through here. The graph and its paths can be looked at. For answers, use ` +
      `“discreet query ${app.document.file} …”, or publish a network with fewer parents or levels for each attribute.`, true);
    document.getElementById("app").classList.add("wide");
    for (const [key, button] of app.panel.buttons) button.hidden = key !== "paths";
    this.intervals.hidden = true;
    this.meaning.hidden = true;
  }

  say(text, lasting) {
    this.status.textContent = text;
    if (!lasting) return;
    this.message.textContent = "";
    this.message.append(make("span", "", text));
    const close = make("button", "close", "Close", { type: "button" });
    close.addEventListener("click", () => { this.message.hidden = true; });
    this.message.append(close);
    this.message.hidden = false;
  }

  openPanel() {
    this.panel.classList.add("open");
  }

  closePanel() {
    this.panel.classList.remove("open");
    this.app.cards[this.app.state.target].title.focus();
  }

  followSearch() {
    const { app, search } = this, { network } = app;
    const find = () => {
      const wanted = search.value.trim().toLowerCase();
      this.matches.replaceChildren();
      const hits = !wanted ? [] : network.topological.filter((v) => network.names[v].toLowerCase().includes(wanted) ||
        network.levels[v].some((level) => level.toLowerCase().includes(wanted)));
      for (const card of app.cards) card.box.classList.toggle("hit", hits.includes(card.v));
      hits.sort((a, b) => network.names[b].toLowerCase().startsWith(wanted) - network.names[a].toLowerCase().startsWith(wanted));
      for (const v of hits.slice(0, 10)) {
        const item = make("li", ""), button = make("button", "", network.names[v], { type: "button" });
        button.addEventListener("click", () => this.pick(v));
        item.append(button);
        this.matches.append(item);
      }
      if (wanted && !hits.length) this.matches.append(make("li", "none", "no attribute or level has this in its name"));
      this.matches.hidden = !wanted;
      if (wanted) this.status.textContent = `${hits.length} found`;
    };
    search.addEventListener("input", find);
    search.addEventListener("keydown", (event) => {
      const first = this.matches.querySelector("button");
      if (event.key === "Enter" && first) first.click();
      else if (event.key === "ArrowDown" && first) first.focus();
      else if (event.key === "Escape") { search.value = ""; find(); } else return;
      event.preventDefault();
    });
    this.matches.addEventListener("keydown", (event) => {
      const all = [...this.matches.querySelectorAll("button")], at = all.indexOf(document.activeElement);
      if (event.key === "ArrowDown") all[Math.min(at + 1, all.length - 1)].focus();
      else if (event.key === "ArrowUp") (at > 0 ? all[at - 1] : search).focus();
      else if (event.key === "Escape") { search.value = ""; find(); search.focus(); } else return;
      event.preventDefault();
    });
    this.closeSearch = () => { search.value = ""; find(); };
  }

  pick(v) {
    this.closeSearch();
    if (this.app.state.focus) this.app.choose({ focus: false });
    this.app.choose({ target: v });
    this.app.cards[v].title.focus();
  }

  /** Arrows go from bar to bar and from card to card; the cards are one stop of the tab key. */
  followKeys() {
    const { app } = this, holder = app.stage.holder;
    const all = app.cards.flatMap((card) => card.buttons);
    for (const button of all) button.tabIndex = -1;
    let stop = app.cards[app.state.target].title;
    stop.tabIndex = 0;
    holder.addEventListener("focusin", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      stop.tabIndex = -1;
      stop = button;
      stop.tabIndex = 0;
      // Not under a finger: what moves between press and release is not clicked.
      if (button.matches(":focus-visible")) app.stage.reveal(Number(button.closest(".card").dataset.v));
    });
    holder.addEventListener("keydown", (event) => {
      const button = event.target.closest("button"), card = app.cards[Number(button.closest(".card").dataset.v)];
      const own = card.buttons, at = own.indexOf(button);
      const order = app.network.topological.map((v) => app.cards[v]).filter((found) => !found.box.hidden);
      const place = order.indexOf(card);
      const { key } = event;
      if (key === "ArrowDown") own[Math.min(at + 1, own.length - 1)].focus();
      else if (key === "ArrowUp") own[Math.max(at - 1, 0)].focus();
      else if (key === "ArrowRight" || key === "ArrowLeft") {
        const next = order[(place + (key === "ArrowRight" ? 1 : -1) + order.length) % order.length];
        next.buttons[Math.min(at, next.buttons.length - 1)].focus();
      } else if (key === "Home") order[0].title.focus();
      else if (key === "End") order[order.length - 1].title.focus();
      else if (key === "n" && button.classList.contains("level")) app.exclude(card.v, Number(button.dataset.level));
      else return;
      event.preventDefault();
    });
    document.addEventListener("keydown", (event) => {
      const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) app.undo();
      else if (event.ctrlKey || event.metaKey || event.altKey || typing) return;
      else if (event.key === "/") this.search.focus();
      else if (event.key === "u") app.undo();
      else if (event.key === "+") app.stage.zoom(1.25);
      else if (event.key === "-") app.stage.zoom(0.8);
      else if (event.key === "0") app.stage.fit();
      else if (event.key === "f") app.choose({ focus: !app.state.focus });
      else if (event.key === "m") app.choose({ view: app.state.view === "map" ? "list" : "map" });
      else if (event.key === "Escape") this.panel.classList.remove("open");
      else return;
      event.preventDefault();
    });
  }
}
