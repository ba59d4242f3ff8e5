// The host agent's page: asks for the numbers of now every few seconds and draws them. Whatever
// comes from processes is set as text, never as markup.
"use strict";

const EVERY_MS = 2000;

const byId = (id) => document.getElementById(id);

function element(tag, className, text) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
}

// Each column: heading, class of its cells, and what to put into a cell.
function fill(table, columns, rows, empty) {
  const body = element("tbody");
  const head = element("tr");
  for (const [heading, kind] of columns) head.append(element("th", kind, heading));
  for (const row of rows) {
    const line = element("tr");
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

function share(value) {
  const both = document.createDocumentFragment();
  const bar = element("i");
  bar.style.width = `${Math.min(100, 100 * (value ?? 0))}%`;
  both.append(bar, element("span", "", percent(value, 1)));
  return both;
}

const OPERATORS = [
  ["operator", "name", (row) => row.operator],
  ["framework", "", (row) => row.framework],
  ["calls/s", "number", (row) => count(row.calls_per_s)],
  ["total", "share", (row) => share(row.total_share)],
  ["self", "share", (row) => share(row.self_share)],
  ["p50", "number", (row) => seconds(row.p50_s)],
  ["p95", "number", (row) => seconds(row.p95_s)],
  ["p99", "number", (row) => seconds(row.p99_s)],
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
  ["overhead", "number", (row) => percent(row.overhead, 3)],
  ["bridges", "text", (row) => row.bridges.join("; ")],
];

const OTHERS = [
  ["pid", "number", (row) => row.pid],
  ["user", "", (row) => row.user],
  ["program", "name", (row) => row.program],
  ["why", "text", (row) => row.why],
];

function figures(now) {
  const shown = [
    ["observed processes", whole(now.process_count)],
    ["not observed", whole(now.other_count)],
    ["threads in operators, mean", now.busy === null ? "–" : now.busy.toFixed(2)],
    ["samples", whole(now.samples)],
    ["dropped", whole(now.dropped)],
    ["overhead", percent(now.overhead, 3)],
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
  document.title = `Opscope ${now.host}`;
  figures(now);
  byId("operators-about").textContent = now.about;
  fill(byId("operators"), OPERATORS, now.operators, "none recorded in this time");
  fill(byId("processes"), PROCESSES, now.processes,
       "none; start one with: opscope run -- COMMAND");
  fill(byId("others"), OTHERS, now.others, "none");
}

function say(text, isBad) {
  byId("state").textContent = text;
  byId("state").className = isBad ? "bad" : "";
}

let next = 0;

async function look() {
  clearTimeout(next);
  try {
    const answer = await fetch("api/live", { cache: "no-store" });
    if (!answer.ok) throw new Error(`the agent answered ${answer.status}`);
    draw(await answer.json());
    say(`as of ${new Date().toLocaleTimeString()}`, false);
  } catch (error) {
    say(`not up to date: ${error.message}`, true);
  }
  clearTimeout(next);
  if (!document.hidden) next = setTimeout(look, EVERY_MS);
}

document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
look();
