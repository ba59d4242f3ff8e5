// The host agent's page: asks for the numbers of now every few seconds and shows them, in tables and
// by charts.js. Whatever comes from processes is set as text, never as markup.
"use strict";

const EVERY_MS = 2000;
const FIRST_ROWS = 15;
const GAP_S = 60; // after which the agent's history has more than this page
const SPREAD_AT = 5; // before the quantiles
const TRACE_AT = 4; // after the service

const byId = (id) => document.getElementById(id);

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Each column: heading, class of its cells, what to put into a cell, and the order that it sorts by.
function fill(table, columns, rows, empty) {
  const body = element("tbody");
  const head = element("tr");
  for (const [heading, kind, , order] of columns) {
    const cell = element("th", kind);
    cell.scope = "col";
    cell.append(heading);
    if (order) sorting(cell, order, redraw);
    head.append(cell);
  }
  for (const row of rows) {
    const line = element("tr", row.is_unsure ? "unsure" : "");
    for (const [, kind, content] of columns) {
      const cell = element("td", kind);
      const value = content(row);
      cell.append(value instanceof Node ? value : String(value));
      if (kind === "name") cell.title = cell.textContent;
      line.append(cell);
    }
    body.append(line);
  }
  if (rows.length === 0) {
    const line = element("tr");
    const cell = element("td", "empty", empty);
    cell.colSpan = columns.length;
    line.append(cell);
    body.append(line);
  }
  const header = element("thead");
  header.append(head);
  table.replaceChildren(header, body);
}

function threeDigits(value) {
  return value >= 99.95 ? Math.round(value).toLocaleString("en") : value.toPrecision(3);
}

function seconds(value) {
  if (value === null) return "–";
  for (const [unit, size] of [["s", 1], ["ms", 1e-3], ["µs", 1e-6]])
    if (value >= size * 0.9995) return `${threeDigits(value / size)} ${unit}`;
  return `${Math.round(value * 1e9)} ns`;
}

