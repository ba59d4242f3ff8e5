// Builds opscope.node with the C compiler, against the headers and libraries of the installed Python package.
//
// OPSCOPE_HOME: the folder with include/opscope, libopscope.so and libopscope_tensor.so; by default that of the
// package of `python3`. CC: the compiler; by default cc. OPSCOPE_NODE_OUT: where to write opscope.node.
'use strict';

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const path = require('node:path');

function home() {
  if (process.env.OPSCOPE_HOME) return process.env.OPSCOPE_HOME;
  const script = 'import opscope; print(opscope.get_include())';
  const include = execFileSync('python3', ['-c', script], { encoding: 'utf8' }).trim();
  return path.dirname(include);
}

function nodeHeaders() {
  const prefix = path.dirname(path.dirname(fs.realpathSync(process.execPath)));
  const places = [path.join(prefix, 'include', 'node'), '/usr/include/node', '/usr/include/nodejs/src'];
  const found = places.find((place) => fs.existsSync(path.join(place, 'node_api.h')));
  if (!found) throw new Error(`node_api.h is in none of ${places.join(', ')}: install the headers of Node.js`);
  return found;
}

const from = home();
const out = process.env.OPSCOPE_NODE_OUT || path.join(__dirname, 'opscope.node');
const sources = ['addon.c', 'items.c'].map((name) => path.join(__dirname, name));
const libraries = ['libopscope_tensor.so', 'libopscope.so'].map((name) => path.join(from, name));
const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-fvisibility=hidden'];
const includes = [`-I${path.join(from, 'include')}`, `-I${nodeHeaders()}`];
const command = [...flags, ...includes, ...sources, ...libraries, `-Wl,-rpath,${from}`, '-o', out];
execFileSync(process.env.CC || 'cc', command, { stdio: 'inherit' });
