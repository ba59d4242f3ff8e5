// Draws a dashboard with Grafana's own components (@grafana/ui), from what a Prometheus has now. The
// heat map is not among those, it is part of Grafana itself: here it is Grafana's chart with cells
// drawn into it. Variables are set and times chosen by draw.py, in `window.TASK`.
// By require: as ES modules these packages take others' CommonJS for what it is not.
const { createTheme, dateTime, EventBusSrv, FieldType, getDisplayProcessor } = require('@grafana/data');
const {
  BigValue, GlobalStyles, PanelChrome, PanelContextProvider, Table, ThemeContext, TimeSeries,
  UPlotChart, UPlotConfigBuilder,
} = require('@grafana/ui');
import React from 'react';
import { createRoot } from 'react-dom/client';

const { board, store, from, to, step, set, width } = window.TASK;
const theme = createTheme({ colors: { mode: 'light' } });
const range = { from: dateTime(from * 1000), to: dateTime(to * 1000), raw: { from: '', to: '' } };
const CELL = width / 24, ROW = 30, GAP = 8;

const filled = (expr) =>
  Object.entries(set).reduce((text, [name, value]) => text.replaceAll('$' + name, value), expr);

async function ask(target) {
  const parameters = { query: filled(target.expr) };
  const path = target.instant ? 'query' : 'query_range';
  Object.assign(parameters, target.instant ? { time: to } : { start: from, end: to, step });
  const answer = await fetch(`${store}/api/v1/${path}?${new URLSearchParams(parameters)}`);
  const said = await answer.json();
  if (said.status !== 'success') throw new Error(`${target.expr}: ${said.error}`);
  return said.data.result;
}

const legendOf = (format, labels) =>
  format === '__auto'
    ? JSON.stringify(labels)
    : format.replace(/{{(\w+)}}/g, (_, name) => labels[name] ?? '').trim();

function shown(field) {
  field.display = getDisplayProcessor({ field, theme });
  return field;
}

function frames(panel, answers) {
  const { defaults } = panel.fieldConfig;
  const made = [];
  panel.targets.forEach((target, i) =>
    answers[i].forEach(({ metric, values }) => {
      const name = legendOf(target.legendFormat, metric);
      const config = {
        ...defaults, color: { mode: 'palette-classic' }, displayName: name,
        custom: {
          drawStyle: 'line', lineInterpolation: 'linear', showPoints: 'never', pointSize: 4,
          axisPlacement: 'auto', spanNulls: 60000, ...defaults.custom,
        },
      };
      const field = {
        name: 'Value', type: FieldType.number, labels: metric, config,
        values: values.map(([, value]) => parseFloat(value)),
        state: { seriesIndex: made.length, displayName: name },
      };
      const time = { name: 'Time', type: FieldType.time, config: {}, values: values.map(([t]) => t * 1000) };
      made.push({ refId: `${target.refId}${made.length}`, fields: [shown(time), shown(field)], length: values.length });
    }));
  return made;
}

function Lines({ panel, answers, width, height }) {
  return <TimeSeries frames={frames(panel, answers)} timeRange={range} timeZone="utc" structureRev={1}
    legend={panel.options.legend} width={width} height={height} options={{}} />;
}

function Number({ panel, answers, width, height }) {
  const config = { ...panel.fieldConfig.defaults, color: { mode: 'fixed', fixedColor: 'text' } };
  const field = shown({ name: panel.title, type: FieldType.number, config, values: [] });
  const value = answers[0].length ? field.display(parseFloat(answers[0][0].value[1])) : { text: '-', numeric: NaN };
  return <BigValue value={value} theme={theme} width={width} height={height} colorMode="value" graphMode="none" />;
}

function Rows({ panel, answers, width, height }) {
  const { excludeByName, indexByName, renameByName } = panel.transformations[0].options;
  const series = [...answers[0]].sort((a, b) => b.value[1] - a.value[1]);
  const names = new Set(series.flatMap(({ metric }) => Object.keys(metric)));
  const columns = [...names].filter((name) => !excludeByName[name])
    .sort((a, b) => (indexByName[a] ?? 99) - (indexByName[b] ?? 99));
  const fields = columns.map((name) => shown({
    name: renameByName[name] ?? name, type: FieldType.string, config: { custom: {} },
    values: series.map(({ metric }) => metric[name] ?? ''),
  }));
  fields.push(shown({
    name: renameByName.Value, type: FieldType.number, config: { ...panel.fieldConfig.defaults, custom: {} },
    values: series.map(({ value }) => parseFloat(value[1])),
  }));
  const every = panel.fieldConfig.overrides.flatMap(({ properties }) => properties);
  const least = every.find(({ id }) => id === 'custom.minWidth')?.value;
  return <Table data={{ fields, length: series.length }} columnMinWidth={least} width={width} height={height} />;
}

// Cells of both kinds of histograms: [time_s, from_s, to_s, calls a second].
function cells(answers) {
  const [natives, classics] = answers;
  const found = [];
  for (const { histograms } of natives)
    for (const [time, { buckets }] of histograms ?? [])
      for (const [, low, high, count] of buckets ?? []) found.push([time, +low, +high, +count]);
  const bounds = classics.map((one) => ({ ...one, le: parseFloat(one.metric.le.replace('+Inf', 'Infinity')) }))
    .sort((a, b) => a.le - b.le);
  bounds.forEach(({ le, values }, i) => {
    const below = new Map(i ? bounds[i - 1].values : []);
    const low = i ? bounds[i - 1].le : le / 4;
    for (const [time, value] of values)
      if (le < Infinity) found.push([time, low, le, value - (below.get(time) ?? 0)]);
  });
  return found.filter(([, low, , count]) => count > 1e-9 && low > 0);
}

