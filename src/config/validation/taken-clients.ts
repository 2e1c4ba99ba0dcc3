/** A name or a key that two clients have. `message`: which entry had it first. */
export interface RepeatedValue {
  readonly key: 'name' | 'key_sha256';
  readonly message: string;
}

/** The names and keys of the clients so far: no two clients may have the same one. */
export class TakenClients {
  /** The places of the entries that have a name, or the digest of a key. */
  readonly #names = new Map<string, string>();
  readonly #digests = new Map<string, string>();

  /**
   * Takes the name and the digests of one entry, as they were given. Returns those that are taken already.
   *
   * @param place where the entry is, for messages
   */
  take(name: unknown, digests: readonly unknown[], place: string): RepeatedValue[] {
    const repeated: RepeatedValue[] = [];
    const takeOne = (taken: Map<string, string>, value: unknown, key: RepeatedValue['key'], what: string) => {
      if (typeof value !== 'string') return;
      const first = taken.get(value);
      if (first === undefined) taken.set(value, place);
      else repeated.push({ key, message: `${first} has the same ${what}` });
    };
    takeOne(this.#names, name, 'name', 'name');
    for (const digest of digests) {
      takeOne(this.#digests, typeof digest === 'string' ? digest.toLowerCase() : digest, 'key_sha256', 'key');
    }
    return repeated;
  }
}