function count(value) {
  if (value === null) return "–";
  for (const [unit, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (value >= size * 0.9995) return threeDigits(value / size) + unit;
  return value === 0 ? "0" : threeDigits(value);
}

function whole(value) {
  return value < 1000 ? String(value) : count(value);
}

function percent(value, digits) {
  return value === null ? "–" : `${(100 * value).toFixed(digits)} %`;
}

let unsureAbove = 1; // standard error over estimate; the agent says which

// An estimate, with its standard error where it is not sure.
function estimate(value, error, format) {
  const isUnsure = value !== null && error !== null && error > unsureAbove * value;
  return isUnsure ? `${format(value)} ± ${format(error)}` : format(value);
}

function share(value, error = null) {
  const both = document.createDocumentFragment();
  const bar = element("i");
  bar.style.width = `${Math.min(100, 100 * (value ?? 0))}%`;
  both.append(bar, element("span", "", estimate(value, error, (one) => percent(one, 1))));
  return both;
}

// The durations that any operator had, as octaves of a second, for one axis of all.
function durations(now) {
  const places = now.operators.flatMap(({ octaves }) =>
    octaves.flatMap((calls, i) => (calls > 0 ? [now.first_octave + i] : [])));
  return [Math.min(...places), Math.max(...places)];
}

function spread(now) {
  const [first, last] = durations(now);
  const heading = element("span", "from-to");
  heading.append(element("span", "", seconds(2 ** first)), element("span", "", "durations"),
                 element("span", "", seconds(2 ** (last + 1))));
  const cell = (row) => distribution(
    row.octaves, now.first_octave, first, last,
    `median ${seconds(row.p50_s)}, 99th percentile ${seconds(row.p99_s)}`);
  return [heading, "", cell];
}

// An operator's name, which opens its details.
function opening(row) {
  const button = element("button", "open", row.operator);
  button.type = "button";
  button.addEventListener("click", () => {
    choice.operator = row.operator;
    writeChoice();
    redraw();
    byId("operator-heading").focus();
  });
  return button;
}

const OPERATORS = [
  ["operator", "name", opening, "operator"],
  ["framework", "", (row) => row.framework, "framework"],
  ["calls/s", "number", (row) => estimate(row.calls_per_s, row.calls_per_s_error, count), "calls"],
  ["total", "share", (row) => share(row.total_share), "total"],
  ["self", "share", (row) => share(row.self_share, row.self_share_error), "self"],
  ["p50", "number", (row) => seconds(row.p50_s), "p50"],
  ["p95", "number", (row) => seconds(row.p95_s), "p95"],
  ["p99", "number", (row) => seconds(row.p99_s), "p99"],
];

const PROCESSES = [
  ["pid", "number", (row) => row.pid],
  ["user", "", (row) => row.user],
  ["program", "name", (row) => row.program],
  ["service", "name", (row) => row.service],
  ["since", "", (row) => new Date(1000 * row.since_unix_s).toLocaleString()],
  ["sampling", "", (row) => row.sampling],
  ["samples", "number", (row) => whole(row.samples)],
  ["dropped", "number", (row) => whole(row.dropped)],
  ["overhead", "number", (row) => percent(row.recent_overhead, 3)],
  ["bridges", "text", (row) => row.bridges.join("; ")],
];

const PARTS = [
  ["service", "name", (row) => row.service],
  ["phase", "", (row) => row.phase],
  ["calls/s", "number", (row) => count(row.calls_per_s)],
  ["busy threads", "number", (row) => threads(row.threads)],
];

const OTHERS = [
  ["pid", "number", (row) => row.pid],
  ["user", "", (row) => row.user],
  ["program", "name", (row) => row.program],
  ["why", "text", (row) => row.why],
];

function threads(value) {
  return value === null ? "–" : value >= 9.995 ? threeDigits(value) : value.toFixed(2);
}

// Most are far below a hundredth of a percent; a scale of equal texts would say nothing.
const overheadText = (value) => percent(value, value >= 0.1 ? 0 : value === 0 || value >= 1e-3 ? 2 : 4);
// Each chart: what it shows of an answer, as [name, value] pairs; how a value is written; stacked.
const CHARTS = {
  "by-operator": [(now) => now.operators.map((row) => [row.operator, row.threads]), threads, true],
  "by-framework": [(now) => now.by.framework, threads, true],
  "by-phase": [(now) => now.by.phase, threads, true],
  "by-service": [(now) => now.by.service, threads, true],
  "calls": [(now) => now.by.framework.map(([name, , calls]) => [name, calls]), count, true],
  "overhead": [(now) => (now.process_count ? [["worst process", now.recent_overhead]] : []), overheadText, false],
};
const histories = Object.fromEntries(Object.keys(CHARTS).map((id) => [id, new History()]));

function gather(now, time_s) {
  for (const [id, [groups]] of Object.entries(CHARTS)) histories[id].add(time_s, groups(now));
  remember(now, time_s);
}

// What the agent knows of the time when this page was not open, or not shown.
let gathered_s = 0;
async function recall() {
  const answer = await fetch("api/history", { cache: "no-store" });
  if (!answer.ok) throw new Error(`the agent answered ${answer.status}`);
  const points = await answer.json();
  const now_s = Date.now() / 1000;
  for (const history of Object.values(histories)) history.points.length = 0;
  ofOperators.clear();
  for (const point of points) gather(point, now_s - point.age_s);
}

// What is since the start is not of a moment, so it is no point of a chart.
function charts(now) {
  const time_s = Date.now() / 1000;
  if (now.by !== null) {
    gather(now, time_s);
    gathered_s = time_s;
  }
  drawCharts(now);
}

function drawCharts(now) {
  byId("charts").hidden = now.process_count === 0 && histories.calls.points.length === 0;
  for (const [id, [, format, stacked]] of Object.entries(CHARTS)) {
    const limit = id === "overhead" ? now.overhead_budget ?? undefined : undefined;
    chart(byId(id), histories[id], format, stacked, limit);
  }
}

// The operator whose details are open.
function details(now) {
  const known = ofOperators.get(choice.operator);
  byId("operator").hidden = choice.operator === "";
  byId("operator-heading").textContent = choice.operator;
  const row = now.operators.find(({ operator }) => operator === choice.operator);
  byId("operator-about").textContent = row
    ? `${row.framework}, ${estimate(row.calls_per_s, row.calls_per_s_error, count)} calls/s, self `
      + `${estimate(row.self_share, row.self_share_error, (one) => percent(one, 1))}, median `
      + `${seconds(row.p50_s)}, 99th percentile ${seconds(row.p99_s)}`
    : "It did not run in this interval.";
  fill(byId("operator-parts"), PARTS, row?.parts ?? [], "none in this interval");
  showCallers(now);
  const nothing = new History();
  chart(byId("operator-quantiles"), known?.quantiles ?? nothing, seconds, false);
  chart(byId("operator-calls"), known?.calls ?? nothing, count, true);
  chart(byId("operator-threads"), known?.threads ?? nothing, threads, true);
}

function figures(now) {
  const shown = [
    ["observed processes", whole(now.process_count)],
    ["not observed", whole(now.other_count)],
    ["threads busy in operators", threads(now.busy)],
    ["calls per second", count(now.calls_per_s)],
    ["ranges recorded", whole(now.samples)],
    ["ranges dropped", whole(now.dropped)],
    ["overhead, worst process", percent(now.recent_overhead, 3)],
  ];
  byId("figures").replaceChildren(
    ...shown.map(([name, value]) => {
      const box = element("div", "figure");
      box.append(element("b", "", value), element("span", "", name));
      return box;
    }),
  );
}

function draw(now) {
  byId("host").textContent = now.host;
  unsureAbove = now.unsure_above;
  document.title = `Opscope ${now.host}`;
  figures(now);
  charts(now);
  tables(now);
  details(now);
  seen = now;
}

function tables(now) {
  byId("operators-about").textContent = now.about;
  const columns = [...OPERATORS];
  if (now.operators.length) columns.splice(SPREAD_AT, 0, spread(now));
  const matching = chosen(now.operators);
  const rows = showsAll ? matching : matching.slice(0, FIRST_ROWS);
  const isFiltered = choice.filter !== "" && now.operators.length > 0;
  fill(byId("operators"), columns, rows,
       isFiltered ? "none matches the filter" : "none recorded in this interval");
  byId("matching").textContent = isFiltered ? `${matching.length} of ${now.operators.length}` : "";
  const more = byId("more");
  more.hidden = matching.length <= FIRST_ROWS;
  more.textContent = showsAll ? "show fewer" : `show all ${matching.length}`;
  more.setAttribute("aria-expanded", String(showsAll));
  byId("others-heading").textContent = `Python processes not observed: ${whole(now.other_count)}`;
  const canTrace = now.can_trace && now.processes.length > 0;
  byId("trace-tools").hidden = !canTrace;
  const ofProcesses = [...PROCESSES];
  // Beside the names: on a narrow screen the last columns are out of sight.
  if (canTrace) ofProcesses.splice(TRACE_AT, 0, ["timeline", "", traceButton]);
  fill(byId("processes"), ofProcesses, now.processes,
       "none; start one with: opscope run -- COMMAND");
  fill(byId("others"), OTHERS, now.others, "none");
}

let last = "";
let showsAll = false;
let seen = null;

function redraw() {
  const focused = document.activeElement?.closest?.("th")?.cellIndex;
  if (seen) {
    drawCharts(seen);
    tables(seen);
    details(seen);
  }
  // A heading that was pressed is new; whoever uses the keyboard stays on it.
  if (focused !== undefined)
    byId("operators").tHead.rows[0].cells[focused]?.querySelector("button")?.focus();
}

function showChoice() {
  byId("filter").value = choice.filter;
  byId("span").value = choice.span;
  const pause = byId("pause");
  pause.textContent = choice.isPaused ? "go on" : "pause";
  pause.setAttribute("aria-pressed", String(choice.isPaused));
}

byId("more").addEventListener("click", () => {
  showsAll = !showsAll;
  redraw();
});
byId("filter").addEventListener("input", (event) => {
  choice.filter = event.target.value;
  writeChoice();
  redraw();
});
byId("span").addEventListener("change", (event) => {
  choice.span = event.target.value;
  choice.span_s = SPANS[choice.span];
  writeChoice();
  redraw();
});
byId("close").addEventListener("click", () => {
  choice.operator = "";
  writeChoice();
  redraw();
  byId("operators-heading").focus();
});
byId("pause").addEventListener("click", () => {
  choice.isPaused = !choice.isPaused;
  writeChoice();
  showChoice();
  look();
});
window.addEventListener("hashchange", () => {
  readChoice();
  showChoice();
  redraw();
});

function say(text) {
  byId("state").textContent = text;
}

// Said once, not with each try, so that who listens to the page hears it once.
function lost(text) {
  const box = byId("trouble");
  box.hidden = text === "";
  if (box.textContent !== text) box.textContent = text;
  document.body.className = text ? "stale" : "";
}

let next = 0;

async function look() {
  clearTimeout(next);
  // Paused, the page asks once, so that it has something to show.
  if (choice.isPaused && seen) return say(`paused, ${last}`);
  try {
    if (Date.now() / 1000 - gathered_s > GAP_S) {
      await recall();
      gathered_s = Date.now() / 1000;
    }
    const answer = await fetch("api/live", { cache: "no-store" });
    if (!answer.ok) throw new Error(`the agent answered ${answer.status}`);
    draw(await answer.json());
    last = `as of ${new Date().toLocaleTimeString()}`;
    say(last);
    lost("");
  } catch (error) {
    const why = error instanceof TypeError ? "it is unreachable" : error.message;
    say(last ? "not up to date" : "no answer yet");
    lost(`The agent does not answer: ${why}. ${last ? `The numbers below are ${last}. ` : ""}`
         + `Retrying every ${EVERY_MS / 1000} s.`);
  }
  clearTimeout(next);
  if (choice.isPaused && seen) say(`paused, ${last}`);
  if (!document.hidden) next = setTimeout(look, EVERY_MS);
}

readChoice();
showChoice();
document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
look();