const ORANGES = [[255, 245, 235], [253, 208, 162], [253, 141, 60], [217, 72, 1], [127, 39, 4]];
function orange(share) {
  const at = Math.min(share * (ORANGES.length - 1), ORANGES.length - 1.001), i = Math.floor(at);
  return `rgb(${ORANGES[i].map((c, k) => Math.round(c + (ORANGES[i + 1][k] - c) * (at - i)))})`;
}

function HeatMap({ answers, width, height }) {
  const all = cells(answers);
  const least = Math.min(...all.map((one) => one[1])), most = Math.max(...all.map((one) => one[2]));
  const largest = Math.max(...all.map((one) => one[3]));
  const builder = new UPlotConfigBuilder('utc');
  const second = shown({ name: 's', type: FieldType.number, config: { unit: 's' }, values: [] });
  builder.addScale({ scaleKey: 'x', isTime: true, orientation: 0, direction: 1, range: () => [from * 1000, to * 1000] });
  builder.addScale({ scaleKey: 'y', isTime: false, orientation: 1, direction: 1, distribution: 'log', log: 2, min: least, max: most, range: () => [least, most] });
  builder.addAxis({ scaleKey: 'x', isTime: true, placement: 'bottom', theme, timeZone: 'utc' });
  builder.addAxis({
    scaleKey: 'y', placement: 'left', theme, size: 70,
    splits: () => {
      const exponents = [];
      for (let e = Math.ceil(Math.log2(least)); e <= Math.log2(most); e++) exponents.push(e);
      const every = Math.ceil(exponents.length / 8);
      return exponents.filter((_, i) => i % every === 0).map((e) => 2 ** e);
    },
    formatValue: (value) => { const { text, suffix } = second.display(value); return `${text}${suffix ?? ''}`; },
  });
  builder.addSeries({ scaleKey: 'y', theme, drawStyle: 'points', show: true, lineColor: 'transparent', pointColor: 'transparent' });
  builder.addHook('draw', (plot) => {
    const { ctx } = plot;
    for (const [time, low, high, count] of all) {
      const left = plot.valToPos((time - step) * 1000, 'x', true), right = plot.valToPos(time * 1000, 'x', true);
      const top = plot.valToPos(high, 'y', true), bottom = plot.valToPos(low, 'y', true);
      const start = Math.max(left, plot.bbox.left);
      ctx.fillStyle = orange(count / largest);
      if (right > start) ctx.fillRect(start, top + 0.5, right - start - 0.5, bottom - top - 0.5);
    }
  });
  const steps = [0, 0.25, 0.5, 0.75, 1];
  return <div>
    <UPlotChart config={builder} width={width} height={height - 26}
      data={[[from * 1000, to * 1000], [least, most]]} />
    <div style={{ display: 'flex', gap: 6, alignItems: 'center', fontSize: 12 }}>
      0 {steps.map((s) => <i key={s} style={{ width: 34, height: 10, background: orange(s) }} />)} {Math.round(largest).toLocaleString('en')} calls/s
    </div>
  </div>;
}

const KINDS = { timeseries: Lines, stat: Number, table: Rows, heatmap: HeatMap };
const context = { eventBus: new EventBusSrv(), eventsScope: 'drawing', sync: () => 0 };

function Panel({ panel, answers }) {
  const { x, y, w, h } = panel.gridPos;
  const Kind = KINDS[panel.type];
  const place = { position: 'absolute', left: x * CELL, top: y * (ROW + GAP) } as const;
  const isEmpty = answers.every((one) => one.length === 0);
  return <div style={place}>
    <PanelChrome title={panel.title} width={w * CELL - GAP} height={h * (ROW + GAP) - GAP}>
      {(width, height) => isEmpty ? <p style={{ padding: 20 }}>No data</p>
        : <Kind panel={panel} answers={answers} width={width} height={height} />}
    </PanelChrome>
  </div>;
}

async function main() {
  const panels = board.panels;
  const answers = await Promise.all(panels.map((panel) => Promise.all(panel.targets.map(ask))));
  const empty = panels.filter((_, i) => answers[i].every((one) => one.length === 0)).map((one) => one.title);
  const rows = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h));
  const place = document.getElementById('root');
  place.style.cssText = `position: relative; width: ${width}px; height: ${rows * (ROW + GAP)}px`;
  createRoot(place).render(
    <ThemeContext.Provider value={theme}>
      <GlobalStyles />
      <PanelContextProvider value={context}>
        {panels.map((panel, i) => <Panel key={i} panel={panel} answers={answers[i]} />)}
      </PanelContextProvider>
    </ThemeContext.Provider>);
  setTimeout(() => { document.title = JSON.stringify({ empty, height: rows * (ROW + GAP) }); window.__done = true; }, 2500);
}
main().catch((error) => { document.title = `failed: ${error.message}`; console.log(error.stack); window.__done = true; });
