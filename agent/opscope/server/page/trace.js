// Takes a trace of one process and saves it as a file, for Perfetto. The agent decides who may.
"use strict";

let tracing = null; // the pid, while its trace is being taken

function told(text) {
  byId("trace-said").textContent = text;
}

// The file of a trace of that process; throws if the agent refuses.
async function traceOf(pid, seconds) {
  tracing = pid;
  redraw();
  try {
    const answer = await fetch("api/trace", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ pid, seconds }),
    });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    return await answer.blob();
  } finally {
    tracing = null;
  }
}

function whyNot(error) {
  return error instanceof TypeError ? "the agent is unreachable" : error.message;
}

async function takeTrace(row) {
  const length = Number(byId("trace-seconds").value);
  told(`tracing pid ${row.pid} for ${length} s …`);
  try {
    const trace = await traceOf(row.pid, length);
    const name = `opscope-${row.service.replace(/[^\w.-]+/g, "_").slice(0, 60)}-${row.pid}.json.gz`;
    const link = element("a");
    link.href = URL.createObjectURL(trace);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
    told(`saved as ${name}; open it at ui.perfetto.dev or in chrome://tracing`);
  } catch (error) {
    told(`no trace of pid ${row.pid}: ${whyNot(error)}`);
  }
  redraw();
}

function traceButton(row) {
  const button = element("button", "take", tracing === row.pid ? "tracing …" : "trace");
  button.type = "button";
  button.disabled = tracing !== null;
  button.setAttribute("aria-label", `take a trace of pid ${row.pid}, ${row.program}`);
  button.addEventListener("click", () => takeTrace(row));
  return button;
}
