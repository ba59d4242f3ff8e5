// Drawings of the host agent's page, as SVG: areas on each other over time, with a legend that says
// the same in words, and how calls spread over durations. Colours are classes of page.css, as the
// page may have no inline style; whatever comes from processes is set as text, never as markup.
"use strict";

const SVG = document.getElementById("mark").namespaceURI;
const COLOURS = 8;
const SPAN_S = 900; // what a chart shows at most
const LEAST_SPAN_S = 60;
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

// What was seen since the page was opened: for each chart, points of {time_s, values: Map}.
class History {
  constructor() {
    this.points = [];
    this.isKnown = true;
  }

  // `groups`: [name, value] each; a value that is not known is null, and then nothing is drawn.
  add(time_s, groups) {
    this.isKnown = groups.every(([, value]) => value !== null);
    if (!this.isKnown) return;
    this.points.push({ time_s, values: new Map(groups.map(([name, value]) => [name, value])) });
    while (this.points[0].time_s < time_s - SPAN_S) this.points.shift();
  }

  // Names with the most over all points first; the rest of more than COLOURS is one.
  names() {
    const sums = new Map();
    for (const { values } of this.points)
      for (const [name, value] of values) sums.set(name, (sums.get(name) ?? 0) + value);
    return [...sums.keys()].sort((a, b) => sums.get(b) - sums.get(a) || (a < b ? -1 : 1));
  }

  // By name the values of every point: [name, [values]], at most COLOURS of them.
  series() {
    const names = this.names();
    const shown = names.length > COLOURS ? names.slice(0, COLOURS - 1) : names;
    const all = shown.map((name) => [name, this.points.map(({ values }) => values.get(name) ?? 0)]);
    if (names.length > COLOURS) {
      const rest = names.slice(COLOURS - 1);
      all.push([
        "others",
        this.points.map(({ values }) => rest.reduce((sum, name) => sum + (values.get(name) ?? 0), 0)),
      ]);
    }
    return all;
  }
}

// Fills a figure: `stacked` areas, else lines; `format` writes a value.
function chart(figure, history, format, stacked, limit) {
  const series = history.series();
  const times = history.points.map(({ time_s }) => time_s);
  const place = figure.querySelector(".drawing");
  const last = times.length - 1;
  if (!history.isKnown || last < 1 || series.length === 0) {
    const text = !history.isKnown
      ? "not known: where single calls are sampled, what they call is not seen"
      : last < 1 ? choice.isPaused ? "paused: nothing was gathered yet" : "gathering: the first points come in some seconds" : "nothing ran";
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
  const ago = (seconds) => (seconds >= 120 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds)} s`);
  svg.append(
    drawn("text", { x: LEFT, y: HEIGHT - 3, class: "tick" }, `${ago(span)} ago`),
    drawn("text", { x: WIDTH - 2, y: HEIGHT - 3, class: "tick right" }, "now"),
  );
  let below = times.map(() => 0);
  series.forEach(([, values], number) => {
    const upto = stacked ? values.map((value, i) => value + below[i]) : values;
    const line = times.map((time_s, i) => `${x(time_s)},${y(upto[i])}`);
    if (stacked) {
      const back = times.map((time_s, i) => `${x(time_s)},${y(below[i])}`).reverse();
      svg.append(drawn("polygon", { points: [...line, ...back].join(" "), class: `area c${number}` }));
      below = upto;
    }
    svg.append(drawn("polyline", { points: line.join(" "), class: `line c${number}` }));
  });
  if (limit !== undefined) {
    const height = y(limit);
    svg.append(drawn("line", { x1: LEFT, x2: WIDTH - 2, y1: height, y2: height, class: "limit" }));
  }
  const title = figure.querySelector("figcaption").textContent;
  svg.setAttribute("aria-label", `${title}, over the last ${ago(span)}; the values of now follow`);
  const legend = document.createElement("ul");
  legend.className = "legend";
  series.forEach(([name, values], number) => {
    const item = document.createElement("li");
    const key = drawn("svg", { viewBox: "0 0 10 10", class: "key", "aria-hidden": "true" });
    key.append(drawn("rect", { width: 10, height: 10, rx: 2, class: `area full c${number}` }));
    const label = document.createElement("span");
    label.textContent = name || "(none)";
    label.title = name;
    const value = document.createElement("b");
    value.textContent = format(values[last]);
    item.append(key, label, value);
    legend.append(item);
  });
  place.replaceChildren(svg, legend);
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
