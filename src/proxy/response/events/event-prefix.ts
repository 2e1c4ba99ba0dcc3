import { MemberScanner, type WantedMembers } from '#json';
import type { UndoRules } from '../undo-usage.ts';

const DATA_FIELD = Buffer.from('data:');
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const OPEN_BRACE = 0x7b;
const SPACE = 0x20;
const TAB = 0x09;

/**
 * Reads the first bytes of an event as they come, each once. Tells whether they already show that the event will pass
 * unchanged: its data is not a JSON object, or it has a choice and the rules touch nothing but the usage chunk.
 */
export class EventPrefix {
  readonly #passesChoices: boolean;
  #state: 'field' | 'value' | 'object' | 'passes' | 'undecided' = 'field';
  #seenBytes = 0;
  readonly #wanted: WantedMembers;
  #scanner: MemberScanner;

  /** @param list the name of the list of choices */
  constructor({ movedMember, cutUsage, cutsTimings }: UndoRules, list: string | null) {
    this.#wanted = { members: [], list, itemMembers: [] };
    this.#scanner = new MemberScanner(this.#wanted);
    this.#passesChoices = movedMember === null && cutUsage === 'never' && !cutsTimings;
  }

  /** Another event begins. */
  reset(): void {
    if (this.#state === 'field') return;
    this.#scanner = new MemberScanner(this.#wanted);
    this.#state = 'field';
    this.#seenBytes = 0;
  }

  /** Takes the event's bytes so far: those of the last call, and more after them. */
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
    // More white space may precede the object than the one space that belongs to the field.
    while (bytes[this.#seenBytes] === SPACE || bytes[this.#seenBytes] === TAB) this.#seenBytes++;
    const first = bytes[this.#seenBytes];
    if (first === undefined) return;
    if (first === LINE_FEED || first === CARRIAGE_RETURN) this.#state = 'undecided';
    else if (first !== OPEN_BRACE) this.#state = 'passes';
    else this.#state = this.#passesChoices ? 'object' : 'undecided';
  }

  /** An object that continues in another data line stays undecided until the event is complete. */
  #readObject(bytes: Buffer): void {
    const added = bytes.subarray(this.#seenBytes);
    this.#seenBytes = bytes.length;
    const line = firstLineOf(added);
    this.#scanner.push(line);
    if (this.#scanner.hasBegunItem) this.#state = 'passes';
    else if (line.length < added.length) this.#state = 'undecided';
  }
}

function firstLineOf(bytes: Buffer): Buffer {
  const ends = [bytes.indexOf(LINE_FEED), bytes.indexOf(CARRIAGE_RETURN)].filter((at) => at !== -1);
  return ends.length === 0 ? bytes : bytes.subarray(0, Math.min(...ends));
}
