// What the page carries: read from the block of data in the file, checked before anything is shown.

const MOST_CELLS = 1 << 23;

/** The document in the page; a file that was cut or changed since it was written is refused with a reason. */
function readContents(block) {
  const text = block.textContent, sum = block.getAttribute("data-crc");
  if (sum !== checksum(text)) throw new Error("it is not as it was written: some of it is missing or was changed");
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("what it says about the network cannot be read");
  }
}

/** CRC-32 of a text in UTF-8, in hexadecimal: against damage, not against forgery. */
function checksum(text) {
  const bytes = new TextEncoder().encode(text);
  const table = new Uint32Array(256).map((_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n;
  });
  let crc = 0xffffffff;
  for (let i = 0; i < bytes.length; i++) crc = table[(crc ^ bytes[i]) & 255] ^ (crc >>> 8);
  return ((crc ^ 0xffffffff) >>> 0).toString(16).padStart(8, "0");
}

/** The network of a document: names, levels, graph and tables, which must hold together. */
function readNetwork(document) {
  const names = document.attributes.map((found) => String(found.name));
  const levels = document.attributes.map((found) => found.levels.map(String));
  const sizes = levels.map((found) => found.length);
  const parents = document.parents, count = names.length;
  const inside = (v) => Number.isInteger(v) && v >= 0 && v < count;
  if (!count || parents.length !== count || !parents.every((above) => above.every(inside))) throw new Error("its arrows do not fit its attributes");
  if (new Set(document.order.filter(inside)).size !== count || document.order.length !== count) throw new Error("it does not say in which order to work");
  const twice = levels.findIndex((found) => !found.length || new Set(found).size < found.length);
  if (twice >= 0) throw new Error(`${names[twice]} has no levels, or one of them twice`);
  if (document.cpts.length !== count) throw new Error("some of its tables are missing");
  const families = parents.map((above, v) => [...above, v]);
  const children = names.map(() => []);
  parents.forEach((above, v) => above.forEach((u) => children[u].push(v)));
  const topological = sortTopologically(parents, children);
  if (topological.length < names.length) throw new Error("its arrows go round in a circle");
  const index = new Map(names.map((name, v) => [name, v]));
  const codes = levels.map((found) => new Map(found.map((level, k) => [level, k])));
  if (index.size < names.length) throw new Error("two attributes have the same name");
  const tables = document.cpts.map((values, v) => {
    const cells = families[v].reduce((product, u) => product * sizes[u], 1);
    const table = Float64Array.from(values);
    if (table.length !== cells) throw new Error(`the table of ${names[v]} has the wrong size`);
    for (let c = 0; c < cells; c += sizes[v]) {
      let sum = 0;
      for (let x = 0; x < sizes[v]; x++) {
        if (!(table[c + x] >= 0)) throw new Error(`the table of ${names[v]} holds what is no probability`);
        sum += table[c + x];
      }
      if (!(Math.abs(sum - 1) <= 1e-6)) throw new Error(`a conditional of ${names[v]} does not sum to 1`);
    }
    return table;
  });
  const auxiliary = document.attributes.map((found) => Boolean(found.auxiliary));
  const ends = document.guaranteed;
  const [lower, upper] = [ends && ends.lower, ends && ends.upper].map((found) => found && tables.map((table, v) => {
    const end = Float64Array.from(found[v] || []);
    if (end.length !== table.length || !end.every((p) => p >= -1e-9 && p <= 1 + 1e-9)) throw new Error(`the intervals of ${names[v]} do not fit its table`);
    return end;
  }));
  return {
    names, levels, sizes, parents, families, children, topological, index, codes, tables, auxiliary, lower, upper,
  };
}

function sortTopologically(parents, children) {
  const waiting = parents.map((above) => above.length);
  const order = waiting.map((count, v) => (count ? -1 : v)).filter((v) => v >= 0);
  for (let i = 0; i < order.length; i++) {
    for (const child of children[order[i]]) if (--waiting[child] === 0) order.push(child);
  }
  return order;
}

/** An element with a class, a text and attributes; a text never becomes markup. */
function make(tag, kind = "", text = null, attributes = {}) {
  const svg = ["svg", "path", "defs", "marker", "g"].includes(tag);
  const found = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  if (kind) found.setAttribute("class", kind);
  if (text !== null) found.textContent = text;
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  return found;
}
