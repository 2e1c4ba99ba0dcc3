import type { Engine } from '../../../config/config.ts';

/**
 * What a request says where engines expect a boolean: the JSON value if it is a scalar, a string only up to the length
 * of `false`. Undefined: the member is absent.
 */
export type Flag = boolean | number | string | null | undefined;

/** Stands for a value that no engine reads as a boolean: a list, an object, a longer string. */
export const NO_FLAG = '?';

/** The length of the longest string that an engine reads as a boolean: `false`. */
export const MAX_FLAG_CHARS = 5;

/** pydantic's lax mode, case-insensitive (pydantic-core, `str_as_bool`). */
const TRUE_STRINGS: ReadonlySet<string> = new Set(['1', 't', 'y', 'on', 'yes', 'true']);
const FALSE_STRINGS: ReadonlySet<string> = new Set(['0', 'f', 'n', 'no', 'off', 'false']);

/**
 * How an engine reads a boolean member that defaults to false. `refused`: it answers with an error, or its behaviour
 * is unknown.
 */
export function readFlag(flag: Flag, engine: Engine): boolean | 'refused' {
  if (typeof flag === 'boolean') return flag;
  if (flag === undefined) return false;
  // The field is not an Option (huggingface/text-generation-inference, router/src/lib.rs).
  if (flag === null) return engine === 'tgi' ? 'refused' : false;
  return isPydantic(engine) ? readLaxly(flag) : 'refused';
}

/** Whether the engine reads requests with pydantic's lax rules. */
export function isPydantic(engine: Engine): boolean {
  return engine === 'vllm' || engine === 'sglang';
}

function readLaxly(flag: number | string): boolean | 'refused' {
  if (typeof flag === 'number') return flag === 1 || (flag === 0 ? false : 'refused');
  const text = flag.toLowerCase();
  return TRUE_STRINGS.has(text) || (FALSE_STRINGS.has(text) ? false : 'refused');
}
