import { type JsonCursor, readMemberOf, readText } from '#json';
import type { RequestNotes } from '#otel/record';

/** The parameters of a request that are no text. */
export type RequestParameters = NonNullable<RequestNotes['parameters']>;

type Parameter = keyof RequestParameters;

/** The numbers of a body that spans have, by their member. Every API writes them alike. */
const NUMBERS: ReadonlyMap<string, Parameter> = new Map([
  ['temperature', 'temperature'],
  ['top_p', 'topP'],
  ['top_k', 'topK'],
  ['frequency_penalty', 'frequencyPenalty'],
  ['presence_penalty', 'presencePenalty'],
  ['seed', 'seed'],
]);

/** The types of output that clients ask for, in the words of the conventions. Any other word may be text. */
const OUTPUT_TYPES: ReadonlyMap<string | undefined, 'text' | 'json'> = new Map([
  ['text', 'text'],
  ['json_object', 'json'],
  ['json_schema', 'json'],
]);

/** For the longest of them as it is written. */
const MAX_TYPE_BYTES = 64;

/** Reads the parameters of a body on the way. */
export class ParametersReader {
  #values: { -readonly [Name in Parameter]?: RequestParameters[Name] } | null = null;

  /** Null: there are none. `choices`: how many were asked for. */
  read(choices: number | undefined): RequestParameters | null {
    if (choices !== undefined && choices !== 1) this.#set('choiceCount', choices);
    return this.#values;
  }

  /** Reads the value at the cursor if the member is a parameter; else skips it. Of duplicate members the last one counts. */
  readOrSkip(cursor: JsonCursor, member: string): void {
    const number = NUMBERS.get(member);
    if (number !== undefined) this.#set(number, readNumber(cursor, number === 'seed'));
    else if (member === 'response_format') this.#set('outputType', readType(cursor));
    else if (member === 'text') this.#set('outputType', readMemberOf(cursor, 'format', readType));
    else cursor.skip();
  }

  #set<Name extends Parameter>(name: Name, value: RequestParameters[Name]): void {
    if (value === undefined && this.#values === null) return;
    this.#values ??= {};
    this.#values[name] = value;
  }
}

function readNumber(cursor: JsonCursor, isWhole: boolean): number | undefined {
  if (cursor.peek() !== 'number') {
    cursor.skip();
    return undefined;
  }
  const value = cursor.readNumber();
  // Adding zero turns -0 into 0.
  return isWhole && !Number.isSafeInteger(value) ? undefined : Number.isFinite(value) ? value + 0 : undefined;
}

function readType(cursor: JsonCursor): 'text' | 'json' | undefined {
  return OUTPUT_TYPES.get(readMemberOf(cursor, 'type', (value) => readText(value, MAX_TYPE_BYTES)));
}
