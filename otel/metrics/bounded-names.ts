/** What stands for every name that gets no series of its own (semantic conventions, `error.type` and others). */
const OTHER = '_OTHER';

/**
 * Keeps names that clients choose from growing the metrics. A name is passed on if it is known, or if it is one of
 * the first `maxCount` others that a request succeeded with; any other is `_OTHER`.
 */
export class BoundedNames {
  readonly #isKnown: (name: string) => boolean;
  readonly #maxCount: number;
  readonly #admitted = new Set<string>();

  constructor(maxCount: number, isKnown: (name: string) => boolean = () => false) {
    this.#maxCount = maxCount;
    this.#isKnown = isKnown;
  }

  /** The name, or `_OTHER`; undefined stays so. Only a name with which a request succeeded takes a place. */
  toLabel(name: string | undefined, hasSucceeded: boolean): string | undefined {
    if (name === undefined || this.#admitted.has(name) || this.#isKnown(name)) return name;
    if (!hasSucceeded || this.#admitted.size >= this.#maxCount) return OTHER;
    this.#admitted.add(name);
    return name;
  }
}
