// The map: cards placed by the layout, arrows between them, and moving about in it by mouse, finger and keyboard.

const PAD = 24;

class Stage {
  constructor(box, network, cards) {
    this.box = box;
    this.network = network;
    this.cards = cards;
    this.canvas = make("div", "canvas");
    this.arrows = make("svg", "arrows", null, { "aria-hidden": "true" });
    this.holder = make("div", "cards", null, { role: "group", "aria-label": "All attributes" });
    for (const v of network.topological) this.holder.append(cards[v].box);
    this.canvas.append(this.arrows, this.holder);
    box.append(this.canvas);
    this.at = { x: 0, y: 0, k: 1 };
    this.paths = new Map();
    this.follow();
    // Until the reader has moved it, the map fits its frame, whatever happens around it.
    new ResizeObserver(() => { if (!this.touched) this.fit(); }).observe(box);
  }

  /** Place the cards of these nodes; null shows them all. */
  arrange(nodes, view) {
    this.view = view;
    const all = this.network.topological;
    const shown = nodes || all;
    const visible = new Set(shown);
    for (const card of this.cards) card.box.hidden = !visible.has(card.v);
    this.box.classList.toggle("list", view === "list");
    this.arrows.replaceChildren();
    this.paths.clear();
    this.lit = true; // new arrows have to be told
    if (view === "list") {
      this.canvas.style.transform = "";
      for (const card of this.cards) {
        card.box.style.transform = "";
        card.box.style.height = "";
      }
      return;
    }
    const wanted = all.filter((v) => visible.has(v));
    const [down, right] = [false, true].map((sideways) =>
      layOut(wanted, (v) => this.network.parents[v], (v) => this.cards[v].height, sideways));
    // Downwards, as people draw causes, unless that would be much smaller.
    const layout = this.scale(right) > 1.2 * this.scale(down) ? right : down;
    this.layout = layout;
    for (const [v, place] of layout.places) {
      this.cards[v].box.style.transform = `translate(${place.left}px, ${place.top}px)`;
      this.cards[v].box.style.height = `${this.cards[v].height}px`;
    }
    this.draw(layout);
    this.fit();
  }

  draw(layout) {
    this.arrows.setAttribute("width", layout.width);
    this.arrows.setAttribute("height", layout.height);
    const defs = make("defs");
    for (const [id, kind] of [["tip", "tip"], ["tip-lit", "tip lit"]]) {
      const marker = make("marker", "", null, {
        id, viewBox: "0 0 8 8", refX: 6.5, refY: 4, markerWidth: 8, markerHeight: 8, orient: "auto",
        markerUnits: "userSpaceOnUse",
      });
      marker.append(make("path", kind, null, { d: "M0 0.6 L7.4 4 L0 7.4 z" }));
      defs.append(marker);
    }
    this.arrows.append(defs);
    for (const { from, to, points } of layout.routes) {
      let d = `M${points[0][0].toFixed(1)} ${points[0][1].toFixed(1)}`;
      for (let i = 1; i < points.length; i++) {
        const [x0, y0] = points[i - 1], [x1, y1] = points[i];
        const short = i === points.length - 1 ? 3 : 0, bend = i % 2 ? 0.5 : 0;
        const curve = layout.sideways
          ? [x0 + bend * (x1 - x0), y0, x1 - short - bend * (x1 - x0), y1, x1 - short, y1]
          : [x0, y0 + bend * (y1 - y0), x1, y1 - short - bend * (y1 - y0), x1, y1 - short];
        d += ` C${curve.map((one) => one.toFixed(1)).join(" ")}`;
      }
      const path = make("path", "arrow", null, { d, "marker-end": "url(#tip)" });
      this.paths.set(`${from}>${to}`, path);
      this.arrows.append(path);
    }
  }

  /** Light up these cards and arrows (as "from>to"), and dim the rest; null lights everything. */
  light(nodes, arrows) {
    if (!arrows && !this.lit) return; // the usual case, and touching every arrow is what costs
    this.lit = Boolean(arrows);
    for (const card of this.cards) card.box.classList.toggle("dim", Boolean(nodes) && !nodes.has(card.v));
    for (const [key, path] of this.paths) {
      const lit = Boolean(arrows) && arrows.has(key);
      path.setAttribute("class", `arrow${lit ? " lit" : ""}${arrows && !lit ? " dim" : ""}`);
      path.setAttribute("marker-end", lit ? "url(#tip-lit)" : "url(#tip)");
    }
  }

