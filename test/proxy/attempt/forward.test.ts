import { describe, expect, test } from 'vitest';
import type { WaitResult } from '#replicas';
import type { Acquired } from '../../../src/proxy/attempt/attempts.ts';
import { decideNext, type ForwardedAttempts, forward } from '../../../src/proxy/attempt/forward.ts';
import { openExchange, SETTINGS, startReplica, toAttempt } from './one-request.ts';

const FIRST = { onFreshConnection: false, withUsage: true, mayRetryStatus: false };

describe('what follows an attempt', () => {
  test.each([
    ['a response that was relayed', { kind: 'relayed', statusCode: 500 }, 'done'],
    ['a client that left', { kind: 'abandoned' }, 'done'],
    ['a replica that was drained meanwhile', { kind: 'drained' }, 'next_replica'],
    ['a refused connection', { kind: 'not_connected', cause: null }, 'next_replica'],
    ['a retried status', { kind: 'status_retried', statusCode: 503, relayAnswer() {} }, 'next_replica'],
    ['a reused connection that was reset', { kind: 'reset_on_reuse', cause: null }, 'repeat_on_fresh'],
    ['a refusal of our stream options', { kind: 'usage_refused', statusCode: 400 }, 'repeat_without_usage'],
    ['a fresh connection that was reset', { kind: 'failed', code: 'upstream_failed', cause: null }, 'fail'],
    ['a time-out', { kind: 'failed', code: 'upstream_timeout', cause: null }, 'fail'],
  ] as const)('%s', (_name, outcome, next) => {
    expect(decideNext(outcome, FIRST)).toBe(next);
  });

  test('nothing is repeated twice for the same reason', () => {
    const onFresh = { ...FIRST, onFreshConnection: true };
    const withoutUsage = { ...FIRST, withUsage: false };
    expect(decideNext({ kind: 'reset_on_reuse', cause: null }, onFresh)).toBe('fail');
    expect(decideNext({ kind: 'usage_refused', statusCode: 400 }, withoutUsage)).toBe('fail');
  });
});

describe('a request that waits for a replica', () => {
  /** Attempts whose only answer is a wait, and what they are asked for. */
  function waiting() {
    const waited = Promise.withResolvers<WaitResult>();
    const asked: string[] = [];
    const note = (name: string) => () => void asked.push(name);
    const attempts: ForwardedAttempts = {
      acquire: () => ({ result: waited.promise, abandon: () => waited.resolve('gone') }),
      hold: note('hold'),
      withdraw: note('withdraw'),
      fail: note('fail'),
      finish: note('finish'),
      begin: () => {
        throw new Error('an attempt was begun');
      },
      widen: () => {
        asked.push('widen');
        return false;
      },
    };
    return { waited, attempts, asked };
  }

  test('goes to none if its client left at the moment the wait ended, and gives the lease back', async () => {
    const { replica, lease, pools } = await startReplica();
    const { exchange, written } = openExchange();
    const { attempts, waited, asked } = waiting();
    const forwarded = forward(exchange, attempts, SETTINGS);
    waited.resolve(lease);
    exchange.http.finish('closed', 1);
    await forwarded;
    expect([asked, written.items, replica.inflight]).toEqual([[], [], 0]);
    expect(pools.registry.find('a')?.inflight).toBe(0);
  });

  test('ends its wait when its client leaves', async () => {
    const { exchange, written, logged } = openExchange();
    const { attempts, asked } = waiting();
    const forwarded = forward(exchange, attempts, SETTINGS);
    expect(logged).toEqual(['waits for a replica']);
    exchange.http.finish('closed', 1);
    await forwarded;
    expect([asked, written.items]).toEqual([[], []]);
  });

  test.each([
    ['overloaded', [], 503],
    ['no_replica_reachable', ['widen'], 502],
  ] as const)('is answered with why there is none: %s', async (why, asks, status) => {
    const { exchange, http } = openExchange();
    const { attempts, waited, asked } = waiting();
    const forwarded = forward(exchange, attempts, SETTINGS);
    waited.resolve(why);
    await forwarded;
    expect(asked).toEqual(asks);
    expect(http.text()).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [^]*"${why}"`));
  });

  test('asks again if it may go to others from now on, and goes to one of them', async () => {
    const { lease, server } = await startReplica();
    const { exchange, http, written } = openExchange();
    const { attempts } = waiting();
    const answers: Acquired[] = ['no_replica_reachable', lease];
    const forwarded = forward(
      exchange,
      {
        ...attempts,
        acquire: () => answers.shift() ?? 'no_replica_reachable',
        widen: () => true,
        begin: (replica, variant) => toAttempt(exchange, replica, variant).request,
      },
      SETTINGS,
    );
    const side = await server.next();
    await side.untilReceived('\r\n\r\n');
    side.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok');
    await forwarded;
    await written.until(() => http.text().endsWith('ok'));
  });

  test('is not even acquired for where its client has left before', async () => {
    const { exchange } = openExchange();
    exchange.http.finish('closed', 1);
    const { attempts, asked } = waiting();
    await forward(exchange, { ...attempts, acquire: () => expect.fail('acquired') }, SETTINGS);
    expect(asked).toEqual([]);
  });
});
