import { rangeOfMember, type UndoRules } from '../undo-usage.ts';
import type { StreamChunk } from './stream-chunk.ts';

/** A finishing event that waits for a member that its engine moved to the usage chunk. */
export interface HeldEvent {
  readonly bytes: Buffer;
  /** Where the member goes in `bytes`; null if none is missing. */
  readonly splice: SplicePlace | null;
}

/** A place before another member, or after the last one. */
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

/** Holds an event, without its usage if `cutsUsage`. */
export function holdEvent(
  { bytes, start, end, isInPlace }: WholeEvent,
  chunk: StreamChunk,
  { movedMember }: UndoRules,
  cutsUsage: boolean,
): HeldEvent {
  const isMissing = movedMember !== null && chunk.members[movedMember] === null;
  // Data of several lines is held unchanged. No known engine sends it.
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

/** llama.cpp writes `timings` before `__verbose`. Every other moved member is the last one. */
function placeOf(
  movedMember: UndoRules['movedMember'],
  { members, closingBrace }: StreamChunk,
  eventStart: number,
): SplicePlace {
  const next = movedMember === 'timings' ? members.verbose : null;
  if (next !== null) return { at: next.start - eventStart, isLast: false };
  return { at: closingBrace - eventStart, isLast: true };
}

/** The pieces of an event with a member inserted. */
export function spliceMember(bytes: Buffer, { at, isLast }: SplicePlace, member: Buffer): readonly Buffer[] {
  const added = isLast ? [COMMA, member] : [member, COMMA];
  return [bytes.subarray(0, at), ...added, bytes.subarray(at)];
}

const COMMA = Buffer.from(',');
