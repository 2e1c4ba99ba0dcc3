/** Numbers as ranges, in the order in which they were added. Successive numbers take no memory. */
export class SeqRanges {
  readonly #ranges: { first: number; last: number }[] = [];

  /** How many ranges there are. */
  get count(): number {
    return this.#ranges.length;
  }

  /** Adds the numbers from `first` to `last`. */
  add(first: number, last = first): void {
    if (last < first) return;
    const latest = this.#ranges.at(-1);
    if (latest !== undefined && latest.last + 1 === first) latest.last = last;
    else this.#ranges.push({ first, last });
  }

  /** `5`, `7-9`. */
  toTexts(): readonly string[] {
    return this.#ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`));
  }
}
