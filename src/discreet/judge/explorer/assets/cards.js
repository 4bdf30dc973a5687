// A card for each attribute, the same in the map and in the list: its name, and a bar for each level.

const MOST_ROWS = 7;
const GLIDING = 0.02;
const BIN = /^[[(](.+), .+[\])]$/;
const LONGEST_BIN = 11;
const LONGEST_NAME = 20; // in the width of small letters, beyond which a name has two lines

/** The bar of a level: its probability, where it was before, the band of the likely and the line of the sure. */
class Bar {
  constructor() {
    this.track = make("span", "track", null, { "aria-hidden": "true" });
    this.fill = make("i", "fill");
    this.was = make("i", "was");
    this.band = make("i", "band");
    this.line = make("i", "line");
    this.track.append(this.fill, this.band, this.was, this.line);
  }

  /** A bar glides where an eye would see it: to let one glide takes the browser as long as all of the inference. */
  show(after, before, moved) {
    if (this.after !== after) {
      this.fill.classList.toggle("glide", Math.abs(after - this.after) > GLIDING);
      this.fill.style.transform = `scaleX(${after})`;
    }
    if (this.before !== before) this.was.style.left = `${100 * before}%`;
    if (this.moved !== moved) this.track.classList.toggle("moved", moved);
    Object.assign(this, { after, before, moved });
  }

  showEnds(ends, k) {
    for (const [mark, found] of [[this.line, ends && ends.sure], [this.band, ends && ends.likely]]) {
      mark.hidden = !found;
      if (!found) continue;
      mark.style.left = `${100 * found.low[k]}%`;
      mark.style.width = `${100 * Math.max(found.high[k] - found.low[k], 0.004)}%`;
    }
  }
}

/** A line of a card or of the panel: a button with the level's name, its bar and its probability. */
class LevelRow {
  constructor(name, level, label = level) {
    this.name = name;
    this.level = level;
    this.label = label;
    this.button = make("button", "level", null, { type: "button", "aria-pressed": "false" });
    this.bar = new Bar();
    this.share = make("span", "share", "");
    const told = make("span", "label", null, { title: level });
    told.append(...(BIN.test(label) ? label.split(/(?<=,)( )/).map((part) => make("span", part === " " ? "" : "part", part)) : [label]));
    this.button.append(told, " ", this.bar.track, this.share);
  }

  show(after, before, moved, evidence, k) {
    this.after = after;
    this.before = moved ? before : null;
    this.mark = !evidence ? "" : evidence.is === k ? "set" : evidence.not.has(k) ? "out" : "";
    this.bar.show(after, before, moved);
    const text = percent(after);
    if (this.text !== text) this.share.textContent = text;
    if (this.shown !== this.mark) {
      this.button.setAttribute("aria-pressed", String(this.mark === "set"));
      this.button.classList.toggle("set", this.mark === "set");
      this.button.classList.toggle("out", this.mark === "out");
    }
    Object.assign(this, { text, shown: this.mark });
    this.tell(null, k);
  }

  showEnds(ends, k) {
    this.bar.showEnds(ends, k);
    this.tell(ends, k);
  }

  tell(ends, k) {
    const was = this.before === null || this.before === undefined ? "" : `, was ${percent(this.before)}`;
    const inside = describeEnds(ends, k, ", ");
    const mark = this.mark === "set" ? ", assumed" : this.mark === "out" ? ", ruled out" : "";
    // What is heard begins with what is seen, or nobody could ask for it by its name.
    const whole = this.label === this.level ? "" : `, ${this.level}`;
    this.button.setAttribute("aria-label", `${this.name} ${this.label} ${percent(this.after)}${was}${inside}${mark}${whole}`);
  }
}

/** A name that breaks where its words end, if it must. */
function nameInParts(name) {
  const found = make("span", "name", null, { title: name });
  name.split(/(?<=[\s_.-])/).forEach((part, i) => found.append(...(i ? [make("wbr")] : []), part));
  return found;
}


