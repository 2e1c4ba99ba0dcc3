import type { StreamChunk } from './stream-chunk.ts';
import { rangeOfMember, type UndoRules } from './undo-usage.ts';

/** A finishing event that waits for the member which its engine moved to the usage chunk. */
export interface HeldEvent {
  readonly bytes: Buffer;
  /** Where that goes in `bytes`; null if it needs no member. */
  readonly splice: SplicePlace | null;
}

/** Before another member, or as the last one. */
interface SplicePlace {
  readonly at: number;
  readonly isLast: boolean;
}

/** A complete event, `bytes[start, end)`. `isInPlace`: offsets into its data are offsets into `bytes`. */
export interface WholeEvent {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly isInPlace: boolean;
}

/** Holds an event, without its usage if that is to be cut. */
export function holdEvent(
  { bytes, start, end, isInPlace }: WholeEvent,
  chunk: StreamChunk,
  { movedMember }: UndoRules,
  cutsUsage: boolean,
): HeldEvent {
  const isMissing = movedMember !== null && chunk.members[movedMember] === null;
  // Data over several lines, which no engine is known to send, is held as it is.
  const splice = isMissing && isInPlace ? placeOf(movedMember, chunk, start) : null;
  if (!cutsUsage || chunk.usageMember === null || !isInPlace) {
    return { bytes: bytes.subarray(start, end), splice };
  }
  const cut = rangeOfMember(bytes, chunk.usageMember);
  const isBefore = splice !== null && cut.start - start < splice.at;
  return {
    bytes: Buffer.concat([bytes.subarray(start, cut.start), bytes.subarray(cut.end, end)]),
    splice: isBefore ? { ...splice, at: splice.at - (cut.end - cut.start) } : splice,
  };
}

/** llama.cpp writes `timings` before what `verbose` adds; every other member was the last. */
function placeOf(
  movedMember: UndoRules['movedMember'],
  { members, closingBrace }: StreamChunk,
  eventStart: number,
): SplicePlace {
  const next = movedMember === 'timings' ? members.verbose : null;
  if (next !== null) return { at: next.start - eventStart, isLast: false };
  return { at: closingBrace - eventStart, isLast: true };
}

/** The pieces of an event with a member put in. */
export function spliceMember(bytes: Buffer, { at, isLast }: SplicePlace, member: Buffer): readonly Buffer[] {
  const added = isLast ? [COMMA, member] : [member, COMMA];
  return [bytes.subarray(0, at), ...added, bytes.subarray(at)];
}

const COMMA = Buffer.from(',');
