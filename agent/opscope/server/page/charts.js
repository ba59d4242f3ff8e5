// Drawings of the host agent's page, as SVG: areas on each other over time, with a legend that says
// the same in words, and how calls spread over durations. Colours are classes of page.css, as the
// page may have no inline style; whatever comes from processes is set as text, never as markup.
"use strict";

const SVG = document.getElementById("mark").namespaceURI;
const COLOURS = 8;
const REST = "others"; // so the agent's history calls them as well
const DENSE_S = 300; // this much has every point, the rest one in SPARSE_S or in a part of its age
const SPARSE_S = 9;
const SPARSE_PART = 0.005;
const LEAST_THINNED = 600; // points
const UNKNOWN_S = 60; // for so long, what is not known leaves what was known in sight
const LEAST_SPAN_S = 60;
const DAY_S = 86_400;
const WIDTH = 360, HEIGHT = 120, LEFT = 43, BOTTOM = 16, TOP = 6;

function drawn(tag, attributes, ...inner) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...inner);
  return made;
}

// A number at or above `value` that reads well on an axis.
function niceTop(value) {
  if (!(value > 0)) return 1;
  const size = 10 ** Math.floor(Math.log10(value));
  return size * [1, 2, 5, 10].find((step) => step * size >= value * 0.999);
}

// For each chart, points of {time_s, values: Map}.
class History {
  constructor(points = [], isKnown = true) {
    this.points = points;
    this.isKnown = isKnown;
    this.full = LEAST_THINNED;
  }

  // What is within so many seconds of the last point.
  within(span_s) {
    const from_s = this.points.length ? this.points.at(-1).time_s - span_s : 0;
    return new History(this.points.filter(({ time_s }) => time_s >= from_s), this.isKnown);
  }

  thin(time_s) {
    if (this.points.length < this.full) return;
    let kept_s = -Infinity;
    this.points = this.points.filter((point) => {
      const age_s = time_s - point.time_s;
      if (age_s > DENSE_S && point.time_s - kept_s < Math.max(SPARSE_S, SPARSE_PART * age_s))
        return false;
      kept_s = point.time_s;
      return true;
    });
    this.full = Math.max(LEAST_THINNED, 1.25 * this.points.length);
  }

  // `groups`: [name, value] each; a value that is not known is null, and then nothing is drawn.
  add(time_s, groups) {
    this.isKnown = groups.every(([, value]) => value !== null);
    if (!this.isKnown) return;
    this.points.push({ time_s, values: new Map(groups.map(([name, value]) => [name, value])) });
    this.thin(time_s);
  }

  // Names with the most over all points first; the rest of more than COLOURS is one.
  names() {
    const sums = new Map();
    for (const { values } of this.points)
      for (const [name, value] of values) sums.set(name, (sums.get(name) ?? 0) + value);
    sums.delete(REST);
    return [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a) || (a < b ? -1 : 1));
  }

  // By name the values of every point: [name, [values]], at most COLOURS of them; `missing` where a
  // point has none.
  series(missing) {
    const names = this.names();
    const hasOthers = this.points.some(({ values }) => values.has(REST));
    const isCut = names.length > COLOURS || (hasOthers && names.length === COLOURS);
    const shown = isCut ? names.slice(0, COLOURS - 1) : names;
    const all = shown.map((name) => [name, this.points.map(({ values }) => values.get(name) ?? missing)]);
    if (isCut || hasOthers) {
      const rest = [...names.slice(shown.length), REST];
      all.push([
        REST,
        this.points.map(({ values }) => rest.reduce((sum, name) => sum + (values.get(name) ?? 0), 0)),
      ]);
    }
    return all;
  }
}

// The places of values that follow each other, without those that are not known.
function runs(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null) return;
    if (i === 0 || values[i - 1] === null) found.push([]);
    found.at(-1).push(i);
  });
  return found;
}

// A span of time in words.
function spanText(seconds) {
  for (const [unit, size] of [["d", 86_400], ["h", 3600], ["min", 60]])
    if (seconds >= 2 * size) return `${Math.round(seconds / size)} ${unit}`;
  return `${Math.round(seconds)} s`;
}

