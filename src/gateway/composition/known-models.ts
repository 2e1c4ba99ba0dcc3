import { toShownName } from '#otel/base';
import type { PoolSnapshot } from '#replicas/terms';

/** The models of the replicas, in the form that records have. */
export class KnownModels {
  #names: ReadonlySet<string> = new Set();

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /** Takes those of the replicas that are in use now. */
  take({ cursors }: PoolSnapshot): void {
    this.#names = new Set(Array.from(cursors.keys(), (model) => toShownName(model)));
  }
}
