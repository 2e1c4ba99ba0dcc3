/** How many members and elements, on all levels together, a reader may read before it has to ask again. */
export interface MemberAllowance {
  readonly count: number;
  /** The count is used up. If it returns, as many more may be read. If it throws, reading ends. */
  onSpent(): void;
}

/** A text has more members and elements than the reader may read. It may or may not be JSON. */
export class MemberLimitError extends Error {
  override readonly name = 'MemberLimitError';
}

/** Allows this many. One more throws a MemberLimitError. */
export function allowAtMost(count: number): MemberAllowance {
  return {
    count,
    onSpent() {
      throw new MemberLimitError();
    },
  };
}

/** Allows any number. */
export const UNBOUNDED: MemberAllowance = { count: 2 ** 30, onSpent() {} };
