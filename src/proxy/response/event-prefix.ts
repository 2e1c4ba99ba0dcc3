import { JsonSkimmer } from '../../json/skim.ts';
import type { UndoRules } from './undo-usage.ts';

const DATA_FIELD = Buffer.from('data:');
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const OPEN_BRACE = 0x7b;
const SPACE = 0x20;
const TAB = 0x09;

/**
 * Looks at the first bytes of an event as they come, each once, and tells whether they already show that it will pass
 * as it is: its data is no JSON object, or it has a choice and the rules touch nothing but the usage chunk.
 */
export class EventPrefix {
  readonly #passesChoices: boolean;
  #state: 'field' | 'value' | 'object' | 'passes' | 'undecided' = 'field';
  #seenBytes = 0;
  #skimmer = new JsonSkimmer([]);

  constructor({ movedMember, cutUsage }: UndoRules) {
    this.#passesChoices = movedMember === null && cutUsage === 'never';
  }

  /** Another event begins. */
  reset(): void {
    if (this.#state === 'field') return;
    this.#skimmer = new JsonSkimmer([]);
    this.#state = 'field';
    this.#seenBytes = 0;
  }

  /** Takes the event's bytes so far: those of the last call, and more behind them. */
  showsPass(bytes: Buffer): boolean {
    if (this.#state === 'field') this.#readField(bytes);
    if (this.#state === 'value') this.#readValue(bytes);
    if (this.#state === 'object') this.#readObject(bytes);
    return this.#state === 'passes';
  }

  #readField(bytes: Buffer): void {
    if (bytes.length < DATA_FIELD.length) return;
    const isData = bytes.subarray(0, DATA_FIELD.length).equals(DATA_FIELD);
    this.#state = isData ? 'value' : 'undecided';
    this.#seenBytes = DATA_FIELD.length;
  }

  #readValue(bytes: Buffer): void {
    // More than the one space that belongs to the field may stand before the object.
    while (bytes[this.#seenBytes] === SPACE || bytes[this.#seenBytes] === TAB) this.#seenBytes++;
    const first = bytes[this.#seenBytes];
    if (first === undefined) return;
    if (first === LINE_FEED || first === CARRIAGE_RETURN) this.#state = 'undecided';
    else if (first !== OPEN_BRACE) this.#state = 'passes';
    else this.#state = this.#passesChoices ? 'object' : 'undecided';
  }

  /** An object that goes on in another line is left for when the event is whole. */
  #readObject(bytes: Buffer): void {
    const added = bytes.subarray(this.#seenBytes);
    this.#seenBytes = bytes.length;
    const line = firstLineOf(added);
    this.#skimmer.push(line);
    if (this.#skimmer.hasBegunChoice) this.#state = 'passes';
    else if (line.length < added.length) this.#state = 'undecided';
  }
}

function firstLineOf(bytes: Buffer): Buffer {
  const ends = [bytes.indexOf(LINE_FEED), bytes.indexOf(CARRIAGE_RETURN)].filter((at) => at !== -1);
  return ends.length === 0 ? bytes : bytes.subarray(0, Math.min(...ends));
}
