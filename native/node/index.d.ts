/** A tensor: elements in row-major order. `shape` defaults to one dimension. */
export interface Tensor {
  data: Float32Array | Float64Array | Int32Array | BigInt64Array | Uint8Array | Uint16Array;
  shape?: number[];
  dtype?: 'float32' | 'float64' | 'int32' | 'int64' | 'uint8' | 'bool' | 'bfloat16' | 'float16';
}

/** What a model takes and returns. */
export type Value = Tensor | number | bigint | boolean | string | null | Value[];

export class Model {
  /** The label `model_id` of its operators. */
  readonly id: string;
  /** Types as in the model's graph: "Tensor", "Optional[int]", "List[Tensor]". */
  readonly inputs: { name: string; type: string }[];
  readonly outputs: { name: string; type: string }[];
  /** Runs the model on a thread of libuv's pool. Do not write to inputs until it has ended. */
  forward(...inputs: Value[]): Promise<Value>;
  /** Runs the model on this thread. */
  forwardSync(...inputs: Value[]): Value;
  extraFile(name: string): Buffer;
  /** Lets go of the file, once runs that go on have ended. Results stay valid. */
  close(): void;
}

/** Reads an archive on a thread of libuv's pool. */
export function load(file: string): Promise<Model>;
export function loadSync(file: string): Model;

/** Records this process's operators for the host agent. */
export function record(options?: {
  directory?: string;
  service?: string;
  /** One or two keys, separated by a comma; by default "model_id". */
  labels?: string;
  /** "windows" (default), or the probability with which each operator is recorded. */
  sampling?: 'windows' | number;
}): void;
