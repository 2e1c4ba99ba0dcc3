/**
 * What may show that a replica fails:
 * - `connections`: requests cannot connect to it
 * - `probes`: it does not answer the probes of the control plane
 * - `frozen`: it is silent, and its peers are not
 */
export const HEALTH_JUDGES = ['connections', 'probes', 'frozen'] as const;

/** One of HEALTH_JUDGES. */
export type HealthJudge = (typeof HEALTH_JUDGES)[number];

/** What each judge has found, for people. */
export const HEALTH_TEXTS: Readonly<Record<HealthJudge, string>> = {
  connections: 'cannot be connected to',
  probes: 'probes fail',
  frozen: 'frozen',
};

/** A judge began to find, or no longer finds, that a replica fails. Plain data, which can be sent to another thread. */
export interface HealthDecision {
  /** Its name. */
  readonly replica: string;
  readonly judge: HealthJudge;
  readonly verdict: 'failing' | 'ok';
  /** With `failing`: how long what the judge has seen has lasted, in milliseconds; 0 if that is not known. */
  readonly forMs: number;
}
