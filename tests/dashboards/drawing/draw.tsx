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

const { board, store, from, to, step, set, width, mode, pace, shownTo } = window.TASK;
const theme = createTheme({ colors: { mode } });
// The fleet lives faster than the clock: an axis shows its time, in milliseconds.
const shownAt = (time) => 1000 * (shownTo + (time - to) / pace);
const range = { from: dateTime(shownAt(from)), to: dateTime(shownAt(to)), raw: { from: '', to: '' } };
let releases = [];
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
          axisPlacement: 'auto', spanNulls: 600000, ...defaults.custom,
        },
      };
      const field = {
        name: 'Value', type: FieldType.number, labels: metric, config,
        values: values.map(([, value]) => parseFloat(value)),
        state: { seriesIndex: made.length, displayName: name },
      };
      const time = { name: 'Time', type: FieldType.time, config: {}, values: values.map(([t]) => shownAt(t)) };
      made.push({ refId: `${target.refId}${made.length}`, fields: [shown(time), shown(field)], length: values.length });
    }));
  return made;
}

// Dashed lines where a version has its first data, as Grafana's annotations.
function marked(builder) {
  builder.addHook('draw', (plot) => {
    const { ctx } = plot;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = '#5794f2';
    ctx.setLineDash([4, 4]);
    for (const time of releases) {
      const x = plot.valToPos(time, 'x', true);
      const { top, height, left } = plot.bbox;
      if (x <= left) continue;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, top + height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x - 5, top + height + 6);
      ctx.lineTo(x + 5, top + height + 6);
      ctx.lineTo(x, top + height);
      ctx.fill();
    }
    ctx.restore();
  });
  return null;
}

function Lines({ panel, answers, width, height }) {
  return <TimeSeries frames={frames(panel, answers)} timeRange={range} timeZone="utc" structureRev={1}
    legend={panel.options.legend} width={width} height={height} options={{}}>{marked}</TimeSeries>;
}

function Number({ panel, answers, width, height }) {
  const { defaults } = panel.fieldConfig;
  const config = { ...defaults, color: { mode: 'thresholds' }, thresholds: steps(defaults.thresholds) };
  const values = answers[0].length ? answers[0][0].values.map(([, value]) => parseFloat(value)) : [];
  const field = shown({ name: panel.title, type: FieldType.number, config, values });
  const last = values.at(-1);
  const value = last === undefined ? { text: '-', numeric: NaN } : field.display(last);
  const times = answers[0].length ? answers[0][0].values.map(([t]) => shownAt(t)) : [];
  const x = { name: 'Time', type: FieldType.time, config: {}, values: times };
  const min = Math.min(...values), max = Math.max(...values);
  field.state = { range: { min, max, delta: max - min } };
  const sparkline = values.length > 1 ? { y: field, x } : undefined;
  return <BigValue value={value} sparkline={sparkline} theme={theme} width={width} height={height}
    colorMode="value" graphMode="area" />;
}

const steps = (thresholds) =>
  ({ ...thresholds, steps: thresholds.steps.map((one) => ({ ...one, value: one.value ?? -Infinity })) });

