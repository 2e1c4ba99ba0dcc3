/** What a policy may ask about the candidates of one request, by index. */
export interface Candidates {
  /** Whether it can take the request: it was not tried for it and is not full. */
  isOpen(index: number): boolean;
  /** Requests in flight on it, of all workers. */
  inflightAt(index: number): number;
  /** 32 bits that identify it, the same in every gateway. */
  seedAt(index: number): number;
  /** How many even parts of the requests the members of a set take: their number, unless some are on a ramp. */
  evenSharesOf(set: CandidateSet): number;
}

/**
 * A subset of the indices 0 to count − 1, in a circle. The next member is found in one step, however many indices lie
 * between.
 */
export class CandidateSet {
  readonly size: number;
  /** For each index the first member at or after it, in a circle; no elements if the set is empty. */
  readonly #nextFrom: Int32Array;

  constructor(count: number, has: (index: number) => boolean) {
    const members: number[] = [];
    for (let index = 0; index < count; index++) if (has(index)) members.push(index);
    this.size = members.length;
    this.#nextFrom = new Int32Array(members.length === 0 ? 0 : count);
    let filled = 0;
    for (const member of members) {
      this.#nextFrom.fill(member, filled, member + 1);
      filled = member + 1;
    }
    this.#nextFrom.fill(members[0] ?? 0, filled);
  }

  /** The first member at or after an index, which may be `count` or more; -1 if the set is empty. */
  from(index: number): number {
    return this.#nextFrom[index % this.#nextFrom.length] ?? -1;
  }

  /** The first member after an index; -1 if the set is empty. */
  after(index: number): number {
    return this.from(index + 1);
  }
}
