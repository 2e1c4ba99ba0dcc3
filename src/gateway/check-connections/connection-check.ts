/** The result of one try to reach a server that the configuration names. It contains no credentials. */
export interface ConnectionCheck {
  readonly kind: 'replica' | 'collector' | 'redis' | 'jwks';
  /** The replica's name; otherwise the key of the configuration file. */
  readonly name: string;
  /** Its address. */
  readonly target: string;
  readonly isOk: boolean;
  /** What was found: `ok`, a code of why a replica does not answer, or a few words. */
  readonly result: string;
  /** What to change; null if nothing is known to be wrong. */
  readonly advice: string | null;
  /** How long it took, in milliseconds. */
  readonly durationMs: number;
  /** Of a replica that answers with a list of models: its engine and the models. */
  readonly found: { readonly engine: string; readonly models: readonly string[] } | null;
}

/** Where it is, what came of it, and what follows. */
export type Finding = Omit<ConnectionCheck, 'kind' | 'name' | 'durationMs' | 'found'>;

/** Runs one check and measures its time. */
export async function runCheck(
  kind: ConnectionCheck['kind'],
  name: string,
  check: () => Promise<Finding>,
): Promise<ConnectionCheck> {
  const startedMs = performance.now();
  const finding = await check();
  return { ...finding, kind, name, found: null, durationMs: performance.now() - startedMs };
}
