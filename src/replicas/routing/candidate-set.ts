/** What a choice looks at: the candidates of one request, by their places. */
export interface Candidates {
  /** Whether it can be taken: it was not tried for this request, and is not full. */
  isOpen(place: number): boolean;
  /** Requests in flight on it, of all workers. */
  inflightAt(place: number): number;
  /** 32 bits that are its own, the same in every gateway. */
  seedAt(place: number): number;
}

/**
 * Some of the places 0 to count − 1, in a circle. The next one is found at once, however many others lie between.
 */
export class CandidateSet {
  /** How many places are in it. */
  readonly size: number;
  /** For each place the first at or after it, going round, that is in the circle; empty if none is. */
  readonly #nextFrom: Int32Array;

  constructor(count: number, has: (place: number) => boolean) {
    const members: number[] = [];
    for (let place = 0; place < count; place++) if (has(place)) members.push(place);
    this.size = members.length;
    this.#nextFrom = new Int32Array(members.length === 0 ? 0 : count);
    let filled = 0;
    for (const member of members) {
      this.#nextFrom.fill(member, filled, member + 1);
      filled = member + 1;
    }
    this.#nextFrom.fill(members[0] ?? 0, filled);
  }

  /** The first place in the circle at or after `place`, which may lie beyond the last one. -1 if it is empty. */
  from(place: number): number {
    return this.#nextFrom[place % this.#nextFrom.length] ?? -1;
  }

  /** The first place in the circle behind `place`. -1 if it is empty. */
  after(place: number): number {
    return this.from(place + 1);
  }
}
