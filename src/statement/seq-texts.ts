/** Numbers from `first` to `last`, both included. */
export interface SeqRange {
  readonly first: number;
  readonly last: number;
}

/** Numbers in their order as texts: `5`, `7-9`. */
export function toSeqTexts(seqs: Iterable<number>): readonly string[] {
  const ranges: { first: number; last: number }[] = [];
  for (const seq of seqs) {
    const latest = ranges.at(-1);
    if (latest !== undefined && latest.last + 1 === seq) latest.last = seq;
    else if (latest?.last !== seq) ranges.push({ first: seq, last: seq });
  }
  return ranges.map(toSeqText);
}

/** `5`, or `7-9`. */
export function toSeqText({ first, last }: SeqRange): string {
  return first === last ? `${first}` : `${first}-${last}`;
}

/** Parses what `toSeqTexts` returns; null: it is something else, or its numbers do not grow. */
export function parseSeqTexts(texts: readonly string[]): readonly SeqRange[] | null {
  let before = 0;
  const ranges: SeqRange[] = [];
  for (const text of texts) {
    const [, firstText, lastText = firstText] = /^([1-9]\d{0,14})(?:-([1-9]\d{0,14}))?$/.exec(text) ?? [];
    const [first, last] = [Number(firstText), Number(lastText)];
    if (!(first > before && last >= first)) return null;
    ranges.push({ first, last });
    before = last;
  }
  return ranges;
}

/** How many numbers ranges have. */
export function countSeqs(ranges: readonly SeqRange[]): number {
  return ranges.reduce((sum, { first, last }) => sum + last - first + 1, 0);
}
