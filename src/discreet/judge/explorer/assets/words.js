// Answers in words: for people, for spreadsheets, for the command line.

/** A probability as people read it; never rounded to certainty. The ends of an interval are rounded outwards. */
function percent(p, round = Math.round) {
  if (Number.isNaN(p)) return "";
  if (p <= 0) return "0 %";
  if (p >= 1) return "100 %";
  const shown = 100 * p;
  if (shown < 0.001) return "< 0.001 %";
  if (shown > 99.99) return "> 99.99 %";
  const digits = shown > 99.9 ? 2 : shown < 0.095 ? Math.ceil(-Math.log10(shown)) : 1, unit = 10 ** digits;
  // What a sum of floating-point numbers leaves behind the last digit is no reason to go one further.
  const slack = round === Math.floor ? 1e-7 : round === Math.ceil ? -1e-7 : 0;
  return `${(round(shown * unit + slack) / unit).toFixed(digits)} %`;
}

/** "smoke is yes and age is not old", or an empty text. */
function describeEvidence(state) {
  const { names, levels } = state.network;
  return join([...state.evidence].map(([v, found]) =>
    found.is >= 0
      ? `${names[v]} is ${levels[v][found.is]}`
      : `${names[v]} is not ${join([...found.not].map((k) => levels[v][k]), "or")}`));
}

function join(parts, word = "and") {
  if (parts.length < 2) return parts.join("");
  return `${parts.slice(0, -1).join(", ")} ${word} ${parts[parts.length - 1]}`;
}

/** The intervals of a level in words: likely between …, surely between …. */
function describeEnds(ends, k, before = "") {
  const tell = (word, found) => (found ? [`${word} ${percent(found.low[k], Math.floor)} to ${percent(found.high[k], Math.ceil)}`] : []);
  const parts = ends ? [...tell("likely", ends.likely), ...tell("surely", ends.sure)] : [];
  return parts.length ? before + parts.join(", ") : "";
}

/** An answer as a sentence: what is assumed, each level's probability, what it was before, and the interval. */
function writeSentence(state, answer) {
  const { names, levels, sizes } = state.network, v = state.target, given = describeEvidence(state);
  const parts = levels[v].map((level, k) => {
    const note = [given ? `before ${percent(answer.before[k])}` : "", describeEnds(answer.ends, k)].filter(Boolean).join(", ");
    return `${level} ${percent(answer.after[k])}${note ? ` (${note})` : ""}`;
  });
  const shown = sizes[v] === 2 ? parts.slice(0, 1) : parts;
  const head = given ? `If ${given}, then ${names[v]} is ` : `${names[v]} is `;
  const meaning = answer.ends ? ` ${answer.meaning}` : "";
  return `${head}${join(shown)}.${meaning} Source: ${answer.source}`;
}

/** An answer as CSV: a line for each level. */
function writeTable(state, answer) {
  const { names, levels } = state.network, v = state.target, given = describeEvidence(state);
  const lines = [["attribute", "level", "given", "before", "after", "sure_lower", "sure_upper", "likely_lower", "likely_upper"]];
  levels[v].forEach((level, k) => {
    const cut = (found) => (found ? [found.low[k], found.high[k]] : [null, null]);
    const ends = answer.ends || {};
    lines.push([names[v], level, given, answer.before[k], answer.after[k], ...cut(ends.sure), ...cut(ends.likely)]);
  });
  return lines.map((line) => line.map(writeCell).join(",")).join("\n") + "\n";
}

/** A CSV cell that no spreadsheet runs as a formula. */
function writeCell(value) {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  const bare = value.replace(/^'+/, "");
  const first = bare.replace(/^[\s\p{Cc}\p{Cf}]+/u, "").slice(0, 1).normalize("NFKC");
  const plain = /^[-+]?\d+(\.\d+)?$/.test(value);
  const safe = !plain && (/^[\t\r\n]/.test(bare) || "=+-@\u2212".includes(first || " ")) ? `'${value}` : value;
  return /[",;\s]/.test(safe) || !safe ? `"${safe.replace(/"/g, '""')}"` : safe;
}

/** The question as `discreet query` reads it: P(lung | smoke=yes, age!=old). */
function writeQuestion(state) {
  const { names, levels } = state.network, terms = [];
  for (const [v, found] of state.evidence) {
    if (found.is >= 0) terms.push(`${quoteName(names[v])}=${quoteName(levels[v][found.is])}`);
    else for (const k of found.not) terms.push(`${quoteName(names[v])}!=${quoteName(levels[v][k])}`);
  }
  return `P(${quoteName(names[state.target])}${terms.length ? ` | ${terms.join(", ")}` : ""})`;
}

/** The command that gives the same number. */
function writeCommand(state, file, ends) {
  const option = !ends ? " --interval none" : ends.sure ? "" : " --interval calibrated";
  return `discreet query ${quoteShell(file)} ${quoteShell(writeQuestion(state), true)}${option}`;
}

function quoteName(text) {
  const plain = /^[\p{L}\p{N}_][\p{L}\p{N}_.-]*$/u.test(text) && !/^(in|not|between|and)$/i.test(text);
  return plain ? text : `"${text.replace(/(["\\])/g, "\\$1")}"`;
}

function quoteShell(text, always = false) {
  return !always && /^[\w./-]+$/.test(text) && !text.startsWith("-") ? text : `'${text.replace(/'/g, "'\\''")}'`;
}