/** Labels for cards: where bins such as [2017-07-01, 2017-09-01) are too long for them, each begins where it begins. */
function shortenBins(levels) {
  if (!levels.some((level) => BIN.test(level) && level.length > LONGEST_BIN)) return levels;
  return levels.map((level) => level.replace(BIN, "$1–"));
}

class Card {
  constructor(network, v, prior) {
    this.v = v;
    this.box = make("div", "card", null, { role: "group", "data-v": v });
    this.title = make("button", "title", null, { type: "button" });
    this.title.append(nameInParts(network.names[v]));
    this.state = make("span", "state", "");
    this.title.append(this.state);
    this.box.setAttribute("aria-label", network.names[v]);
    if (network.auxiliary[v]) this.box.classList.add("auxiliary");
    this.box.append(this.title);
    const size = network.sizes[v];
    this.shown = [...Array(size).keys()];
    if (size > MOST_ROWS) {
      // Which levels a card shows does not change, or the bars would jump about.
      this.shown = this.shown.sort((a, b) => prior[b] - prior[a]).slice(0, MOST_ROWS - 1).sort((a, b) => a - b);
    }
    this.labels = shortenBins(network.levels[v]);
    const { labels } = this;
    this.rows = this.shown.map((k) => new LevelRow(network.names[v], network.levels[v][k], labels[k]));
    this.rows.forEach((row, i) => {
      row.button.dataset.level = this.shown[i];
      this.box.append(row.button);
    });
    if (size > MOST_ROWS) {
      this.rest = make("button", "rest", null, { type: "button" });
      this.more = make("span", "label", "");
      this.remaining = make("span", "share", "");
      this.rest.append(this.more, " ", this.remaining);
      this.box.append(this.rest);
    }
    // From afar names are drawn larger, as far as their longest word fits; labels take no more room than they need.
    const measure = (part) => [...part].reduce((sum, c) => sum + (/[\p{Ll}\d.]/u.test(c) ? 0.72 : 0.9), 0);
    const word = Math.max(...network.names[v].split(/(?<=[\s_.-])/).map(measure));
    const label = Math.max(...this.shown.map((k) => measure(labels[k])));
    this.box.style.setProperty("--fit", `${Math.max(15, 172 / word).toFixed(1)}px`);
    this.box.style.setProperty("--label", `${Math.min(82, 4 + 10.6 * label).toFixed(0)}px`);
    const long = measure(network.names[v]) > 0.72 * LONGEST_NAME;
    this.box.classList.toggle("long", long);
    this.height = CARD.title + (long ? CARD.line : 0) + CARD.row * Math.min(size, MOST_ROWS) + CARD.foot;
  }

  get buttons() {
    return [this.title, ...this.rows.map((row) => row.button), ...(this.rest ? [this.rest] : [])];
  }

  show(after, before, moved, evidence) {
    const { labels } = this;
    this.rows.forEach((row, i) => {
      const k = this.shown[i];
      row.show(after[k], before[k], moved && !evidence, evidence, k);
    });
    const text = !evidence ? "" : evidence.is >= 0 ? `= ${labels[evidence.is]}` : `≠ ${[...evidence.not].map((k) => labels[k]).join(", ")}`;
    this.state.textContent = text;
    if (this.rest) this.showRest(after, evidence);
    this.box.classList.toggle("known", Boolean(evidence));
  }

  /** What the levels without a bar of their own have together; one that is assumed is named. */
  showRest(after, evidence) {
    const count = after.length - this.rows.length, hidden = evidence && evidence.is >= 0 && !this.shown.includes(evidence.is);
    this.more.textContent = hidden ? this.labels[evidence.is] : `${count} more levels`;
    this.remaining.textContent = percent(Math.max(0, 1 - this.shown.reduce((sum, k) => sum + after[k], 0)));
    this.rest.setAttribute("aria-label", `${this.box.getAttribute("aria-label")} ${this.more.textContent} ${this.remaining.textContent}`);
  }

  showEnds(ends) {
    this.rows.forEach((row, i) => row.showEnds(ends, this.shown[i]));
  }
}
