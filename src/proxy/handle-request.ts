import { randomUUID } from 'node:crypto';
import type { HttpExchange } from '../http/http-exchange.ts';
import { logDefect } from './defect.ts';
import { HEALTH_PATH, MODEL_PREFIX, MODELS_PATH } from './endpoints/table.ts';
import { Exchange, InFlight } from './exchange.ts';
import { toFailureJson } from './failure.ts';
import { answerModel, answerModels, handleModels } from './handle-models.ts';
import { handlePassed } from './handle-passed.ts';
import { handleRecorded, startRecorded } from './handle-recorded.ts';
import { Outbox } from './outbox.ts';
import type { ProxyCollaborators, ProxyPolicy, ProxySettings } from './proxy-context.ts';
import { PendingRecords } from './record/pending-records.ts';
import type { ApiClient } from './request/api-clients.ts';
import { isLoop } from './request-loop.ts';
import { EventScratch } from './response/event-scratch.ts';

/** What the client-facing listener does with requests. */
export interface ProxyService {
  /** Handles one request. */
  handle(http: HttpExchange): void;
  /** From now on /healthz answers 503. */
  startClosing(): void;
  /** Sets the settings of requests that begin from now on. */
  configure(policy: ProxyPolicy): void;
  /** Resolves when no request is in flight. */
  untilIdle(): Promise<void>;
  /** Makes the records of all requests that have ended. Some wait a few milliseconds for others. */
  finishRecords(): void;
  /** Ends the requests that are still in flight. Returns how many there were. */
  cutAll(): number;
}

/** Creates the proxy of one listener. */
export function createProxy(initial: ProxyPolicy, collaborators: ProxyCollaborators): ProxyService {
  let policy = initial;
  let isClosing = false;
  let onIdle: (() => void) | null = null;
  const { log, pool, limiter } = collaborators;
  const tools = { ...collaborators, scratch: new EventScratch() };
  const inFlight = new InFlight();
  const outbox = new Outbox((error) => logDefect(error, log));
  const pending = new PendingRecords((error) => logDefect(error, log));

  function begin(http: HttpExchange, toErrorBody = toFailureJson): Exchange {
    return new Exchange({ http, requestId: randomUUID(), outbox, toErrorBody });
  }

  function settingsOf(http: HttpExchange): ProxySettings {
    const { settings, trusted } = policy;
    return trusted?.proxies.has(http.remoteAddress) === true ? trusted.settings : settings;
  }

  /** The client whose API key a request presents; null if it presents no valid one, or needs none. */
  function identify(http: HttpExchange, settings: ProxySettings): ApiClient | null {
    return settings.apiClients?.identify(http.head.fields) ?? null;
  }

  /** Keeps the exchange in flight until it ends in any way. */
  function track(exchange: Exchange, onFinish: () => void): void {
    inFlight.add(exchange);
    exchange.whenFinished(() => {
      inFlight.remove(exchange);
      onFinish();
      if (inFlight.size === 0) onIdle?.();
    });
  }

  /**
   * Refuses a request that has been here before, and one without a valid API key: in this order, because a request that
   * comes back has lost its key. Returns whether it was refused.
   */
  function refuse(exchange: Exchange, client: ApiClient | null, settings: ProxySettings): boolean {
    if (isLoop(exchange.head.fields, settings.viaName)) {
      collaborators.onLoop();
      exchange.fail('loop_detected');
      return true;
    }
    if (client !== null || settings.apiClients === null) return false;
    exchange.fail('invalid_api_key');
    return true;
  }

  /** Counts a request of a client that has limits. Returns whether it was refused because of one. */
  function refuseOverLimit(exchange: Exchange, client: ApiClient | null): boolean {
    if (client === null || client.limits === null) return false;
    exchange.admission = limiter.admit(client.limits);
    if (exchange.admission.refusal === null) return false;
    exchange.fail('rate_limit_exceeded');
    return true;
  }

  /** Begins a request that leaves no record, and handles it unless it is refused. */
  function beginUnrecorded(
    http: HttpExchange,
    settings: ProxySettings,
    handle: (exchange: Exchange, client: ApiClient | null) => void,
  ): void {
    const exchange = begin(http);
    const client = identify(http, settings);
    track(exchange, () => undefined);
    if (!refuse(exchange, client, settings)) handle(exchange, client);
  }

  return {
    handle(http) {
      const settings = settingsOf(http);
      const { method, target } = http.head;
      const path = pathOf(target);
      const endpoint = method === 'POST' ? settings.endpoints.get(path) : undefined;
      if (endpoint !== undefined) {
        const exchange = begin(http, endpoint.toErrorBody);
        const client = identify(http, settings);
        const recorded = startRecorded(exchange, endpoint, client, settings, collaborators);
        track(exchange, () => {
          exchange.admission?.end(recorded.recording.usedTokens());
          if (exchange.isMalformed) collaborators.telemetry.discardRequestSpan();
          else pending.add(recorded.recording);
        });
        if (refuse(exchange, client, settings) || refuseOverLimit(exchange, client)) return;
        void handleRecorded(recorded, settings, tools);
      } else if (method === 'GET' && path === MODELS_PATH) {
        beginUnrecorded(http, settings, (exchange, client) => {
          if (client?.models || settings.listsAllModels)
            answerModels(exchange, client, pool, settings.aliases);
          else void handleModels(exchange, settings, collaborators);
        });
      } else if (method === 'GET' && settings.listsAllModels && path.startsWith(MODEL_PREFIX)) {
        beginUnrecorded(http, settings, (exchange, client) =>
          answerModel(exchange, path.slice(MODEL_PREFIX.length), client, pool, settings.aliases),
        );
      } else if (method === 'GET' && path === HEALTH_PATH) {
        http.answer(isClosing ? 503 : 200, 'text/plain', isClosing ? 'shutting down' : 'ok');
      } else if (settings.passes.has(method, path)) {
        beginUnrecorded(http, settings, (exchange, client) => {
          // Which model it uses is not known, since its body is not read.
          if (client?.models) exchange.fail('not_found');
          else void handlePassed(exchange, settings, tools);
        });
      } else {
        begin(http).fail('not_found');
      }
    },
    startClosing() {
      isClosing = true;
    },
    configure(next) {
      policy = next;
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
      // Responses that are ready to be sent are sent, not cut.
      outbox.flush();
      const cut = [...inFlight];
      for (const exchange of cut) exchange.cut();
      return cut.length;
    },
  };
}

/** The path of a request target, without decoding or normalising. */
function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}
