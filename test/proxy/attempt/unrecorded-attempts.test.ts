import { describe, expect, test } from 'vitest';
import { Lease, type Replica } from '#replicas';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import {
  NO_SUBJECT,
  UnrecordedAttempts,
  type UnrecordedRequest,
} from '../../../src/proxy/attempt/unrecorded-attempts.ts';
import { Upload } from '../../../src/proxy/attempt/upload.ts';
import { openExchange } from './one-request.ts';

type Collaborators = ConstructorParameters<typeof UnrecordedAttempts>[3];

const NONE: ReadonlySet<Replica> = new Set();
const VARIANT = { withUsage: true, onFreshConnection: false, mayRetryStatus: true };
const TRACE = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`, tracestate: undefined };
const INCOMING = `traceparent: 00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;

/** The attempts of a request to two replicas, what they log, and the trace that they continue. */
function start(changes: Partial<UnrecordedRequest> = {}, lines?: readonly string[], continuesTraces = true) {
  const pools = createPools([toReplicaConfig('a', ['m'], { maxInflight: 1 }), toReplicaConfig('b')]);
  const logged: object[] = [];
  const incoming: unknown[] = [];
  const collaborators = {
    pool: pools.pool,
    log: { debug: (fields: object) => logged.push(fields) },
    telemetry: {
      createUnrecordedContext(trace: unknown) {
        incoming.push(trace);
        return TRACE;
      },
    },
  } as unknown as Collaborators;
  const { exchange } = openExchange(lines);
  const request = { body: null, ...NO_SUBJECT, ...changes };
  const attempts = new UnrecordedAttempts(exchange, request, { continuesTraces }, collaborators);
  return { ...pools, attempts, exchange, logged, incoming, collaborators };
}

function leaseOf(acquired: unknown): Lease {
  if (!(acquired instanceof Lease)) throw new Error(String(acquired));
  return acquired;
}

describe('a request that leaves no record', () => {
  test('goes to each replica in turn, whatever it serves and has in flight', () => {
    const { attempts } = start();
    const names = [1, 2, 3].map(() => leaseOf(attempts.acquire(NONE)).replica.name);
    expect(names).toEqual(['a', 'b', 'a']);
    expect(attempts.widen()).toBe(false);
  });

  test('goes to its home, except where that was tried, is drained or is full', () => {
    const first = start();
    leaseOf(first.attempts.acquire(NONE))[Symbol.dispose]();
    const home = leaseOf(first.attempts.acquire(NONE)).replica;
    const { exchange } = openExchange();
    const request = { body: null, modelName: null, home };
    const attempts = new UnrecordedAttempts(
      exchange,
      request,
      { continuesTraces: false },
      first.collaborators,
    );
    const next = (tried = NONE) => {
      using lease = leaseOf(attempts.acquire(tried));
      return lease.replica.name;
    };
    expect([home.name, next(), next()]).toEqual(['b', 'b', 'b']);
    expect(next(new Set([home]))).toBe('a');
    first.setDrained('b', true);
    expect([next(), next()]).toEqual(['a', 'a']);
  });

  test('goes to its home although that is at its limit, which holds for requests with a record', () => {
    const { attempts, collaborators } = start();
    const lease = leaseOf(attempts.acquire(NONE));
    const home = lease.replica;
    expect(home.name).toBe('a');
    leaseOf(attempts.acquire(NONE))[Symbol.dispose]();
    leaseOf(attempts.acquire(NONE))[Symbol.dispose]();
    const { exchange } = openExchange();
    const request = { body: null, modelName: null, home };
    const ofHome = new UnrecordedAttempts(exchange, request, { continuesTraces: false }, collaborators);
    expect(leaseOf(ofHome.acquire(NONE)).replica.name).toBe('a');
  });

  test('is sent with its pieces, and its model is called as the client does', () => {
    const body = [Buffer.from('ping')];
    const { attempts, exchange } = start({ body, modelName: 'alias' });
    const { replica } = leaseOf(attempts.acquire(NONE));
    expect(attempts.begin(replica, VARIANT)).toMatchObject({
      replica,
      exchange,
      trace: TRACE,
      body,
      upload: null,
      onFreshConnection: false,
      mayRepeat: true,
      reading: null,
      modelName: 'alias',
      routeLines: '',
      observer: null,
    });
    const fresh = attempts.begin(replica, { ...VARIANT, onFreshConnection: true });
    expect(fresh.onFreshConnection).toBe(true);
  });

  test('is sent as it comes on a connection of its own', () => {
    const nothing = () => undefined;
    const source = {
      readBody: nothing,
      stopReadingBody: nothing,
      pauseReading: nothing,
      resumeReading: nothing,
    };
    const upload = new Upload(source, { kind: 'chunked' }, { maxBytes: 1, timeoutMs: 1 });
    const { attempts } = start({ body: upload });
    const { replica } = leaseOf(attempts.acquire(NONE));
    expect(attempts.begin(replica, VARIANT)).toMatchObject({ body: null, upload, onFreshConnection: true });
  });

  test.each([
    ['GET', true],
    ['HEAD', true],
    ['OPTIONS', true],
    ['POST', false],
    ['DELETE', false],
  ])('goes to another replica because of a status only if it changes nothing: %s', (method, expected) => {
    const { attempts } = start({}, [`${method} /x HTTP/1.1`, 'Host: x']);
    const { replica } = leaseOf(attempts.acquire(NONE));
    expect(attempts.begin(replica, VARIANT).mayRetryStatus).toBe(expected);
    expect(attempts.begin(replica, { ...VARIANT, mayRetryStatus: false }).mayRetryStatus).toBe(false);
  });

  test('continues the trace of its client where that is trusted', () => {
    const lines = ['GET /x HTTP/1.1', 'Host: x', INCOMING];
    expect(start({}, lines).incoming).toMatchObject([
      { traceparent: INCOMING.slice('traceparent: '.length), isTrusted: true },
    ]);
    expect(start({}, lines, false).incoming).toEqual([undefined]);
    expect(start().incoming).toEqual([undefined]);
  });

  test('is logged with its trace where it fails', () => {
    const { attempts, logged } = start();
    const { replica } = leaseOf(attempts.acquire(NONE));
    attempts.fail(replica, 'upstream_failed', null);
    expect(logged).toMatchObject([{ replica: 'a', code: 'upstream_failed', trace_id: '1'.repeat(32) }]);
  });
});
