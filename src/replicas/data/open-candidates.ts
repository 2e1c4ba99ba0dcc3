import type { CandidateSet, Candidates } from '#replicas/routing';
import type { Replica } from './replica.ts';

/** What the choice of a replica depends on, besides the replicas. */
export interface PickContext {
  /** The replicas that have failed this request, or that it is not for. */
  readonly tried: Pick<ReadonlySet<Replica>, 'has' | 'size'>;
  /** Stands for the beginning of the request's text; null where the policy does not use it. */
  readonly prefixKey: number | null;
  /** The request's ticket if it waits for a replica with room; else null. */
  readonly ticket: number | null;
  /** Whether it is for the one replica that was not tried, and those tried have not failed it. */
  readonly isForOne?: boolean;
}

/** The candidates as one request sees them. */
export class OpenCandidates implements Candidates {
  readonly #replicas: readonly Replica[];
  readonly #context: PickContext;
  readonly #isLimited: boolean;

  constructor(replicas: readonly Replica[], context: PickContext, isLimited: boolean) {
    this.#replicas = replicas;
    this.#context = context;
    this.#isLimited = isLimited;
  }

  isOpen(index: number): boolean {
    const replica = this.#replicas[index];
    if (replica === undefined || this.#context.tried.has(replica)) return false;
    return !this.#isLimited || replica.hasRoomFor(this.#context.ticket);
  }

  inflightAt(index: number): number {
    return this.#replicas[index]?.inflight ?? 0;
  }

  seedAt(index: number): number {
    return this.#replicas[index]?.seed ?? 0;
  }

  evenSharesOf({ size }: CandidateSet): number {
    return size;
  }

  /** What the request begins with; null where the policy does not use it. */
  get prefixKey(): number | null {
    return this.#context.prefixKey;
  }
}
