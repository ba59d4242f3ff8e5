// What calls the operator whose details are open: from a short trace of one process, by the ranges
// around its calls. Segments have no callers, so this is asked for, and the agent decides who may.
"use strict";

const CALLERS_TRACED_S = 1;
const CALLERS_SHOWN = 20;
const RANGES_AROUND = 4; // names of a call site
const CALLERS = [
  ["called within", "text", (row) => row.around.join(" ← ") || "no other range"],
  ["calls", "number", (row) => whole(row.calls)],
  ["total", "number", (row) => seconds(row.total_s)],
  ["per call", "number", (row) => seconds(row.total_s / row.calls)],
];
let callers = null; // {operator, said, rows}

// By call site, the calls of that operator in a trace; the ranges around, the innermost first.
function callSites(trace, operator) {
  const threads = new Map();
  for (const { ph, tid, ts, dur, name } of trace.traceEvents) {
    // A range without an end was open at the trace's end.
    if (ph !== "X" && ph !== "B") continue;
    if (!threads.has(tid)) threads.set(tid, []);
    threads.get(tid).push({ name, start: ts, end: ph === "B" ? Infinity : ts + dur });
  }
  const sites = new Map();
  for (const ranges of threads.values()) {
    ranges.sort((a, b) => a.start - b.start || b.end - a.end);
    const open = [];
    for (const range of ranges) {
      while (open.length && open.at(-1).end <= range.start) open.pop();
      if (range.name === operator && range.end < Infinity) {
        const around = open.slice(-RANGES_AROUND).reverse().map(({ name }) => name);
        const key = JSON.stringify(around);
        if (!sites.has(key)) sites.set(key, { around, calls: 0, total_s: 0 });
        const site = sites.get(key);
        site.calls += 1;
        site.total_s += (range.end - range.start) / 1e6;
      }
      open.push(range);
    }
  }
  return [...sites.values()].sort((a, b) => b.total_s - a.total_s || b.calls - a.calls);
}

// The process to ask: of the services that run the operator, the one that calls it most.
function callingProcess(now) {
  const row = now.operators.find(({ operator }) => operator === choice.operator);
  for (const { service } of row?.parts ?? []) {
    const found = now.processes.find((process) => process.service === service);
    if (found) return found;
  }
  return undefined;
}

async function findCallers() {
  const process = callingProcess(seen);
  if (!process || tracing !== null) return;
  const operator = choice.operator;
  callers = { operator, said: `tracing pid ${process.pid} for ${CALLERS_TRACED_S} s …`, rows: null };
  try {
    const packed = await traceOf(process.pid, CALLERS_TRACED_S);
    const unpacked = packed.stream().pipeThrough(new DecompressionStream("gzip"));
    const trace = await new Response(unpacked).json();
    const sites = callSites(trace, operator);
    const lost = trace.otherData.lost_events;
    const more = sites.length > CALLERS_SHOWN ? `; the ${CALLERS_SHOWN} with most time of ${sites.length}` : "";
    const missing = lost ? `; ${whole(lost)} events found no room and are missing` : "";
    const said = `pid ${process.pid}, ${process.service}, every call within ${CALLERS_TRACED_S} s${more}${missing}`;
    callers = { operator, said, rows: sites.slice(0, CALLERS_SHOWN) };
  } catch (error) {
    callers = { operator, said: `no callers: ${whyNot(error)}`, rows: null };
  }
  redraw();
}

function showCallers(now) {
  const ours = callers?.operator === choice.operator ? callers : null;
  byId("callers").hidden = !now.can_trace;
  byId("callers-find").disabled = tracing !== null || !callingProcess(now);
  byId("callers-said").textContent = ours?.said ?? "from a trace of 1 s";
  byId("callers-wide").hidden = !ours?.rows;
  if (ours?.rows) fill(byId("operator-callers"), CALLERS, ours.rows, "it was not called in that time");
}

document.getElementById("callers-find").addEventListener("click", findCallers);
