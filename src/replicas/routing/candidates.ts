/** What a choice looks at: the candidates of one request, by their places. */
export interface Candidates {
  /** Whether it can be taken: it was not tried for this request, and is not full. */
  isOpen(place: number): boolean;
  /** Requests in flight on it, of all workers. */
  inflightAt(place: number): number;
  /** 32 bits that are its own, the same in every gateway. */
  seedAt(place: number): number;
}
