import { type ReplicaFacts, type RolloutFacts, toMark } from '#rollout-board/facts';

/** A rollout that a gateway knows. */
export interface KnownRollout {
  readonly facts: RolloutFacts;
  /** The name of the token with which it began; null: not known. */
  readonly tokenName: string | null;
  /** When its driver was last heard, by any gateway: monotonic milliseconds. */
  readonly heardMs: number;
}

/** A driver that is not heard for so long has vanished. It tells something each second. */
const VANISHED_AFTER_MS = 30_000;

/** Whether it is under way, or should be. */
export function isLive({ state }: Pick<RolloutFacts, 'state'>): boolean {
  return state === 'running' || state === 'paused';
}

/** Whether it can never go on. */
export function isOver({ state }: Pick<RolloutFacts, 'state'>): boolean {
  return state === 'aborted' || state === 'done';
}

/** Whether it should be under way, and nobody drives it. */
export function hasVanished({ facts, heardMs }: KnownRollout, nowMs: number): boolean {
  return isLive(facts) && nowMs - heardMs >= VANISHED_AFTER_MS;
}

/** What becomes of the report of a driver. */
export type ReportDecision =
  | { readonly kind: 'take' }
  /** Another rollout is at work on some of its replicas. */
  | { readonly kind: 'conflict'; readonly other: KnownRollout; readonly names: readonly string[] }
  /** It goes on elsewhere since. */
  | { readonly kind: 'taken_over'; readonly known: KnownRollout }
  /** It wants to go on while another driver does. */
  | { readonly kind: 'driven'; readonly known: KnownRollout }
  /** It was done or aborted. */
  | { readonly kind: 'over'; readonly known: KnownRollout };

/** Decides whether a driver may go on. `others`: the rollouts that are known beside it. */
export function decideReport(
  known: KnownRollout | null,
  report: RolloutFacts,
  others: readonly KnownRollout[],
  nowMs: number,
): ReportDecision {
  if (known !== null) {
    const { run, driver } = known.facts;
    if (report.run < run) return { kind: 'taken_over', known };
    if (report.run === run && report.driver.id !== driver.id) return { kind: 'taken_over', known };
    if (report.run > run) {
      if (isOver(known.facts)) return { kind: 'over', known };
      const isDriven = isLive(known.facts) && !hasVanished(known, nowMs);
      if (isDriven && report.driver.replaces !== driver.id) return { kind: 'driven', known };
    }
  }
  if (!isLive(report)) return { kind: 'take' };
  const given = report.given_up.map(toMark);
  const names = new Set(report.replicas.map(({ name }) => name));
  for (const other of others) {
    // Of two that began at once, on gateways that did not know yet, the later one gives way.
    if (!isLive(other.facts) || given.includes(other.facts.id)) continue;
    if (known !== null && !isEarlier(other.facts, report)) continue;
    const both = other.facts.replicas.filter(({ name }) => names.has(name)).map(({ name }) => name);
    if (both.length > 0) return { kind: 'conflict', other, names: both };
  }
  return { kind: 'take' };
}

function isEarlier(a: RolloutFacts, b: RolloutFacts): boolean {
  return a.started_at === b.started_at ? a.id < b.id : a.started_at < b.started_at;
}

/** What two reports say together, in any order: the later one of each part holds. */
export function mergeFacts(known: RolloutFacts, report: RolloutFacts): RolloutFacts {
  const [older, newer] = report.seq >= known.seq ? [known, report] : [report, known];
  // Who goes on with a rollout wants that, whatever was asked before.
  const ask =
    newer.run > older.run
      ? ({ kind: 'go', version: Math.max(known.ask.version, report.ask.version) + 1, by: null } as const)
      : laterAsk(known.ask, report.ask);
  const replicas = mergeReplicas(known.replicas, report.replicas);
  // What was aborted while nobody drove it does not come back to life.
  const isAborted = known.run === report.run && known.state === 'aborted' && isLive(report);
  const head = isAborted ? { ...newer, ...endOf(known) } : newer;
  return { ...head, started_at: older.started_at, ask, replicas };
}

const endOf = ({ state, sentence, problem, ended_at }: RolloutFacts) => ({
  state,
  sentence,
  problem,
  ended_at,
});

const RANKS = { go: 0, pause: 1, abort: 2 } as const;

/** Of two that were asked at once, the more careful one holds. An abort is for good, and the first one is that which holds. */
function laterAsk(a: RolloutFacts['ask'], b: RolloutFacts['ask']): RolloutFacts['ask'] {
  const [isAbort, isOtherAbort] = [a.kind === 'abort', b.kind === 'abort'];
  if (isAbort !== isOtherAbort) return isAbort ? a : b;
  if (a.version !== b.version) return a.version > b.version === isAbort ? b : a;
  if (a.kind !== b.kind) return RANKS[b.kind] > RANKS[a.kind] ? b : a;
  return (b.by ?? '') > (a.by ?? '') ? b : a;
}

function mergeReplicas(
  known: readonly ReplicaFacts[],
  reported: readonly ReplicaFacts[],
): readonly ReplicaFacts[] {
  const merged = new Map(known.map((replica) => [replica.name, replica]));
  for (const replica of reported) {
    if (replica.seq >= (merged.get(replica.name)?.seq ?? 0)) merged.set(replica.name, replica);
  }
  return [...merged.values()];
}

/** Whether a restart of the gateway should know it: what changes every second is no reason to write. */
export function isWorthKeeping(before: RolloutFacts | null, after: RolloutFacts): boolean {
  if (before === null) return true;
  const { run, state, ask, replicas } = after;
  if (before.run !== run || before.state !== state || before.ask.version !== ask.version) return true;
  if (before.ask.kind !== ask.kind || before.replicas.length !== replicas.length) return true;
  return replicas.some(({ stage, verdict }, at) => {
    const known = before.replicas[at];
    return known?.stage !== stage || known.verdict !== verdict;
  });
}
