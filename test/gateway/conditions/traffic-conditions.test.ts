import { expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { TrafficWatch } from '../../../src/gateway/conditions/traffic-conditions.ts';
import { type MadeReplica, madeRegistry } from './made-registry.ts';

function createWatch(...replicas: readonly MadeReplica[]) {
  let nowMs = 0;
  let registry = madeRegistry(replicas);
  const shown = {
    get replicas() {
      return registry.replicas;
    },
  };
  const watch = new TrafficWatch(shown, () => nowMs);
  return {
    become: (...others: readonly MadeReplica[]) => {
      registry = madeRegistry(others);
    },
    pass: (ms: number) => {
      nowMs += ms;
    },
    note: (count: number, record: Partial<RequestRecord>) => {
      for (let noted = 0; noted < count; noted += 1) watch.note(record as RequestRecord);
    },
    told: () => [...watch.produce()].map(({ id, subject, figures }) => ({ id, subject, ...figures })),
  };
}

const well = { status: 200, replica: 'a' };
const failed = { status: 500, replica: 'a' };

test('many requests fail from 5 % of 20 on', () => {
  const { note, told } = createWatch();
  note(18, well);
  note(1, failed);
  expect(told()).toEqual([]);
  note(1, failed);
  expect(told()).toEqual([{ id: 'requests_failing', subject: '', share: 0.1, requests: 20 }]);
  note(21, well);
  // 2 of 41 are less.
  expect(told()).toEqual([]);
});

test('responses that break off are failures, those that clients break off are not', () => {
  const { note, told } = createWatch();
  note(20, { status: 200, error_type: 'client_closed' });
  expect(told()).toEqual([]);
  note(5, { status: 200, truncated: true, error_type: 'upstream_failed' });
  expect(told()).toMatchObject([{ id: 'requests_failing', share: 0.2 }]);
});

test('what was mended is over when so many go well as would not by chance, not only after a minute', () => {
  const { note, told } = createWatch();
  note(50, failed);
  expect(told()).toMatchObject([{ share: 1 }]);
  note(50, well);
  expect(told()).toEqual([]);
  // One that fails later is no new beginning.
  note(1, failed);
  note(10, well);
  expect(told()).toEqual([]);
});

test('without further requests it is over after a minute', () => {
  const { note, told, pass } = createWatch();
  note(20, failed);
  pass(59_000);
  expect(told()).toHaveLength(1);
  pass(1_000);
  expect(told()).toEqual([]);
});

test('many 4xx are told with the most frequent code; those of limits count nowhere', () => {
  const { note, told } = createWatch();
  note(16, well);
  note(1, { status: 404, error_type: 'model_not_found' });
  note(3, { status: 400 });
  note(100, { status: 429, error_type: 'rate_limit_exceeded' });
  expect(told()).toEqual([{ id: 'client_errors_many', subject: '', share: 0.2, code: '400', requests: 20 }]);
});

test('codes without number are counted under one name', () => {
  const { note, told } = createWatch();
  for (let code = 0; code < 1_000; code += 1) note(1, { status: 400, error_type: `code-${code}` });
  expect(told()).toMatchObject([{ code: '_OTHER' }]);
});

test('attempts that retry has saved count for the replica, and not for the requests', () => {
  const { note, told } = createWatch({ name: 'a' }, { name: 'b' });
  const retried = {
    replica: 'a',
    failure: 'status_retried',
    status: 500,
    after_ms: 0,
    duration_ms: 1,
  } as const;
  note(18, well);
  note(6, { status: 200, replica: 'b', attempts: 2, failed_attempts: [retried] });
  expect(told()).toEqual([{ id: 'replica_attempts_failing', subject: 'a', share: 0.25, attempts: 24 }]);
});

test('a replica that is drained, does not answer or is gone is not blamed', () => {
  for (const a of [{ drained: true }, { reason: 'connection_refused' }]) {
    const { note, told } = createWatch({ name: 'a', ...a });
    note(30, failed);
    expect(told().map(({ id }) => id)).toEqual(['requests_failing']);
  }
  const { note, told } = createWatch({ name: 'b' });
  note(30, failed);
  expect(told().map(({ id }) => id)).toEqual(['requests_failing']);
});

test('attempts that health has found failing are not told again, also when it is over', () => {
  const judged = createWatch({ name: 'a', health: 'failing', failingBy: ['errors'] });
  const ofReplicas = () => judged.told().filter(({ subject }) => subject !== '');
  judged.note(30, failed);
  expect(ofReplicas()).toEqual([]);
  judged.become({ name: 'a', health: 'ok' });
  expect(ofReplicas()).toEqual([]);
  judged.note(30, failed);
  expect(ofReplicas()).toMatchObject([{ id: 'replica_attempts_failing', attempts: 30 }]);
});

test('a replica that is slow may fail attempts for another reason', () => {
  const { note, told } = createWatch({ name: 'a', health: 'failing', failingBy: ['slow'] });
  note(30, failed);
  expect(told()).toContainEqual(expect.objectContaining({ id: 'replica_attempts_failing' }));
});

test('a replica refuses requests if its peers answer the same', () => {
  const { note, told } = createWatch({ name: 'a' }, { name: 'b' }, { name: 'other', models: ['else'] });
  note(10, well);
  note(10, { status: 400, replica: 'a' });
  // Nobody can tell whose fault it is.
  note(20, { status: 200, replica: 'other' });
  const ofReplicas = () => told().filter(({ subject }) => subject !== '');
  expect(ofReplicas()).toEqual([]);
  note(10, { status: 200, replica: 'b' });
  expect(ofReplicas()).toEqual([{ id: 'replica_refuses_requests', subject: 'a', share: 0.5, attempts: 20 }]);
  note(10, { status: 400, replica: 'b' });
  expect(ofReplicas()).toEqual([]);
});
