import { expect, test } from 'vitest';
import { MADE_AT, makeOverview, makeReplica, makeTraffic } from '#testkit/dashboard/made-overview.ts';
import { toProblems } from '../../../../../src/admin/dashboard/page/app/problems.js';

const textsOf = (changes: Parameters<typeof makeOverview>[0]) =>
  toProblems(makeOverview(changes)).map(({ level, text }) => `${level}: ${text}`);

const a = makeReplica({ name: 'a' });
const dead = makeReplica({
  name: 'b',
  reachability: 'unreachable',
  reachability_reason: 'connection_refused',
});

test('a gateway in order has no problems', () => {
  expect(textsOf({})).toEqual([]);
});

test('a replica that does not answer is named with its reason; several are counted', () => {
  expect(textsOf({ replicas: [a, dead] })).toEqual(['bad: b is unreachable: connection refused']);
  expect(textsOf({ replicas: [a, dead, { ...dead, name: 'c' }] })).toEqual([
    'bad: 2 replicas are unreachable',
  ]);
});

test('a model without a replica that may answer is the first problem', () => {
  const drained = makeReplica({ name: 'c', drained: true, inflight: 0 });
  expect(textsOf({ replicas: [dead, drained] })[0]).toBe('bad: No replica serves m');
  const unseen = makeReplica({ name: 'd', reachability: 'unknown' });
  expect(textsOf({ replicas: [unseen] })).toEqual([]);
});

test('failed requests are told of all together and of the replica that fails them', () => {
  const failing = makeReplica({ name: 'b', last_minute: makeTraffic({ requests: 100, errors: 30 }) });
  expect(
    textsOf({ replicas: [a, failing], last_minute: makeTraffic({ requests: 400, errors: 30 }) }),
  ).toEqual(['bad: 7.5 % of requests fail', 'bad: b fails 30 % of its requests']);
});

test('answers 4xx to every request are a problem, although nothing failed', () => {
  expect(textsOf({ last_minute: makeTraffic({ requests: 31, client_errors: 31 }) })).toEqual([
    'warn: 100 % of requests get 4xx',
  ]);
});

test('one replica that fails a few requests, or answers many with 4xx, is named although the traffic hides it', () => {
  const last_minute = makeTraffic({ requests: 10_000, errors: 2, client_errors: 31 });
  const withTraffic = (traffic: Parameters<typeof makeTraffic>[0]) =>
    textsOf({ last_minute, replicas: [a, makeReplica({ name: 'b', last_minute: makeTraffic(traffic) })] });
  expect(withTraffic({ requests: 150, errors: 2 })).toEqual(['warn: b fails 1.3 % of its requests']);
  expect(withTraffic({ requests: 31, client_errors: 31 })).toEqual([
    'warn: b answers 4xx to 100 % of its requests',
  ]);
});

test('Kubernetes or DNS that fails is named with the replicas that may be out of date', () => {
  const fine = {
    name: 'f',
    kind: 'dns',
    state: 'ok',
    since: MADE_AT,
    error_code: null,
    error_cause: null,
    readiness_gate: null,
  } as const;
  const dns = { ...fine, name: 'd', state: 'failing', error_code: 'ENOTFOUND' } as const;
  const kubernetes = { ...dns, name: 'k', kind: 'kubernetes', error_code: 'unreachable' } as const;
  const unnamed = { ...kubernetes, error_cause: 'ERR_TLS_CERT_ALTNAME_INVALID' } as const;
  expect(textsOf({ sources: [fine] })).toEqual([]);
  expect(textsOf({ sources: [fine, dns] })).toEqual(['warn: DNS fails for d: ENOTFOUND']);
  expect(textsOf({ sources: [kubernetes] })).toEqual(['warn: Kubernetes fails for k: unreachable']);
  expect(textsOf({ sources: [unnamed] })).toEqual([
    'warn: Kubernetes fails for k: unreachable (ERR_TLS_CERT_ALTNAME_INVALID)',
  ]);
  expect(textsOf({ sources: [kubernetes, dns] })).toEqual(['warn: Kubernetes or DNS fails for 2 names']);
});

test('a readiness gate that fails is named, whether or not its Service is watched', () => {
  const failing = {
    ...{ condition: 'spangate.dev/answers', since: MADE_AT, error_code: 'refused', error_cause: null },
    ...{ confirmed: 0, waiting: 1, waiting_pods: [{ pod: 'vllm-0', since: MADE_AT, problem: null }] },
    state: 'failing',
  } as const;
  const ok = {
    ...({ name: 'k', kind: 'kubernetes', state: 'ok', since: MADE_AT } as const),
    ...{ error_code: null, error_cause: null },
  };
  const fails = { ...ok, state: 'failing', error_code: 'cut' } as const;
  const working = { ...failing, state: 'ok', error_code: null } as const;
  expect(textsOf({ sources: [{ ...ok, readiness_gate: working }] })).toEqual([]);
  expect(textsOf({ sources: [{ ...ok, readiness_gate: failing }] })).toEqual([
    'warn: Readiness gate fails for k: refused',
  ]);
  expect(textsOf({ sources: [{ ...fails, readiness_gate: failing }] })).toEqual([
    'warn: Kubernetes fails for k: cut',
    'warn: Readiness gate fails for k: refused',
  ]);
});

test('a collector that is lost, and limits that are near, are problems', () => {
  const { saturation, stats, collector } = makeOverview();
  expect(
    textsOf({
      stats: { ...stats, queued: 1_200 },
      collector: { ...collector, state: 'failing' },
      saturation: {
        ...saturation,
        workers: [{ worker: 1, event_loop_utilization: 0.97 }],
        connections: { now: 8_100, limit: 10_000 },
      },
    }),
  ).toEqual([
    'bad: Export calls fail: 1,200 records wait',
    'bad: A worker is busy 97 % of the time',
    'warn: Connections are close to their limit',
  ]);
});
