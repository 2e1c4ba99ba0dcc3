import type { ServerResponse } from 'node:http';
import type { CollectorCall, CollectorScript } from '#testkit/fake-collector.ts';

/** The collector that answers 413 refuses larger bodies: a dozen records in protobuf. */
const MAX_BODY_BYTES = 8 * 1024;
const SLOW_MS = 150;

/** A fault that lasts from the first measured request to the last; then it is repaired. */
export interface Fault {
  readonly name: string;
  /** How the collector answers; `refused`: it does not listen. Absent: as usual. */
  readonly collector?: CollectorScript | 'refused';
  /** Absent: the default. */
  readonly queueSize?: number;
  /** What happens to one of two replicas after half of the requests. */
  readonly midway?: 'kill' | 'drain';
  /** What happens to the gateway after the last request, with the collector still failing. */
  readonly ending?: 'SIGTERM' | 'SIGKILL';
  /** Records of each call that the collector refuses in an answer of status 200. */
  readonly refusedPerCall?: number;
  /** Whether calls must fail: otherwise the fault was not there. */
  readonly failsCalls?: true;
  /** Whether requests may fail: those open on a replica that is killed. */
  readonly mayFailRequests?: true;
  /** Whether records may be lost without being counted: those of a killed process. */
  readonly mayLoseUncounted?: true;
}

const answer = (status: number, headers: Readonly<Record<string, string>> = {}): CollectorScript => ({
  status,
  headers,
});

const trickle = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'application/json' });
  const drip = setInterval(() => response.write(' '), 20);
  response.once('close', () => clearInterval(drip));
};

const answerSlowly = (response: ServerResponse): void => {
  setTimeout(() => response.end('{}'), SLOW_MS);
};

const refuseLarge = (response: ServerResponse): void => {
  const isTooLarge = Number(response.req.headers['content-length']) > MAX_BODY_BYTES;
  response.writeHead(isTooLarge ? 413 : 200).end('{}');
};

const cutInTheMiddle = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-length': '100' });
  response.write('{"partial', () => response.destroy());
};

const PARTIAL = '{"partialSuccess":{"rejectedSpans":"1","errorMessage":"one is too old"}}';

/** The rows of the table, in order. */
export const FAULTS: readonly Fault[] = [
  { name: 'none' },
  { name: 'collector away (connection refused)', collector: 'refused', failsCalls: true },
  { name: 'collector hangs (no answer)', collector: () => undefined, failsCalls: true },
  { name: 'collector trickles (an answer without end)', collector: trickle, failsCalls: true },
  { name: `collector slow (${SLOW_MS} ms a call)`, collector: answerSlowly },
  { name: '429 with Retry-After: 1', collector: answer(429, { 'retry-after': '1' }), failsCalls: true },
  {
    name: '503 with Retry-After: a date long past',
    collector: answer(503, { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }),
    failsCalls: true,
  },
  { name: '400', collector: answer(400), failsCalls: true },
  { name: `413 above ${MAX_BODY_BYTES / 1024} KiB`, collector: refuseLarge, failsCalls: true },
  { name: '500', collector: answer(500), failsCalls: true },
  {
    name: 'partial success (one record of each batch)',
    collector: { body: PARTIAL },
    refusedPerCall: 1,
  },
  { name: '200 with garbage', collector: { body: '<html>?' } },
  { name: 'answer cut in the middle', collector: cutInTheMiddle, failsCalls: true },
  { name: 'collector away, queue of 256 full', collector: 'refused', queueSize: 256, failsCalls: true },
  { name: 'a replica is killed', midway: 'kill', mayFailRequests: true },
  { name: 'a replica is drained', midway: 'drain' },
  {
    name: 'collector away, gateway stopped and started',
    collector: 'refused',
    ending: 'SIGTERM',
    failsCalls: true,
  },
  {
    name: 'collector away, gateway killed (kill -9) and started',
    collector: 'refused',
    ending: 'SIGKILL',
    mayLoseUncounted: true,
    failsCalls: true,
  },
];

/**
 * The number of records in calls that the collector answered with 2xx. Repeated records count once; spans of admin
 * actions, such as a drain, are not records.
 */
export function countTaken(calls: readonly CollectorCall[]): number {
  const taken = calls.filter(({ status = 0 }) => status >= 200 && status <= 299);
  const ids = taken.flatMap(({ spans }) => spans.map(({ attributes }) => attributes['gateway.request_id']));
  return new Set(ids.filter((id) => id !== undefined)).size;
}