function Words({ panel }) {
  const [, asked, rest] = panel.options.content.match(/^### (.*)\n([\s\S]*)$/);
  return <div style={{ padding: '0 4px' }}>
    <h3 style={{ margin: '0 0 4px' }}>{asked.replace('$operator', set.operator)}</h3>
    <p style={{ margin: 0, color: theme.colors.text.secondary }}>{rest}</p>
  </div>;
}

// A row of cells for each series, as Grafana's status history; that is no part of its components.
function History({ panel, answers, width, height }) {
  const { defaults } = panel.fieldConfig;
  const config = { ...defaults, color: { mode: 'thresholds' }, thresholds: steps(defaults.thresholds) };
  const field = shown({ name: '', type: FieldType.number, config, values: [] });
  const rows = answers[0].map(({ metric, values }) => [legendOf(panel.targets[0].legendFormat, metric), values])
    .sort((a, b) => (a[0] < b[0] ? -1 : 1));
  const LEFT = 100, every = 180 * pace, below = 46;
  const wide = (width - LEFT - 8) / Math.ceil((to - from) / every), high = (height - below) / rows.length;
  const hours = [];
  for (let at = Math.ceil(shownAt(from) / 3.6e6) * 3.6e6; at <= shownAt(to); at += 3.6e6) hours.push(at);
  const x = (at) => LEFT + ((at - shownAt(from)) / (shownAt(to) - shownAt(from))) * (width - LEFT - 8);
  return <svg width={width} height={height} fontFamily="Inter, Helvetica, Arial, sans-serif" fontSize={12}
    fill={theme.colors.text.secondary}>
    {rows.map(([name, values], i) => <g key={name}>
      <text x={LEFT - 8} y={(i + 0.5) * high + 4} textAnchor="end">{name}</text>
      {values.filter(([t], k) => k % 3 === 0).map(([t, value]) =>
        <rect key={t} x={x(shownAt(t)) - wide} y={i * high + 1} width={wide - 0.5} height={high - 2}
          fill={field.display(parseFloat(value)).color} />)}
    </g>)}
    {hours.map((at) => <text key={at} x={x(at)} y={height - below + 16} textAnchor="middle">
      {new Date(at).toISOString().slice(11, 16)}</text>)}
    {config.thresholds.steps.map(({ value, color }, i) => <g key={value} transform={`translate(${LEFT + i * 90}, ${height - 12})`}>
      <rect width={12} height={8} y={-8} fill={theme.visualization.getColorByName(color)} />
      <text x={18}>{value === -Infinity ? `< ${config.thresholds.steps[1].value}` : `${value}+`}</text></g>)}
  </svg>;
}

// The rows of several queries, joined by their labels.
function joined(answers) {
  const rows = new Map();
  answers.forEach((series, i) => series.forEach(({ metric: { __name__, ...metric }, value }) => {
    const key = JSON.stringify(Object.entries(metric).sort());
    if (!rows.has(key)) rows.set(key, { metric, values: [] });
    rows.get(key).values[i] = parseFloat(value[1]);
  }));
  return [...rows.values()].sort((a, b) => b.values[0] - a.values[0]);
}

function Rows({ panel, answers, width, height }) {
  const { excludeByName, indexByName, renameByName } = panel.transformations.at(-1).options;
  const series = joined(answers);
  const names = new Set(series.flatMap(({ metric }) => Object.keys(metric)));
  const columns = [...names].filter((name) => !excludeByName[name])
    .sort((a, b) => (indexByName[a] ?? 99) - (indexByName[b] ?? 99));
  const fields = columns.map((name) => shown({
    name: renameByName[name] ?? name, type: FieldType.string, config: { custom: {} },
    values: series.map(({ metric }) => metric[name] ?? ''),
  }));
  answers.forEach((_, i) => {
    const name = renameByName[answers.length > 1 ? `Value #${String.fromCharCode(65 + i)}` : 'Value'];
    const own = panel.fieldConfig.overrides.filter(({ matcher }) => matcher.options === name)
      .flatMap(({ properties }) => properties);
    const set = (id) => own.find((one) => one.id === id)?.value;
    const config = { ...panel.fieldConfig.defaults, custom: {} };
    if (set('thresholds')) {
      Object.assign(config, { thresholds: steps(set('thresholds')), color: { mode: 'thresholds' } });
      config.custom = { cellOptions: set('custom.cellOptions') };
    }
    fields.push(shown({ name, type: FieldType.number, config, values: series.map(({ values }) => values[i]) }));
  });
  const every = panel.fieldConfig.overrides.flatMap(({ properties }) => properties);
  const least = every.find(({ id }) => id === 'custom.minWidth')?.value;
  for (const { matcher, properties } of panel.fieldConfig.overrides) {
    const wide = properties.find(({ id }) => id === 'custom.minWidth')?.value;
    const field = fields.find(({ name }) => name === matcher.options);
    if (wide && field) field.config.custom.minWidth = wide;
  }
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
  builder.addScale({ scaleKey: 'x', isTime: true, orientation: 0, direction: 1, range: () => [shownAt(from), shownAt(to)] });
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
      const left = plot.valToPos(shownAt(time - step), 'x', true), right = plot.valToPos(shownAt(time), 'x', true);
      const top = plot.valToPos(high, 'y', true), bottom = plot.valToPos(low, 'y', true);
      const start = Math.max(left, plot.bbox.left);
      ctx.fillStyle = orange(count / largest);
      if (right > start) ctx.fillRect(start, top + 0.5, right - start - 0.5, bottom - top - 0.5);
    }
  });
  return <div>
    <UPlotChart config={builder} width={width} height={height - 26}
      data={[[shownAt(from), shownAt(to)], [least, most]]} />
    <div style={{ display: 'flex', gap: 6, alignItems: 'center', fontSize: 12 }}>
      0 {[0, 0.25, 0.5, 0.75, 1].map((s) => <i key={s} style={{ width: 34, height: 10, background: orange(s) }} />)} {Math.round(largest).toLocaleString('en')} calls/s
    </div>
  </div>;
}

const KINDS = {
  timeseries: Lines, stat: Number, table: Rows, heatmap: HeatMap, 'status-history': History,
};
const context = { eventBus: new EventBusSrv(), eventsScope: 'drawing', sync: () => 0 };

function Panel({ panel, answers }) {
  const { x, y, w, h } = panel.gridPos;
  const Kind = KINDS[panel.type];
  const place = { position: 'absolute', left: x * CELL, top: y * (ROW + GAP) } as const;
  const isEmpty = answers.every((one) => one.length === 0);
  if (panel.type === 'text') return <div style={{ ...place, width: w * CELL - GAP }}><Words panel={panel} /></div>;
  return <div style={place}>
    <PanelChrome title={panel.title} width={w * CELL - GAP} height={h * (ROW + GAP) - GAP}>
      {(width, height) => isEmpty ? <p style={{ padding: 20 }}>{panel.fieldConfig.defaults.noValue ?? 'No data'}</p>
        : <Kind panel={panel} answers={answers} width={width} height={height} />}
    </PanelChrome>
  </div>;
}

async function main() {
  const panels = board.panels;
  const answers = await Promise.all(panels.map((panel) => Promise.all((panel.targets ?? []).map(ask))));
  const empty = panels.filter(({ targets }, i) => targets && answers[i].every((one) => one.length === 0))
    .map((one) => one.title);
  const [, , versions] = board.annotations.list;
  const begun = await ask({ expr: versions.expr.replace('1000 * ', ''), instant: true });
  releases = begun.map(({ value }) => shownAt(parseFloat(value[1])));
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