// Fills a figure: `stacked` areas, else lines; `format` writes a value.
function chart(figure, whole, format, stacked, limit) {
  const history = whole.within(choice.span_s);
  // No time in an operator is none; a duration that is missing is not known.
  const series = history.series(stacked ? 0 : null);
  const times = history.points.map(({ time_s }) => time_s);
  const place = figure.querySelector(".drawing");
  const last = times.length - 1;
  const isUnknown = !history.isKnown && !(Date.now() / 1000 - times[last] < UNKNOWN_S);
  if (isUnknown || last < 1 || series.length === 0) {
    const text = isUnknown
      ? "not known: where single calls are sampled, what they call is not seen"
      : last < 1 ? choice.isPaused ? "paused: nothing was gathered yet" : "gathering: the first points come in some seconds" : figure.dataset.empty ?? "nothing ran";
    const said = document.createElement("p");
    said.className = "empty";
    said.textContent = text;
    place.replaceChildren(said);
    return;
  }
  const now = times[last];
  const span = Math.max(LEAST_SPAN_S, now - times[0]);
  const sums = times.map((_, i) => series.reduce((sum, [, values]) => sum + values[i], 0));
  const highest = stacked ? Math.max(...sums) : Math.max(...series.flatMap(([, values]) => values));
  const top = niceTop(Math.max(highest, limit ?? 0));
  const x = (time_s) => (WIDTH - 2 - ((now - time_s) / span) * (WIDTH - LEFT - 2)).toFixed(1);
  const y = (value) => (HEIGHT - BOTTOM - (value / top) * (HEIGHT - BOTTOM - TOP)).toFixed(1);
  const svg = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img" });
  for (const part of [0, 0.5, 1]) {
    const height = y(part * top);
    svg.append(
      drawn("line", { x1: LEFT, x2: WIDTH - 2, y1: height, y2: height, class: "grid" }),
      drawn("text", { x: LEFT - 4, y: +height + 3, class: "tick right" }, format(part * top)),
    );
  }
  svg.append(
    drawn("text", { x: LEFT, y: HEIGHT - 3, class: "tick" }, `${spanText(span)} ago`),
    drawn("text", { x: WIDTH - 2, y: HEIGHT - 3, class: "tick right" }, "now"),
  );
  let below = times.map(() => 0);
  series.forEach(([, values], number) => {
    const upto = stacked ? values.map((value, i) => value + below[i]) : values;
    const at = (i) => `${x(times[i])},${y(upto[i])}`;
    if (stacked) {
      const line = times.map((_, i) => at(i));
      const back = times.map((time_s, i) => `${x(time_s)},${y(below[i])}`).reverse();
      svg.append(drawn("polygon", { points: [...line, ...back].join(" "), class: `area c${number}` }));
      below = upto;
    }
    for (const run of runs(upto)) {
      // A single point is drawn as a dot.
      const line = run.length > 1 ? run.map(at) : [at(run[0]), at(run[0])];
      svg.append(drawn("polyline", { points: line.join(" "), class: `line c${number}` }));
    }
  });
  if (limit !== undefined) {
    const height = y(limit);
    svg.append(drawn("line", { x1: LEFT, x2: WIDTH - 2, y1: height, y2: height, class: "limit" }));
  }
  const cursor = drawn("line", { y1: TOP, y2: HEIGHT - BOTTOM, class: "cursor", visibility: "hidden" });
  const moment = drawn("text", { y: HEIGHT - 3, class: "tick moment", visibility: "hidden" });
  svg.append(cursor, moment);
  const title = figure.querySelector("figcaption").textContent;
  svg.setAttribute("aria-label", `${title}, over the last ${spanText(span)}; the values of now follow`);
  const legend = document.createElement("ul");
  legend.className = "legend";
  const shownValues = [];
  series.forEach(([name, values], number) => {
    const item = document.createElement("li");
    const key = drawn("svg", { viewBox: "0 0 10 10", class: "key", "aria-hidden": "true" });
    key.append(drawn("rect", { width: 10, height: 10, rx: 2, class: `area full c${number}` }));
    const label = document.createElement("span");
    label.textContent = name || "(none)";
    label.title = name;
    const value = document.createElement("b");
    shownValues.push([value, values]);
    item.append(key, label, value);
    legend.append(item);
  });
  place.replaceChildren(svg, legend);
  const point = () => {
    const isPointed = pointed_s !== null && pointed_s >= times[0];
    const at = isPointed ? nearest(times, pointed_s) : last;
    for (const [cell, values] of shownValues) cell.textContent = format(values[at]);
    for (const mark of [cursor, moment]) mark.setAttribute("visibility", isPointed ? "visible" : "hidden");
    const left = x(times[at]);
    cursor.setAttribute("x1", left);
    cursor.setAttribute("x2", left);
    moment.setAttribute("x", Math.min(Math.max(left, LEFT + 75), WIDTH - 55));
    const time = new Date(1000 * times[at]);
    moment.textContent = span > DAY_S ? time.toLocaleString() : time.toLocaleTimeString();
  };
  pointers.set(figure.id, point);
  svg.addEventListener("pointermove", (event) => {
    const { left, width } = svg.getBoundingClientRect();
    const part = (((event.clientX - left) / width) * WIDTH - LEFT) / (WIDTH - LEFT - 2);
    pointAt(now - (1 - Math.min(Math.max(part, 0), 1)) * span);
  });
  svg.addEventListener("pointerleave", () => pointAt(null));
  point();
}

// The time that the pointer is at, in any chart; all charts show their values of then.
let pointed_s = null;
const pointers = new Map();

function pointAt(time_s) {
  pointed_s = time_s;
  for (const point of pointers.values()) point();
}

// The place of the time next to `time_s` in an ascending list.
function nearest(times, time_s) {
  const after = times.findIndex((one) => one >= time_s);
  if (after <= 0) return after < 0 ? times.length - 1 : 0;
  return time_s - times[after - 1] < times[after] - time_s ? after - 1 : after;
}

// How calls spread over durations: a bar for each octave from 2^first s to 2^last s.
function distribution(octaves, offset, first, last, label) {
  const count = last - first + 1;
  const svg = drawn("svg", {
    viewBox: `0 0 ${count * 5} 20`, class: "spread", role: "img", "aria-label": label,
  });
  const most = Math.max(...octaves);
  svg.append(drawn("line", { x1: 0, x2: count * 5, y1: 19.5, y2: 19.5, class: "grid" }));
  octaves.forEach((calls, i) => {
    if (!(calls > 0)) return;
    const height = Math.max(1, (18 * calls) / most);
    const place = (offset + i - first) * 5;
    svg.append(drawn("rect", { x: place, y: 19 - height, width: 4, height, class: "bar" }));
  });
  return svg;
}
