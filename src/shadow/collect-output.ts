import { itemsOf, memberOf } from '#base/parsed';

/** Receives what an answer, or an event of one, has of output. */
export interface OutputParts {
  text(text: string): void;
  /** `index`: the place of the call among those of the answer; null: the next one, or that which goes on. */
  call(index: number | null, name: unknown, args: unknown): void;
}

/** The members of a message, or of what has come of one, that are text. */
const TEXTS = ['content', 'reasoning', 'reasoning_content', 'refusal', 'text', 'thinking'] as const;

/**
 * Finds the output in parsed JSON: of a whole answer, or of one event of a stream; in the style of chat completions,
 * completions, messages or responses. What is of no such style has none.
 */
export function collectOutput(json: unknown, parts: OutputParts): void {
  for (const choice of itemsOf(json, 'choices')) {
    addText(memberOf(choice, 'text'), parts);
    addMessage(memberOf(choice, 'delta') ?? memberOf(choice, 'message'), parts);
  }
  // A whole message, and a whole response.
  for (const block of itemsOf(json, 'content')) addBlock(block, parts);
  for (const item of itemsOf(json, 'output')) addBlock(item, parts);
  // Events of a message, and of a response.
  addBlock(memberOf(json, 'content_block'), parts);
  addBlock(memberOf(json, 'item'), parts);
  const delta = memberOf(json, 'delta');
  if (typeof delta !== 'string') addBlock(delta, parts);
  else if (String(memberOf(json, 'type')).includes('arguments')) parts.call(null, undefined, delta);
  else addText(delta, parts);
}

function addMessage(message: unknown, parts: OutputParts): void {
  for (const name of TEXTS) addText(memberOf(message, name), parts);
  for (const block of itemsOf(message, 'content')) addBlock(block, parts);
  for (const [place, call] of itemsOf(message, 'tool_calls').entries()) {
    const index = memberOf(call, 'index');
    const called = memberOf(call, 'function');
    const args = memberOf(called, 'arguments');
    parts.call(typeof index === 'number' ? index : place, memberOf(called, 'name'), args);
  }
  const called = memberOf(message, 'function_call');
  if (called != null) parts.call(0, memberOf(called, 'name'), memberOf(called, 'arguments'));
}

/** A block of a message or an item of a response, whole or what has come of it. */
function addBlock(block: unknown, parts: OutputParts): void {
  const type = memberOf(block, 'type');
  if (type === 'tool_use' || type === 'function_call') {
    const input = memberOf(block, 'input');
    const text = memberOf(block, 'arguments') ?? (isEmpty(input) ? '' : JSON.stringify(input));
    parts.call(NEXT, memberOf(block, 'name'), text);
    return;
  }
  const partial = memberOf(block, 'partial_json');
  if (typeof partial === 'string') parts.call(null, undefined, partial);
  addMessage(block, parts);
}

/** Stands for the next call. */
export const NEXT = -1;

/** A call whose arguments follow in later events begins with none. */
function isEmpty(input: unknown): boolean {
  return typeof input !== 'object' || input === null || Object.keys(input).length === 0;
}

function addText(value: unknown, parts: OutputParts): void {
  if (typeof value === 'string' && value !== '') parts.text(value);
}
