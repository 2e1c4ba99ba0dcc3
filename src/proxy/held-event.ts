import type { StreamChunk } from './stream-chunk.ts';
import { rangeOfMember, type UndoRules } from './undo-usage.ts';

/** A finishing event that waits for the member which its engine moved to the usage chunk. */
export interface HeldEvent {
  readonly bytes: Buffer;
  /** Offset of its closing brace in `bytes`, or null if it needs no member. */
  readonly spliceAt: number | null;
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
  const spliceAt = isMissing && isInPlace ? chunk.closingBrace - start : null;
  if (!cutsUsage || chunk.usageMember === null || !isInPlace) {
    return { bytes: bytes.subarray(start, end), spliceAt };
  }
  const cut = rangeOfMember(bytes, chunk.usageMember);
  return {
    bytes: Buffer.concat([bytes.subarray(start, cut.start), bytes.subarray(cut.end, end)]),
    spliceAt: spliceAt === null ? null : spliceAt - (cut.end - cut.start),
  };
}

/** The pieces of an event with a member put in before its closing brace. */
export function spliceMember(bytes: Buffer, spliceAt: number, member: Buffer): readonly Buffer[] {
  return [bytes.subarray(0, spliceAt), COMMA, member, bytes.subarray(spliceAt)];
}

const COMMA = Buffer.from(',');
