import { parseJson } from '#base/parsed';

/** More text of the arguments of one call is not looked at. */
const MAX_ARGUMENT_CHARS = 64 * 1024;
const MAX_CALLS = 128;

interface Call {
  name: string;
  /** Its arguments as they come. They are forgotten when the answer is over. */
  text: string;
}

/** What calls of tools look like: how many, of which names, with which members. Values of arguments are no part of it. */
export class ToolShape {
  readonly #calls = new Map<number, Call>();

  /** Takes what an answer says of a call: `index` is its place among the calls. */
  add(index: number, name: unknown, text: unknown): void {
    if (this.#calls.size >= MAX_CALLS && !this.#calls.has(index)) return;
    const call = this.#calls.get(index) ?? { name: '', text: '' };
    this.#calls.set(index, call);
    if (typeof name === 'string') call.name += name;
    if (typeof text === 'string' && call.text.length < MAX_ARGUMENT_CHARS) call.text += text;
  }

  /** The number that the next call gets. */
  get size(): number {
    return this.#calls.size;
  }

  /** The shape in one line; null: nothing is called. It holds names: compare it, and forget it. */
  end(): { readonly shape: string; readonly isBroken: boolean } | null {
    if (this.#calls.size === 0) return null;
    const calls = [...this.#calls].toSorted(([a], [b]) => a - b).map(([, call]) => call);
    this.#calls.clear();
    const members = calls.map(({ name, text }) => [name, toMembers(text)] as const);
    return { shape: JSON.stringify(members), isBroken: members.some(([, names]) => names === false) };
  }
}

/** The names of the members of an object, in their order in the alphabet; false: the text is not one JSON object. */
function toMembers(text: string): readonly string[] | false {
  const parsed = parseJson(text === '' ? '{}' : text);
  const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
  return isObject ? Object.keys(parsed).sort() : false;
}
