import type { TenantKind } from '#access/limits';
import { waitAtMost } from '#otel/base';
import type { JwtAuthority } from '../client-access.ts';
import type { WorkerQuestion } from './messages.ts';

/** How long a worker waits for the main thread, which may read keys for 5 s. */
const ANSWER_TIMEOUT_MS = 6_000;

/** The questions of a worker to the main thread, and their answers. */
export class Questions implements JwtAuthority {
  readonly #ask: (id: number, question: WorkerQuestion) => void;
  readonly #open = new Map<number, (result: number | null) => void>();
  #lastId = 0;

  /** @param ask sends a question; its answer is for `receive` */
  constructor(ask: (id: number, question: WorkerQuestion) => void) {
    this.#ask = ask;
  }

  receive(id: number, result: number | null): void {
    this.#open.get(id)?.(result);
  }

  async refreshKeys(): Promise<void> {
    await this.#put({ kind: 'refreshKeys' });
  }

  limitRowOf(of: TenantKind, tenant: string): Promise<number | null> {
    return this.#put({ kind: 'limitRowOf', of, tenant });
  }

  /** Null, too, if the main thread does not answer in time. */
  async #put(question: WorkerQuestion): Promise<number | null> {
    const id = ++this.#lastId;
    const { promise, resolve } = Promise.withResolvers<number | null>();
    this.#open.set(id, resolve);
    this.#ask(id, question);
    try {
      return await waitAtMost(ANSWER_TIMEOUT_MS, promise);
    } finally {
      this.#open.delete(id);
    }
  }
}
