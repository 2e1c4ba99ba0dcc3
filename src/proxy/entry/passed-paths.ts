import type { Config } from '#config';

type PassedPath = Config['pass'][number];

/**
 * What may stand for `*`: segments without escapes and without `.` and `..`, which a server could read as another path.
 */
const BELOW = /^(?:(?!\.{1,2}(?:\/|$))[A-Za-z0-9._~!$&'()*+,=:@-]+(?:\/(?!$)|$))+$/;

/** The methods and paths of `pass`. */
export class PassedPaths {
  readonly #exact: ReadonlySet<string>;
  readonly #below: readonly PassedPath[];

  constructor(passed: readonly PassedPath[]) {
    const isBelow = ({ path }: PassedPath) => path.endsWith('/*');
    this.#exact = new Set(
      passed.filter((each) => !isBelow(each)).map(({ method, path }) => `${method} ${path}`),
    );
    this.#below = passed.filter(isBelow).map(({ method, path }) => ({ method, path: path.slice(0, -1) }));
  }

  /** Whether a request with this method and path, without query, is relayed. */
  has(method: string, path: string): boolean {
    if (this.#exact.has(`${method} ${path}`)) return true;
    return this.#below.some(
      (passed) =>
        passed.method === method &&
        path.startsWith(passed.path) &&
        BELOW.test(path.slice(passed.path.length)),
    );
  }
}
