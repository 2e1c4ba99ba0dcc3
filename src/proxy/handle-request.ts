import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RecordedEndpoint } from '#otel/request-record.ts';
import { Exchange } from './exchange.ts';
import { handleModels } from './handle-models.ts';
import { handleRecorded, startRecorded } from './handle-recorded.ts';
import { InFlight } from './in-flight.ts';
import { Outbox } from './outbox.ts';
import { PendingRecords } from './pending-records.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';

/** What the client-facing listener does with requests. */
export interface ProxyService {
  /** Handles one request. `acceptBody` sends the 100 that a client may be waiting for. */
  handle(request: IncomingMessage, response: ServerResponse, acceptBody: () => void): void;
  /**
   * From now on /healthz answers 503, and each response that begins is the last of its connection, and says so. One
   * that began before has promised to keep it: its client may be about to send the next request.
   */
  startClosing(): void;
  /** From now on no connection is kept, whatever was promised. */
  endKeepAlive(): void;
  /** Requests that begin from now on go by other settings. */
  configure(settings: ProxySettings): void;
  /** Resolves when no request is in flight. */
  untilIdle(): Promise<void>;
  /** Makes the records of all requests that have ended: some wait a few milliseconds for others. */
  finishRecords(): void;
  /** Ends the requests that are still in flight, and returns how many those were. */
  cutAll(): number;
}

const RECORDED_ENDPOINTS: ReadonlySet<string> = new Set<RecordedEndpoint>([
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
]);

const isRecorded = (path: string): path is RecordedEndpoint => RECORDED_ENDPOINTS.has(path);

/** Creates the proxy of one listener. */
export function createProxy(initial: ProxySettings, collaborators: ProxyCollaborators): ProxyService {
  let settings = initial;
  const inFlight = new InFlight();
  const outbox = new Outbox();
  const pending = new PendingRecords(collaborators.onRecord);
  let phase: 'serving' | 'closing' | 'ending' = 'serving';
  let onIdle: (() => void) | null = null;

  function begin(request: IncomingMessage, response: ServerResponse): Exchange {
    if (phase !== 'serving') response.shouldKeepAlive = false;
    const lingerBytes = settings.maxBodyBytes;
    return new Exchange({ request, response, requestId: randomUUID(), lingerBytes, outbox });
  }

  /** Keeps the exchange in flight until it ends, whichever way. */
  function track(exchange: Exchange, onFinish: () => void): void {
    inFlight.add(exchange);
    const finish = () => {
      inFlight.remove(exchange);
      onFinish();
      if (phase === 'ending') exchange.request.socket.end();
      if (inFlight.size === 0) onIdle?.();
    };
    // Not assigned as a literal: V8 takes that for a method of a prototype and puts it into the old generation, where
    // it keeps the whole request alive until a major collection. A third of all garbage survived that way.
    exchange.onFinish = finish;
  }

  return {
    handle(request, response, acceptBody) {
      const path = pathOf(request.url ?? '');
      if (request.method === 'POST' && isRecorded(path)) {
        const exchange = begin(request, response);
        const recorded = startRecorded(exchange, path, settings, collaborators);
        track(exchange, () => {
          if (exchange.isMalformed) collaborators.telemetry.discardRequestSpan();
          else pending.add(recorded.recording);
        });
        void handleRecorded(recorded, acceptBody, settings, collaborators);
      } else if (request.method === 'GET' && path === '/v1/models') {
        const exchange = begin(request, response);
        track(exchange, () => undefined);
        void handleModels(exchange, settings, collaborators);
      } else if (request.method === 'GET' && path === '/healthz') {
        response.shouldKeepAlive &&= phase === 'serving';
        answerHealth(response, phase !== 'serving');
      } else {
        begin(request, response).fail('not_found');
      }
    },
    startClosing() {
      phase = 'closing';
      for (const { response } of inFlight) if (!response.headersSent) response.shouldKeepAlive = false;
    },
    endKeepAlive() {
      phase = 'ending';
    },
    configure(next) {
      settings = next;
    },
    untilIdle() {
      if (inFlight.size === 0) return Promise.resolve();
      return new Promise((resolve) => {
        onIdle = resolve;
      });
    },
    finishRecords() {
      pending.flush();
    },
    cutAll() {
      // What is ready to be sent is not cut.
      outbox.flush();
      const cut = [...inFlight];
      for (const exchange of cut) exchange.cut();
      return cut.length;
    },
  };
}

/** The path of a request target, as it came: nothing is decoded or collapsed. */
function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

function answerHealth(response: ServerResponse, isClosing: boolean): void {
  const body = isClosing ? 'shutting down' : 'ok';
  const status = isClosing ? 503 : 200;
  response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  response.end(body);
}
