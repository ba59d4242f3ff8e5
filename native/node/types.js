// Declared types of a model ("Optional[List[Tensor]]"), and JavaScript values as items of these types.
'use strict';

// The kinds of opscope/model.h.
const KIND = { None: 0, bool: 1, int: 2, float: 3, Dtype: 4, Tensor: 5, str: 6, List: 7, Tuple: 8 };
const DTYPES = ['float32', 'float64', 'int32', 'int64', 'uint8', 'bool', 'bfloat16', 'float16'];
const OF_ARRAY = new Map([
  [Float32Array, 'float32'],
  [Float64Array, 'float64'],
  [Int32Array, 'int32'],
  [BigInt64Array, 'int64'],
  [Uint8Array, 'uint8'],
  [Uint16Array, undefined],
]);
const HALVES = ['bfloat16', 'float16'];

// An exception of this package, to be thrown.
function refused(Kind, message) {
  return Object.assign(new Kind(message), { code: 'ERR_OPSCOPE' });
}

// {name, parts} of a type's text.
function parse(text) {
  let at = 0;
  const type = () => {
    const start = at;
    const name = /^[A-Za-z]+/.exec(text.slice(at))[0];
    at += name.length;
    const parts = [];
    if (text[at] === '[') {
      do {
        at += text[at] === ',' ? 2 : 1;
        parts.push(type());
      } while (text[at] === ',');
      at += 1;
    }
    return { name, parts, text: text.slice(start, at) };
  };
  return type();
}

function describe(value) {
  if (value === null) return 'null';
  return typeof value === 'object' ? value.constructor?.name ?? 'an object' : typeof value;
}

function tensor(value, where) {
  const data = value?.data;
  const made = data !== undefined && data !== null ? Object.getPrototypeOf(data)?.constructor : undefined;
  if (!OF_ARRAY.has(made)) {
    throw refused(TypeError, `${where}: a tensor is {data, shape}, with data one of ${[...OF_ARRAY.keys()].map((each) => each.name).join(', ')}`);
  }
  const usual = OF_ARRAY.get(made);
  const dtype = value.dtype ?? usual;
  if (dtype === undefined) throw refused(TypeError, `${where}: dtype says what data of Uint16Array is: ${HALVES.join(' or ')}`);
  const fits = usual === undefined ? HALVES.includes(dtype) : dtype === usual || (dtype === 'bool' && usual === 'uint8');
  if (!fits) throw refused(TypeError, `${where}: data of ${data.constructor.name} is not ${dtype}`);
  if (data.buffer instanceof SharedArrayBuffer || data.buffer.resizable) {
    throw refused(TypeError, `${where}: the memory of data must neither be shared nor resizable`);
  }
  const given = value.shape ?? [data.length];
  const shape = Array.isArray(given) ? [...given] : undefined;
  if (!shape?.every((size) => Number.isSafeInteger(size) && size >= 0)) {
    throw refused(TypeError, `${where}: shape must be an array of sizes`);
  }
  const count = shape.reduce((product, size) => product * size, 1);
  if (count !== data.length) {
    throw refused(RangeError, `${where}: shape [${shape}] has ${count} elements, and data ${data.length}`);
  }
  return { kind: KIND.Tensor, data, shape, dtype: DTYPES.indexOf(dtype) };
}

// An item as addon.c reads it: {kind, value} or a tensor.
function item(value, type, where) {
  const wrong = () => refused(TypeError, `${where} must be ${type.text}, not ${describe(value)}`);
  const { name, parts } = type;
  if (name === 'Optional') {
    return value === null || value === undefined ? { kind: KIND.None } : item(value, parts[0], where);
  }
  if (name === 'Tensor') return tensor(value, where);
  if (name === 'List' || name === 'Tuple') {
    if (!Array.isArray(value) || (name === 'Tuple' && value.length !== parts.length)) throw wrong();
    const items = value.map((each, index) => item(each, parts[name === 'List' ? 0 : index], `${where}[${index}]`));
    return { kind: KIND[name], value: items };
  }
  if (name === 'int') {
    const isWhole = typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);
    if (!isWhole) throw wrong();
    return { kind: KIND.int, value: BigInt(value) };
  }
  if (name === 'Dtype') {
    if (!DTYPES.includes(value)) throw wrong();
    return { kind: KIND.Dtype, value: BigInt(DTYPES.indexOf(value)) };
  }
  const plain = { float: 'number', bool: 'boolean', str: 'string' }[name];
  if (name === 'None' ? value !== null && value !== undefined : typeof value !== plain) throw wrong();
  return name === 'None' ? { kind: KIND.None } : { kind: KIND[name], value };
}

module.exports = { parse, item, refused, DTYPES };
