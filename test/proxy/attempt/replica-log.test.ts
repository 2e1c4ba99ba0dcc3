import { describe, expect, test } from 'vitest';
import { ReplicaLog } from '../../../src/proxy/attempt/replica-log.ts';
import type { Replica } from '../../../src/replicas/data/replica.ts';
import { createPools, toReplicaConfig } from '../../support/pool.ts';

const REFUSED = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:8000'), { code: 'ECONNREFUSED' });
const NOT_CONNECTED = { code: 'not_connected', cause: REFUSED, traceId: 't1' } as const;

function createLog() {
  const lines: { level: string; fields: object; message: string }[] = [];
  const write = (level: string) => (fields: object, message: string) => {
    lines.push({ level, fields, message });
  };
  let nowMs = 0;
  const log = new ReplicaLog(
    { debug: write('debug'), info: write('info'), warn: write('warn') },
    () => nowMs,
  );
  return {
    log,
    lines,
    advance(ms: number) {
      nowMs += ms;
    },
    /** All but those of single attempts. */
    changes: () => lines.filter(({ level }) => level !== 'debug'),
  };
}

function createReplica(name: string): Replica {
  const lease = createPools([toReplicaConfig(name)]).pool.acquire('m', new Set());
  if (typeof lease === 'string') throw new Error(lease);
  return lease.replica;
}

describe('a replica that cannot be reached', () => {
  test('is logged once when it becomes unreachable, and once with the number of attempts when it answers', () => {
    const { log, changes } = createLog();
    const replica = createReplica('a');
    log.answered(replica, 't0');
    for (let index = 0; index < 5; index += 1) log.attemptFailed(replica, NOT_CONNECTED);
    log.answered(replica, 't2');
    log.answered(replica, 't3');
    expect(changes()).toEqual([
      {
        level: 'warn',
        fields: { replica: 'a', code: 'not_connected', error_code: 'ECONNREFUSED', trace_id: 't1' },
        message: 'replica unreachable',
      },
      { level: 'info', fields: { replica: 'a', failed_tries: 5, trace_id: 't2' }, message: 'replica back' },
    ]);
  });

  test('is logged independently of other replicas', () => {
    const { log, changes } = createLog();
    const [a, b] = [createReplica('a'), createReplica('b')];
    log.attemptFailed(a, NOT_CONNECTED);
    log.attemptFailed(b, NOT_CONNECTED);
    log.answered(b, 't2');
    expect(changes().map(({ fields }) => fields)).toMatchObject([
      { replica: 'a' },
      { replica: 'b' },
      { replica: 'b', failed_tries: 1 },
    ]);
  });

  test('now and then is warned about at most once in ten seconds, and every attempt is logged', () => {
    const { log, changes, advance } = createLog();
    const replica = createReplica('a');
    for (let second = 0; second < 30; second += 1) {
      log.attemptFailed(replica, NOT_CONNECTED);
      log.answered(replica, 't2');
      advance(1000);
    }
    expect(changes().filter(({ level }) => level === 'warn')).toHaveLength(3);
    expect(changes().at(-1)?.fields).toMatchObject({ failed_tries: 10 });
  });
});

test('every other failed attempt is a line at level debug, with codes and the trace only', () => {
  const { log, lines } = createLog();
  log.attemptFailed(createReplica('a'), { code: 'upstream_failed', cause: REFUSED, traceId: 't1' });
  expect(lines).toEqual([
    {
      level: 'debug',
      fields: { replica: 'a', code: 'upstream_failed', error_code: 'ECONNREFUSED', trace_id: 't1' },
      message: 'attempt failed',
    },
  ]);
});
