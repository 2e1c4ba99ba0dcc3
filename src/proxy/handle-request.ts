import { randomUUID } from 'node:crypto';
import type { RecordedEndpoint } from '#otel/encode/recorded-endpoint.ts';
import type { HttpExchange } from '../http/http-exchange.ts';
import { logDefect } from './defect.ts';
import { Exchange } from './exchange.ts';
import { handleModels } from './handle-models.ts';
import { handleRecorded, startRecorded } from './handle-recorded.ts';
import { InFlight } from './in-flight.ts';
import { Outbox } from './outbox.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';
import { PendingRecords } from './record/pending-records.ts';

/** What the client-facing listener does with requests. */
export interface ProxyService {
  /** Handles one request. */
  handle(http: HttpExchange): void;
  /** From now on /healthz answers 503. */
  startClosing(): void;
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
  let isClosing = false;
  let onIdle: (() => void) | null = null;
  const { log } = collaborators;
  const inFlight = new InFlight();
  const outbox = new Outbox((error) => logDefect(error, log));
  const pending = new PendingRecords((error) => logDefect(error, log));

  function begin(http: HttpExchange): Exchange {
    return new Exchange({ http, requestId: randomUUID(), outbox });
  }

  /** Keeps the exchange in flight until it ends, whichever way. */
  function track(exchange: Exchange, onFinish: () => void): void {
    inFlight.add(exchange);
    const finish = () => {
      inFlight.remove(exchange);
      onFinish();
      if (inFlight.size === 0) onIdle?.();
    };
    // Not assigned as a literal: V8 takes that for a method of a prototype and puts it into the old generation, where
    // it keeps the whole request alive until a major collection. A third of all garbage survived that way.
    exchange.onFinish = finish;
  }

  return {
    handle(http) {
      const { method, target } = http.head;
      const path = pathOf(target);
      if (method === 'POST' && isRecorded(path)) {
        const exchange = begin(http);
        const recorded = startRecorded(exchange, path, settings, collaborators);
        track(exchange, () => {
          if (exchange.isMalformed) collaborators.telemetry.discardRequestSpan();
          else pending.add(recorded.recording);
        });
        void handleRecorded(recorded, settings, collaborators);
      } else if (method === 'GET' && path === '/v1/models') {
        const exchange = begin(http);
        track(exchange, () => undefined);
        void handleModels(exchange, settings, collaborators);
      } else if (method === 'GET' && path === '/healthz') {
        http.answer(isClosing ? 503 : 200, 'text/plain', isClosing ? 'shutting down' : 'ok');
      } else {
        begin(http).fail('not_found');
      }
    },
    startClosing() {
      isClosing = true;
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
