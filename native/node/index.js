// Models that opscope.tensor.jit saved, run without Python; README.md has examples.
'use strict';

const os = require('node:os');
const path = require('node:path');
const addon = require(process.env.OPSCOPE_NODE_ADDON || './opscope.node');
const { parse, item, refused, DTYPES } = require('./types.js');

const OF_ERROR = { 1: RangeError, 2: TypeError, 3: RangeError };

// An error of the core, as opscope/tensor.h divides them.
function raised({ kind, message }) {
  return refused(OF_ERROR[kind] ?? Error, message);
}

function output(value) {
  if (Array.isArray(value)) return value.map(output);
  if (value !== null && typeof value === 'object') return { ...value, dtype: DTYPES[value.dtype] };
  return value;
}

class Model {
  #handle;
  #types;

  constructor(handle) {
    this.#handle = handle;
    const { id, inputs, outputs } = addon.describe(handle);
    this.id = id;
    this.inputs = inputs;
    this.outputs = outputs;
    this.#types = inputs.map(({ type }) => parse(type));
    Object.freeze(this);
  }

  #items(values) {
    if (values.length !== this.inputs.length) {
      throw refused(TypeError, `the model takes ${this.inputs.length} inputs, not ${values.length}`);
    }
    return values.map((value, index) => item(value, this.#types[index], `input ${this.inputs[index].name}`));
  }

  #result(found) {
    if (found.error) throw raised(found.error);
    const values = found.values.map(output);
    return values.length === 1 ? values[0] : values;
  }

  async forward(...values) {
    return this.#result(await addon.run(this.#handle, this.#items(values), true));
  }

  forwardSync(...values) {
    return this.#result(addon.run(this.#handle, this.#items(values), false));
  }

  extraFile(name) {
    const content = addon.extraFile(this.#handle, String(name));
    if (content === null) throw refused(RangeError, `the model has no extra file ${JSON.stringify(name)}`);
    return content;
  }

  close() {
    addon.close(this.#handle);
  }
}

function opened(found) {
  if (found.error) throw raised(found.error);
  return new Model(found.handle);
}

// The path of a file, whole: C would end it at a NUL.
function resolved(file) {
  if (typeof file !== 'string' || file.includes('\0')) throw refused(TypeError, 'a path is a string without NUL');
  return path.resolve(file);
}

async function load(file) {
  return opened(await addon.open(resolved(file), true));
}

function loadSync(file) {
  return opened(addon.open(resolved(file), false));
}

function record(options = {}) {
  const directory = options.directory ?? process.env.OPSCOPE_DIR ?? `/dev/shm/opscope-${os.userInfo().uid}`;
  const service = options.service ?? process.env.OTEL_SERVICE_NAME ?? path.basename(process.argv[1] ?? 'node');
  const sampling = options.sampling ?? 'windows';
  if (sampling !== 'windows' && !(sampling >= 0 && sampling <= 1)) {
    throw refused(RangeError, `sampling must be 'windows' or a probability, not ${sampling}`);
  }
  const probability = sampling === 'windows' ? -1 : sampling;
  const message = addon.record(directory, service, options.labels ?? 'model_id', probability);
  if (message !== null) throw refused(Error, message);
}

function loadBlas(file, { prefix = '', suffix = '' } = {}) {
  const message = addon.blas(file, prefix, suffix);
  if (message !== null) throw refused(Error, message);
}

module.exports = { load, loadSync, loadBlas, record, Model };
