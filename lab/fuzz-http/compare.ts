import type { LlhttpReading } from './read-llhttp.ts';
import { readWithLlhttp } from './read-llhttp.ts';
import type { Input, Reading, ReadMessage } from './read-message.ts';
import { readWithOurs } from './read-ours.ts';

/** The results of both parsers for one input. `difference` says what is wrong; null: nothing. */
export interface Comparison {
  readonly verdict: 'accepted' | 'refused_by_us' | 'refused_by_both' | 'incomplete';
  readonly difference: string | null;
}

/**
 * Reads the same bytes with both parsers. llhttp must accept what ours accepts, and both must read the same messages with
 * the same ends. Ours must read the same wherever the reads are cut.
 */
export function compare(input: Input): Comparison {
  const ours = readWithOurs(input);
  const theirs = readWithLlhttp(input);
  const difference = differenceOfCuts(input, ours) ?? differenceOf(input, ours, theirs);
  return { verdict: toVerdict(ours, theirs), difference };
}

function toVerdict(ours: Reading, theirs: Reading): Comparison['verdict'] {
  const acceptedCount = countWhole(ours);
  if (ours.isRefused) {
    if (countWhole(theirs) > acceptedCount) return 'refused_by_us';
    if (acceptedCount === 0) return 'refused_by_both';
  }
  return acceptedCount > 0 ? 'accepted' : 'incomplete';
}

function countWhole({ messages }: Reading): number {
  return messages.filter(({ isWhole }) => isWhole).length;
}

function differenceOfCuts(input: Input, ours: Reading): string | null {
  if (input.cuts.length === 1) return null;
  const uncut = readWithOurs({ ...input, cuts: [input.bytes.length] });
  if (uncut.isRefused !== ours.isRefused) return 'what is refused depends on how it was cut';
  if (uncut.messages.length !== ours.messages.length) return 'the messages depend on the cuts';
  for (const [index, message] of ours.messages.entries()) {
    const other = uncut.messages[index];
    if (other === undefined) return `message ${index} depends on how it was cut`;
    const part = differingPart(message, other);
    if (part !== null) return `the ${part} of message ${index} depends on how it was cut`;
    if (message.endOffset !== other.endOffset) return `the end of message ${index} depends on how it was cut`;
  }
  return null;
}

function differingPart(one: ReadMessage, other: ReadMessage): string | null {
  if (one.start !== other.start) return 'start';
  if (!isSameList(one.fields, other.fields)) return 'fields';
  if (one.isWhole !== other.isWhole) return 'wholeness';
  if (one.body !== other.body) return 'body';
  if (!isSameList(one.trailers, other.trailers)) return 'trailers';
  return null;
}

function isSameList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((entry, index) => entry === other[index]);
}

function differenceOf(input: Input, ours: Reading, theirs: LlhttpReading): string | null {
  for (const [index, message] of ours.messages.entries()) {
    const other = theirs.messages[index];
    if (other === undefined) return `llhttp refuses the head of message ${index}`;
    const difference = differenceOfMessage(message, other, ours.isRefused || theirs.isRefused);
    if (difference !== null) return `${difference} of message ${index}`;
    if (isLast(other)) return differenceOfEnd(input, message, index + 1);
  }
  const last = ours.messages.at(-1);
  return last === undefined ? null : differenceOfEnd(input, last, ours.messages.length);
}

/** `isRefused`: one of the parsers has refused the rest of the bytes, so that this message may lack its end. */
function differenceOfMessage(message: ReadMessage, other: ReadMessage, isRefused: boolean): string | null {
  if (message.keepsAlive && !other.keepsAlive && !isLast(other))
    return 'llhttp closes the connection because';
  if (message.isWhole || !isRefused) {
    const part = differingPart(message, other);
    return part === null ? null : `llhttp reads another ${part}`;
  }
  if (message.start !== other.start) return 'llhttp reads another start';
  if (!isSameList(message.fields, other.fields)) return 'llhttp reads other fields';
  return other.body.startsWith(message.body) ? null : 'llhttp reads another beginning of the body';
}

/**
 * Whether llhttp may stop after a message that leaves the connection open: it takes what follows an upgrade for another
 * protocol, and Proxy-Connection, which is in no RFC, for Connection.
 */
function isLast({ isUpgrade, fields, trailers }: ReadMessage): boolean {
  return isUpgrade || hasProxyConnection(fields) || hasProxyConnection(trailers);
}

function hasProxyConnection(flatFields: readonly string[]): boolean {
  return flatFields.some((name, index) => index % 2 === 0 && name.toLowerCase() === 'proxy-connection');
}

/** Null if llhttp finds the end of the last accepted message where we find it. */
function differenceOfEnd(input: Input, last: ReadMessage, messageCount: number): string | null {
  if (!last.isWhole) return null;
  const prefix = readWithLlhttp({ ...input, bytes: input.bytes.subarray(0, last.endOffset) });
  if (prefix.isRefused) return 'llhttp refuses the messages that we accept';
  const isSame =
    prefix.readBytes === last.endOffset &&
    prefix.begunCount === messageCount &&
    countWhole(prefix) === messageCount;
  return isSame ? null : 'llhttp finds other ends of the messages that we accept';
}
