// The panel beside the map: the answer in large, what matters for it, paths to another attribute, the best explanation.

const TABS = [["answer", "Answer"], ["influence", "What matters"], ["paths", "Paths"], ["explanation", "Best guess"]];
const MOST_RANKED = 12;

class Panel {
  constructor(box, app) {
    this.box = box;
    this.app = app;
    this.tabs = make("div", "tabs", null, { role: "tablist", "aria-label": "About the chosen attribute" });
    this.body = make("div", "body", null, { role: "tabpanel", id: "tab-body", tabindex: "-1" });
    this.buttons = new Map(TABS.map(([key, text]) => {
      const button = make("button", "tab", text, { type: "button", role: "tab", id: `tab-${key}`, "aria-controls": "tab-body" });
      button.addEventListener("click", () => app.choose({ tab: key }));
      this.tabs.append(button);
      return [key, button];
    }));
    this.tabs.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const at = TABS.findIndex(([key]) => key === app.state.tab);
      const next = TABS[(at + step + TABS.length) % TABS.length][0];
      app.choose({ tab: next });
      this.buttons.get(next).focus();
      event.preventDefault();
    });
    this.head = make("h2", "chosen", "");
    this.close = make("button", "close", "Close", { type: "button" });
    this.close.addEventListener("click", () => app.closePanel());
    box.append(this.head, this.close, this.tabs, this.body);
    this.rows = [];
    this.drawn = "";
  }

  /** Draw the tab anew if something other than numbers has changed, else only move its bars. */
  show() {
    const { state, network } = this.app;
    for (const [key, button] of this.buttons) {
      button.setAttribute("aria-selected", String(key === state.tab));
      button.tabIndex = key === state.tab ? 0 : -1;
    }
    this.head.textContent = network.names[state.target];
    this.body.setAttribute("aria-labelledby", `tab-${state.tab}`);
    if (state.tab === "answer") this.showAnswer();
    else if (state.tab === "influence") this.showInfluence();
    else if (state.tab === "paths") this.showPaths();
    else this.showExplanation();
  }

  begin(key) {
    if (key && this.drawn === key) return false;
    this.drawn = key;
    this.body.replaceChildren();
    return true;
  }

  showAnswer() {
    const { state, network, app } = { ...this.app, app: this.app }, v = state.target;
    if (this.begin(`answer ${v}`)) {
      this.given = make("p", "given", "");
      this.rows = network.levels[v].map((level, k) => {
        const row = new LevelRow(network.names[v], level);
        row.button.addEventListener("click", () => app.set(v, k));
        row.not = make("button", "not", "not", { type: "button", "aria-label": `${network.names[v]} is not ${level}` });
        row.not.addEventListener("click", () => app.exclude(v, k));
        return row;
      });
      const list = make("div", "answers");
      for (const row of this.rows) {
        const line = make("div", "answer");
        line.append(row.button, row.not);
        list.append(line);
      }
      this.legend = make("p", "legend note", "");
      this.meaning = make("p", "note meaning", "");
      const copies = make("div", "copies", null, { role: "group", "aria-label": "Copy this answer" });
      copies.append(make("span", "note", "Copy as "));
      for (const [text, write] of [
        ["sentence", () => writeSentence(state, app.answer())],
        ["CSV", () => writeTable(state, app.answer())],
        ["command", () => writeCommand(state, app.document.file, app.answer().ends)],
        ["link", () => app.link()],
      ]) {
        const button = make("button", "copy", text, { type: "button" });
        button.addEventListener("click", () => app.copy(write(), text));
        copies.append(button);
      }
      this.copied = make("textarea", "copied", "", { readonly: "", hidden: "", rows: "4", "aria-label": "What was copied" });
      const around = make("p", "note around", "");
      const say = (text, nodes) => {
        if (!nodes.length) return;
        around.append(make("span", "", text));
        for (const u of nodes) {
          const button = make("button", "link", network.names[u], { type: "button" });
          button.addEventListener("click", () => app.choose({ target: u }));
          around.append(button);
        }
      };
      say("Depends on ", network.parents[v]);
      say(network.parents[v].length ? " and leads to " : "Leads to ", network.children[v]);
      this.body.append(this.given, list, this.legend, this.meaning, copies, this.copied, around);
    }
    this.copied.hidden = true;
    this.moveAnswer();
  }

  moveAnswer() {
    const { state, network } = this.app, v = state.target;
    if (this.drawn !== `answer ${v}`) return;
    const answer = this.app.answer(), evidence = state.evidence.get(v), given = describeEvidence(state);
    this.given.textContent = given ? `If ${given}:` : "Nothing is assumed yet. Click a bar to assume that level.";
    this.rows.forEach((row, k) => {
      row.show(answer.after[k], answer.before[k], Boolean(given) && !evidence, evidence, k);
      row.showEnds(answer.ends, k);
      const only = evidence && evidence.is < 0 && evidence.not.size >= network.sizes[v] - 1 && !evidence.not.has(k);
      row.not.setAttribute("aria-pressed", String(Boolean(evidence) && evidence.not.has(k)));
      row.not.disabled = Boolean(only);
    });
    this.legend.textContent = given && !evidence ? "The tick is where the bar was before." : "";
    this.meaning.textContent = this.app.explainEnds(answer.ends);
  }

  showInfluence() {
    const { state, network } = this.app, v = state.target;
    this.begin("");
    const known = state.evidence.get(v);
    if (known && (known.is >= 0 || known.not.size === network.sizes[v] - 1)) {
      this.body.append(make("p", "", `${network.names[v]} is assumed to be known, so nothing can tell more about it.`));
      const button = make("button", "", `Release ${network.names[v]}`, { type: "button" });
      button.addEventListener("click", () => this.app.release(v));
      this.body.append(button);
      return;
    }
    const { now, before } = this.app.influence(v);
    const seen = state.evidence.size > 0;
    this.body.append(make("p", "note",
      `How much each attribute tells about ${network.names[v]}: the share of its uncertainty ` +
      `(${now.entropy.toFixed(2)} bits) that knowing it would remove.` +
      (seen ? " The tick is the share without what is assumed." : "")));
    const ranked = [...now.bits.keys()].filter((u) => u !== v && !network.auxiliary[u])
      .sort((a, b) => now.bits[b] - now.bits[a] || before.bits[b] - before.bits[a]);
    const most = Math.max(now.bits[ranked[0]] / now.entropy || 0, before.bits.reduce((a, b) => Math.max(a, b), 0) / before.entropy || 0, 1e-9);
    const list = make("ol", "ranking");
    ranked.forEach((u, i) => {
      const item = make("li", "");
      const share = now.entropy > 0 ? now.bits[u] / now.entropy : 0, was = before.entropy > 0 ? before.bits[u] / before.entropy : 0;
      const button = make("button", "rank", null, { type: "button" });
      const track = make("span", "track", null, { "aria-hidden": "true" }), fill = make("i", "fill"), tick = make("i", "was");
      fill.style.transform = `scaleX(${share / most})`;
      tick.style.left = `${100 * was / most}%`;
      track.append(fill, tick);
      track.classList.toggle("moved", seen);
      const assumed = state.evidence.has(u) ? " (assumed)" : "";
      button.append(make("span", "label", network.names[u] + assumed, { title: network.names[u] }), " ", track, make("span", "share", percent(share)));
      button.setAttribute("aria-label", `${network.names[u]}${assumed} ${percent(share)}${seen ? `, without what is assumed ${percent(was)}` : ""}; show the paths to it`);
      button.addEventListener("click", () => this.app.choose({ other: u, tab: "paths" }));
      item.append(button);
      if (i >= MOST_RANKED) item.hidden = true;
      list.append(item);
    });
    this.body.append(list);
    if (ranked.length > MOST_RANKED) {
      const more = make("button", "more", `Show all ${ranked.length}`, { type: "button" });
      more.addEventListener("click", () => {
        for (const item of list.children) item.hidden = false;
        more.remove();
      });
      this.body.append(more);
    }
  }

  showPaths() {
    const { state, network } = this.app, v = state.target, app = this.app;
    this.begin("");
    const label = make("label", "field", `From ${network.names[v]} to `);
    const select = make("select", "");
    select.append(make("option", "", "choose an attribute", { value: "" }));
    [...network.names.keys()].filter((u) => u !== v).sort((a, b) => network.names[a].localeCompare(network.names[b]))
      .forEach((u) => select.append(make("option", "", network.names[u], { value: u })));
    select.value = state.other >= 0 && state.other !== v ? String(state.other) : "";
    select.addEventListener("change", () => app.choose({ other: select.value === "" ? -1 : Number(select.value) }));
    label.append(select);
    this.body.append(label);
    if (select.value === "") {
      this.body.append(make("p", "note", "Does knowing one tell anything about the other, and along which way?"));
      return;
    }
    const { open, blocked, connected } = app.paths(), other = network.names[state.other], given = describeEvidence(state);
    const verdict = state.evidence.has(state.other) || state.evidence.has(v)
      ? `${state.evidence.has(v) ? network.names[v] : other} is assumed, so the question is settled.`
      : connected
        ? `${given ? `Given that ${given}, ` : ""}${other} and ${network.names[v]} tell about each other.`
        : `${given ? `Given that ${given}, ` : ""}${other} and ${network.names[v]} are independent: every path is blocked.`;
    this.body.append(make("p", connected ? "verdict" : "verdict none", verdict));
    const list = (title, paths) => {
      if (!paths.length) return;
      this.body.append(make("h3", "", title));
      const found = make("ul", "trails");
      for (const path of paths) {
        const item = make("li", "");
        path.nodes.forEach((u, i) => {
          if (i) item.append(make("span", "way", path.downs[i - 1] ? " → " : " ← "));
          const block = path.blocks.find((one) => one.at === u);
          item.append(make("span", block ? "stop" : "node", network.names[u]));
        });
        for (const { at, effect } of path.blocks.slice(0, 1)) {
          item.append(make("span", "why", effect
            ? ` blocked at ${network.names[at]}, an effect of both sides of which nothing is known`
            : ` blocked at ${network.names[at]}, which is known`));
        }
        found.append(item);
      }
      this.body.append(found);
    };
    list(open.length === 1 ? "The open path" : `Open paths, shortest first`, open);
    list("Blocked paths", blocked.slice(0, open.length ? 3 : 6));
  }

  showExplanation() {
    const { state, network } = this.app;
    this.begin("");
    const best = this.app.explanation();
    if (!best) return;
    const given = describeEvidence(state);
    this.body.append(make("p", "", `${given ? `If ${given}, the` : "The"} single most probable combination of everything else has a probability of ${percent(best.probability)}.`));
    this.body.append(make("p", "note", "It is the best guess for all at once. One by one, another level may be more probable; those are marked."));
    const list = make("dl", "guess");
    network.topological.forEach((v) => {
      if (state.evidence.has(v) && state.evidence.get(v).is >= 0) return;
      const row = make("div", best.alone[v] === best.levels[v] ? "" : "other");
      row.append(make("dt", "", network.names[v]));
      row.append(make("dd", "", network.levels[v][best.levels[v]] + (best.alone[v] === best.levels[v] ? "" : ` (by itself: ${network.levels[v][best.alone[v]]})`)));
      list.append(row);
    });
    this.body.append(list);
    const copy = make("button", "copy", "Copy as text", { type: "button" });
    copy.addEventListener("click", () => this.app.copy(network.names.map((name, v) => `${name} = ${network.levels[v][best.levels[v]]}`).join("\n"), "list"));
    this.body.append(copy);
  }
}
