// What the user has chosen on the host agent's page: order and filter of the operators, the operator
// whose details are open, the time that the graphs show, pause. It is all in the address's fragment,
// so that a link carries it: #sort=p99&filter=conv&operator=numpy%3A%3Aadd&span=day&paused
"use strict";

// By the name of an order: what it compares; numbers and unknown ones last, texts from a to z.
const ORDERS = {
  operator: (row) => row.operator,
  framework: (row) => row.framework,
  calls: (row) => row.calls_per_s,
  total: (row) => row.total_share,
  self: (row) => row.self_share,
  p50: (row) => row.p50_s,
  p95: (row) => row.p95_s,
  p99: (row) => row.p99_s,
};
// What graphs show at most.
const SPANS = { hour: 3600, day: 86_400, start: Infinity };
const choice = {
  sort: "total", isReversed: false, filter: "", operator: "", span: "hour", span_s: SPANS.hour,
  isPaused: false,
};

function readChoice() {
  const given = new URLSearchParams(location.hash.slice(1));
  const sort = given.get("sort") ?? "total";
  choice.isReversed = sort.startsWith("-");
  const name = choice.isReversed ? sort.slice(1) : sort;
  choice.sort = Object.hasOwn(ORDERS, name) ? name : "total";
  choice.filter = given.get("filter") ?? "";
  choice.operator = given.get("operator") ?? "";
  const span = given.get("span") ?? "hour";
  choice.span = Object.hasOwn(SPANS, span) ? span : "hour";
  choice.span_s = SPANS[choice.span];
  choice.isPaused = given.has("paused");
}

function writeChoice() {
  const made = new URLSearchParams();
  if (choice.sort !== "total" || choice.isReversed)
    made.set("sort", (choice.isReversed ? "-" : "") + choice.sort);
  if (choice.filter) made.set("filter", choice.filter);
  if (choice.operator) made.set("operator", choice.operator);
  if (choice.span !== "hour") made.set("span", choice.span);
  if (choice.isPaused) made.set("paused", "");
  const text = made.toString();
  // In place: the back button leaves the page, and does not undo each letter of a filter.
  history.replaceState(null, "", text ? `#${text}` : location.pathname);
}

// The rows to show, in order.
function chosen(rows) {
  const wanted = choice.filter.toLowerCase();
  const value = ORDERS[choice.sort];
  const turn = choice.isReversed ? -1 : 1;
  const compared = (a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return (x === null) - (y === null);
    const order = typeof x === "string" ? (x < y ? -1 : x > y ? 1 : 0) : y - x;
    return turn * order || (a.operator < b.operator ? -1 : 1);
  };
  return rows.filter((row) => row.operator.toLowerCase().includes(wanted)).sort(compared);
}

// A heading that sorts; a second press reverses the order.
function sorting(cell, name, changed) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "sort";
  button.append(...cell.childNodes);
  const isCurrent = choice.sort === name;
  if (isCurrent) {
    const isText = name === "operator" || name === "framework";
    const isUp = isText !== choice.isReversed;
    cell.setAttribute("aria-sort", isUp ? "ascending" : "descending");
    button.append(isUp ? " ▲" : " ▼");
  }
  button.addEventListener("click", () => {
    choice.isReversed = choice.sort === name && !choice.isReversed;
    choice.sort = name;
    writeChoice();
    changed();
  });
  cell.replaceChildren(button);
}

// Quantiles and rates of each operator over time, for its details.
const ofOperators = new Map();
const OPERATORS_KEPT = 500;

function remember(now, time_s) {
  for (const row of now.operators) {
    let known = ofOperators.get(row.operator);
    if (!known) {
      if (ofOperators.size >= OPERATORS_KEPT) continue;
      known = { quantiles: new History(), calls: new History(), threads: new History() };
      ofOperators.set(row.operator, known);
    }
    if (row.calls_per_s === null) continue;
    const quantiles = [["p50", row.p50_s], ["p95", row.p95_s], ["p99", row.p99_s]];
    known.quantiles.add(time_s, quantiles.filter(([, value]) => value !== null));
    known.calls.add(time_s, [["calls/s", row.calls_per_s]]);
    known.threads.add(time_s, [["threads", row.threads]]);
  }
}
