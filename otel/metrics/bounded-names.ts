/** The name for all names without their own series (semantic conventions, `error.type` and others). */
const OTHER = '_OTHER';

/**
 * Bounds the names that clients choose. A name is kept if it is known, or if it is one of the first `maxCount` other
 * names with which a request succeeded. Any other name becomes `_OTHER`.
 */
export class BoundedNames {
  readonly #isKnown: (name: string) => boolean;
  readonly #maxCount: number;
  readonly #admitted = new Set<string>();

  constructor(maxCount: number, isKnown: (name: string) => boolean = () => false) {
    this.#isKnown = isKnown;
    this.#maxCount = maxCount;
  }

  /** The name, or `_OTHER`; undefined stays undefined. Only a request that succeeded admits a new name. */
  toLabel(name: string | undefined, hasSucceeded: boolean): string | undefined {
    if (name === undefined || this.#admitted.has(name) || this.#isKnown(name)) return name;
    if (!hasSucceeded || this.#admitted.size >= this.#maxCount) return OTHER;
    this.#admitted.add(name);
    return name;
  }
}
