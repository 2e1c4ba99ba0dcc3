/** How many members and elements, on all levels together, a reader may go over before it has to ask again. */
export interface MemberAllowance {
  readonly count: number;
  /** These are used up. Returns if as many more may be read; what it throws ends the reading. */
  onSpent(): void;
}

/** A text has more members and elements than the reader was to go over. Says nothing of whether it is JSON. */
export class MemberLimitError extends Error {
  override readonly name = 'MemberLimitError';
}

/** So many and no more: what goes beyond is a MemberLimitError. */
export function allowAtMost(count: number): MemberAllowance {
  return {
    count,
    onSpent() {
      throw new MemberLimitError();
    },
  };
}

/** As many as there are. */
export const UNBOUNDED: MemberAllowance = { count: 2 ** 30, onSpent() {} };