  /** How large a layout can be drawn in the frame. */
  scale({ width, height }) {
    return Math.min(1.15, (this.box.clientWidth - 2 * PAD) / width, (this.box.clientHeight - 2 * PAD) / height);
  }

  fit() {
    if (this.view === "list" || !this.layout) return;
    const { clientWidth, clientHeight } = this.box, pad = PAD, k = this.scale(this.layout);
    this.at = {
      k: Math.max(k, 0.08),
      x: (clientWidth - this.layout.width * k) / 2,
      y: Math.max(pad, (clientHeight - this.layout.height * k) / 2),
    };
    this.touched = false;
    this.move();
  }

  zoom(factor, x = this.box.clientWidth / 2, y = this.box.clientHeight / 2) {
    const k = Math.min(2.5, Math.max(0.08, this.at.k * factor)), ratio = k / this.at.k;
    this.at = { k, x: x - (x - this.at.x) * ratio, y: y - (y - this.at.y) * ratio };
    this.touched = true;
    this.move();
  }

  pan(dx, dy) {
    this.at.x += dx;
    this.at.y += dy;
    this.touched = true;
    this.move();
  }

  move() {
    if (this.view === "list") return;
    const { x, y, k } = this.at;
    this.canvas.style.transform = `translate(${x}px, ${y}px) scale(${k})`;
    this.box.classList.toggle("far", k < 0.7);
    this.box.classList.toggle("farther", k < 0.5);
    this.box.style.setProperty("--grow", String(Math.min(2.4, 0.7 / k)));
  }

  /** Bring a card into sight. */
  reveal(v) {
    const box = this.cards[v].box;
    if (this.view === "list") {
      box.scrollIntoView({ block: "nearest" });
      return;
    }
    const place = this.layout && this.layout.places.get(v);
    if (!place) return;
    const { k } = this.at, pad = 16;
    const left = this.at.x + place.left * k, top = this.at.y + place.top * k;
    const right = left + CARD.width * k, bottom = top + this.cards[v].height * k;
    let dx = 0, dy = 0;
    if (left < pad) dx = pad - left;
    else if (right > this.box.clientWidth - pad) dx = this.box.clientWidth - pad - right;
    if (top < pad) dy = pad - top;
    else if (bottom > this.box.clientHeight - pad) dy = this.box.clientHeight - pad - bottom;
    if (dx || dy) this.pan(dx, dy);
  }

  follow() {
    const { box } = this, fingers = new Map();
    let moved = false, spread = 0;
    box.addEventListener("wheel", (event) => {
      if (this.view === "list") return;
      event.preventDefault();
      const { left, top } = box.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0016)), event.clientX - left, event.clientY - top);
    }, { passive: false });
    box.addEventListener("pointerdown", (event) => {
      if (this.view === "list" || event.button) return;
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      moved = false;
      spread = 0;
    });
    box.addEventListener("pointermove", (event) => {
      const last = fingers.get(event.pointerId);
      if (!last) return;
      const dx = event.clientX - last[0], dy = event.clientY - last[1];
      if (fingers.size === 1 && !moved && Math.hypot(dx, dy) < 6) return;
      if (!moved) box.setPointerCapture(event.pointerId);
      moved = true;
      fingers.set(event.pointerId, [event.clientX, event.clientY]);
      if (fingers.size === 1) {
        this.pan(dx, dy);
        return;
      }
      const [[ax, ay], [bx, by]] = [...fingers.values()], wide = Math.hypot(ax - bx, ay - by);
      const { left, top } = box.getBoundingClientRect();
      if (spread) this.zoom(wide / spread, (ax + bx) / 2 - left, (ay + by) / 2 - top);
      spread = wide;
    });
    for (const end of ["pointerup", "pointercancel"]) {
      box.addEventListener(end, (event) => { fingers.delete(event.pointerId); spread = 0; });
    }
    // What ends a drag is not a click on the bar below it.
    box.addEventListener("click", (event) => {
      if (!moved) return;
      moved = false;
      event.stopPropagation();
      event.preventDefault();
    }, true);
    // The browser scrolls a focused button into sight, which would move the map beneath its own frame.
    box.addEventListener("scroll", () => { if (this.view !== "list") box.scrollTo(0, 0); });
  }
}
