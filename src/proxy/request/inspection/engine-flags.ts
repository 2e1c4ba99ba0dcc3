import type { JsonCursor } from '#json';
import type { Engine } from '#replicas/terms';

/**
 * What a request says where engines expect a boolean: the JSON value if it is a scalar, a string only up to the length
 * of `false`. Undefined: the member is absent.
 */
export type Flag = boolean | number | string | null | undefined;

/** Stands for a value that no engine reads as a boolean: a list, an object, a longer string. */
const NO_FLAG = '?';

/** The length of the longest string that an engine reads as a boolean: `false`. */
const MAX_FLAG_CHARS = 5;

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

/** A character takes at most six bytes as an escape. */
const MAX_WRITTEN_FLAG_BYTES = 6 * MAX_FLAG_CHARS;

/** Reads the value at the cursor. What no engine reads as a flag is `NO_FLAG`. */
export function readRawFlag(cursor: JsonCursor): Flag {
  switch (cursor.peek()) {
    case 'true':
    case 'false':
      return cursor.readBoolean();
    case 'null':
      cursor.readNull();
      return null;
    case 'number':
      return cursor.readNumber();
    case 'string': {
      const hasEscapes = cursor.readStringSpan();
      if (cursor.valueEnd - cursor.valueStart > MAX_WRITTEN_FLAG_BYTES) return NO_FLAG;
      const text = cursor.decodeString(hasEscapes);
      return text.length > MAX_FLAG_CHARS ? NO_FLAG : text;
    }
    default:
      cursor.skip();
      return NO_FLAG;
  }
}
