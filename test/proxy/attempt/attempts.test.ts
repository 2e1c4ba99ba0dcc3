import { expect, test } from 'vitest';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { Attempts } from '../../../src/proxy/attempt/attempts.ts';

class NoAttempts extends Attempts {
  acquire(): never {
    throw new Error('not asked for');
  }

  begin(): never {
    throw new Error('not asked for');
  }
}

test('a failed attempt is a line with codes and ids only, never with the message of an error', () => {
  const lines: { fields: object; message: string }[] = [];
  const lease = createPools([toReplicaConfig('a')]).pool.acquire('m', new Set());
  if (typeof lease === 'string') throw new Error(lease);
  const cause = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:8000'), { code: 'ECONNREFUSED' });
  const attempts = new NoAttempts(
    null,
    { requestId: 'r1', traceId: 't1' },
    { debug: (fields, message) => lines.push({ fields, message }) },
  );
  attempts.fail(lease.replica, 'upstream_failed', cause);
  expect(lines).toEqual([
    {
      fields: {
        request_id: 'r1',
        replica: 'a',
        code: 'upstream_failed',
        error_code: 'ECONNREFUSED',
        trace_id: 't1',
      },
      message: 'attempt failed',
    },
  ]);
});

test('an error without a code leaves the code out', () => {
  const logged: object[] = [];
  const lease = createPools([toReplicaConfig('a')]).pool.acquire('m', new Set());
  if (typeof lease === 'string') throw new Error(lease);
  const log = { debug: (fields: object) => void logged.push(fields) };
  new NoAttempts(null, { requestId: 'r1', traceId: 't1' }, log).fail(lease.replica, 'upstream_failed', null);
  expect(logged).toEqual([
    { request_id: 'r1', replica: 'a', code: 'upstream_failed', error_code: undefined, trace_id: 't1' },
  ]);
});
