import { onTestFinished } from 'vitest';
import { Lease } from '#replicas';
import { EventLog } from '#testkit/event-log.ts';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { type ServerSide, startTcpServer } from '#testkit/servers/tcp-server.ts';
import type { AttemptRequest } from '../../../src/proxy/attempt/attempt.ts';
import type { SendSettings } from '../../../src/proxy/attempt/send.ts';
import { Exchange } from '../../../src/proxy/exchange.ts';
import { Outbox } from '../../../src/proxy/outbox.ts';
import { type ExchangeConnection, exchangeOf } from '../../wire/heads.ts';

/** What requests are sent with, unless a test says otherwise: no status is retried. */
export const SETTINGS: SendSettings = {
  viaName: 'gw',
  firstByteMs: 60_000,
  idleMs: 60_000,
  silentMs: 60_000,
  withheldFields: null,
  retry: null,
};

/** One client request without a socket: what goes to its client is written down. */
export function openExchange(
  lines: readonly string[] = ['GET /v1/x?y HTTP/1.1', 'Host: client'],
  /** Whether the client takes a response at once. */
  { takesAll = true } = {},
) {
  const written = new EventLog<string>();
  const http = { isKept: null as boolean | null, text: () => written.items.join('') };
  const nothing = () => undefined;
  let isPaused = false;
  const connection: ExchangeConnection = {
    remoteAddress: '192.0.2.1',
    isEncrypted: false,
    clientSubject: undefined,
    keepAliveLines: '',
    canKeep: () => true,
    readBody: nothing,
    discardBody: nothing,
    stopReadingBody: nothing,
    yieldToOtherSockets: nothing,
    pauseReading: nothing,
    resumeReading: nothing,
    write(before, pieces, _sizeBytes, after) {
      written.push(before + Buffer.concat(pieces).toString('latin1') + after);
      return !isPaused;
    },
    endResponse(isKept) {
      http.isKept = isKept;
      if (takesAll) exchange.http.finish('sent', 1);
    },
    destroy: () => exchange.http.finish('closed', 1),
  };
  const defects: unknown[] = [];
  const logged: string[] = [];
  const exchange = new Exchange({
    http: exchangeOf(lines, connection),
    requestId: 'id-1',
    log: { debug: (_fields: object, message: string) => void logged.push(message) },
    outbox: new Outbox((error) => defects.push(error)),
    toErrorBody: (code) => JSON.stringify({ code }),
  });
  const pause = (value: boolean) => {
    isPaused = value;
  };
  return { exchange, written, http, defects, logged, pause };
}

/** A server that the test answers byte by byte, and the replica of it in a pool; at an address that refuses, on demand. */
export async function startReplica({ refuses = false } = {}) {
  const server = await startTcpServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  // The server has this port, but not at this address.
  const url = refuses ? server.url.replace('127.0.0.1', '127.0.0.9') : server.url;
  const pools = createPools([toReplicaConfig('a', ['m'], { url: `${url}/base` })]);
  onTestFinished(() => pools.pool.close());
  const lease = pools.pool.acquire('m', new Set());
  if (!(lease instanceof Lease)) throw new Error(String(lease));
  return { server, pools, lease, replica: lease.replica };
}

/** One attempt of an exchange at a replica, and the steps that its observer is told. */
export function toAttempt(
  exchange: Exchange,
  replica: AttemptRequest['replica'],
  changes: Partial<AttemptRequest> = {},
) {
  const steps: string[] = [];
  const request: AttemptRequest = {
    replica,
    exchange,
    body: null,
    upload: null,
    reading: null,
    modelName: null,
    routeLines: '',
    stream: null,
    asksStream: false,
    trace: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', tracestate: undefined },
    onFreshConnection: false,
    mayRepeat: true,
    mayRetryStatus: false,
    observer: {
      onWritten: (_attempt, isReused) => void steps.push(isReused ? 'written on a reused one' : 'written'),
      onResponse: () => void steps.push('response'),
    },
    ...changes,
  };
  return { request, steps };
}

/** Resolves when the replica has received a request to its end. */
export async function untilAsked(side: ServerSide): Promise<void> {
  await side.untilReceived('\r\n\r\n');
}
