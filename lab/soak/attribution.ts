import type { Disturbance, Journal } from './journal.ts';

/** A request that did not end as it should. Times are of `performance.now()`. */
export interface FailedRequest {
  /** Null: no answer began. */
  readonly requestId: string | null;
  /** Whether the gateway makes a record of such a request. */
  readonly hasRecord: boolean;
  readonly kind: string;
  readonly reason: string;
  /** Whether the connection broke, before the answer or in it. */
  readonly isCut: boolean;
  readonly startedMs: number;
  readonly endedMs: number;
  /** When its connection was opened. */
  readonly connectedMs: number;
}

/** What the harness knows of requests beside their clients. */
export interface Evidence {
  readonly journal: Pick<Journal, 'between'>;
  /** The requests that were open on a replica when it ended without need. */
  readonly cutIds: ReadonlySet<string>;
  /** The replica in the record of a request that failed; undefined: there is no such record. */
  replicaOf(requestId: string): string | undefined;
}

/** The faults that allow requests to fail. */
export type Excuse = 'a replica ended under them' | 'their worker was killed';

/** A gateway's clients may learn this late that their worker is gone. */
const NOTICE_MS = 5_000;

/** The fault that allows this failure; null: none does. */
export function toExcuse(failed: FailedRequest, { journal, cutIds, replicaOf }: Evidence): Excuse | null {
  const { requestId, startedMs, endedMs, connectedMs } = failed;
  if (requestId !== null && cutIds.has(requestId)) return 'a replica ended under them';
  const ended = journal.between(startedMs, endedMs).filter(({ kind }) => kind === 'ended');
  const replica = requestId === null ? undefined : replicaOf(requestId);
  const isOn = (each: Disturbance) => each.replica === replica || (!failed.hasRecord && requestId !== null);
  if (ended.some(isOn)) return 'a replica ended under them';
  const wasOfDead = ({ kind, toMs }: Disturbance) => kind === 'worker' && connectedMs <= toMs;
  const isOfDead = failed.isCut && journal.between(endedMs - NOTICE_MS, endedMs).some(wasOfDead);
  return isOfDead ? 'their worker was killed' : null;
}
