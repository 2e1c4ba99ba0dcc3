/** Notices that a count has grown since the last look. */
export class Growth {
  #last = 0;

  hasGrown(count: number): boolean {
    const hasGrown = count > this.#last;
    this.#last = count;
    return hasGrown;
  }
}
