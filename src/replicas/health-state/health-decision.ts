/**
 * What may show that a replica fails:
 * - `connections`: requests cannot connect to it
 * - `probes`: it does not answer the probes of the control plane
 * - `frozen`: it is silent, and its peers are not
 * - `errors`: it fails more requests than its peers
 * - `slow`: it is slower than its peers
 */
export const HEALTH_JUDGES = ['connections', 'probes', 'frozen', 'errors', 'slow'] as const;

/** One of HEALTH_JUDGES. */
export type HealthJudge = (typeof HEALTH_JUDGES)[number];

/** What each judge has found, for people. */
export const HEALTH_TEXTS: Readonly<Record<HealthJudge, string>> = {
  connections: 'cannot be connected to',
  probes: 'probes fail',
  frozen: 'frozen',
  errors: 'fails more than its peers',
  slow: 'slower than its peers',
};

/**
 * What a judge can decide:
 * - `failing`: the replica fails from now on
 * - `ok`: it does not any more
 * - `probation`: it gets a growing share of its turns, and is judged again
 * - `kept`: it is worse than its peers, but too few others serve
 */
export const HEALTH_VERDICTS = ['failing', 'ok', 'probation', 'kept'] as const;

/** One of HEALTH_VERDICTS. */
export type HealthVerdict = (typeof HEALTH_VERDICTS)[number];

/** What a judge has decided of a replica. Plain data, which can be sent to another thread. */
export interface HealthDecision {
  /** Its name. */
  readonly replica: string;
  readonly judge: HealthJudge;
  readonly verdict: HealthVerdict;
  /** With `failing` and `kept`: how long what the judge has seen has lasted, in milliseconds; 0 if that is not known. */
  readonly forMs: number;
  /** What was seen, in words. Absent if the judge says all. */
  readonly reason?: string;
}
