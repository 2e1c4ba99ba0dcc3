import { randomUUID } from 'node:crypto';
import type { TenantLimits } from '#access/limits';
import { type ApiClient, type ClientRefusal, isLoop } from '#proxy/entry';
import type { HttpExchange } from '#wire/client';
import { logDefect } from './defect.ts';
import type { RecordedEndpoint } from './endpoints/recorded-endpoint.ts';
import { isOfResponses, RESPONSES, storedResponseIdIn } from './endpoints/responses.ts';
import { HEALTH_PATH, MODEL_PREFIX, MODELS_PATH, USAGE_PATH } from './endpoints/table.ts';
import { Exchange, InFlight } from './exchange.ts';
import { toFailureJson } from './failure.ts';
import { answerModel, answerModels, handleModels } from './handle-models.ts';
import { handlePassed, toSubject } from './handle-passed.ts';
import { handleRecorded, startRecording } from './handle-recorded.ts';
import { answerUsage } from './handle-usage.ts';
import { Outbox } from './outbox.ts';
import type { ProxyCollaborators, ProxyPolicy, ProxySettings } from './proxy-context.ts';
import { PendingRecords } from './record/pending-records.ts';
import { tenantOf } from './record/recorded-fields.ts';
import { createBodyInspector } from './request/inspection/body-inspector.ts';
import { toResponseReader } from './request/response-owner.ts';
import { EventScratch } from './response/events/event-scratch.ts';
import { createStepLog } from './step-log.ts';
import { describeUnknown } from './unknown-path.ts';

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
  /** Makes the records of all requests that have ended, some of which wait. Returns the age of the oldest other one: ms. */
  finishRecords(): number;
  /** Ends the requests that are still in flight. Returns how many there were. */
  cutAll(): number;
  /** Ends its thread, if there is one. */
  close(): Promise<void>;
}

/** Creates the proxy of one listener. */
export function createProxy(initial: ProxyPolicy, collaborators: ProxyCollaborators): ProxyService {
  let policy = initial;
  let isClosing = false;
  let onIdle: (() => void) | null = null;
  const { log, pool, limiter } = collaborators;
  const inspector = createBodyInspector(collaborators.prefixHash);
  const tools = { ...collaborators, scratch: new EventScratch(), inspector };
  const inFlight = new InFlight();
  const outbox = new Outbox((error) => logDefect(error, log));
  const pending = new PendingRecords((error) => logDefect(error, log));

  function begin(http: HttpExchange, { isDebug }: ProxySettings, toErrorBody = toFailureJson): Exchange {
    const requestId = randomUUID();
    const stepLog = isDebug ? createStepLog(log, requestId) : null;
    return new Exchange({ http, requestId, outbox, toErrorBody, log: stepLog });
  }

  function settingsOf(http: HttpExchange): ProxySettings {
    const { settings, trusted } = policy;
    return trusted?.proxies.has(http.remoteAddress) === true ? trusted.settings : settings;
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
   * Calls `handle` with the client of a request, unless it is refused: one that has been here before, and one without a
   * valid key. In this order, because a request that comes back has lost its key.
   */
  function admit(
    exchange: Exchange,
    { apiClients, viaName }: ProxySettings,
    handle: (client: ApiClient | null) => void,
  ): void {
    if (isLoop(exchange.head.fields, viaName)) {
      collaborators.onLoop();
      exchange.fail('loop_detected');
      return;
    }
    const found = apiClients === null ? null : apiClients.identify(exchange.head.fields);
    if (found instanceof Promise) void found.then((later) => admitFound(exchange, later, handle));
    else admitFound(exchange, found, handle);
  }

  function admitFound(
    exchange: Exchange,
    found: ApiClient | ClientRefusal | null,
    handle: (client: ApiClient | null) => void,
  ): void {
    // While a token was verified the client may have left.
    if (exchange.isFinished) return;
    if (typeof found === 'string') exchange.fail(found);
    else handle(found);
  }

  /** Calls `handle` unless the request is over a limit of its client or of its tenant. */
  function limit(
    exchange: Exchange,
    client: ApiClient | null,
    { tenantLimits, recordedFields }: ProxySettings,
    handle: () => void,
  ): void {
    if (client === null) {
      handle();
      return;
    }
    const found = tenantLimits?.limitsOf(tenantOf(exchange.head.fields, client, recordedFields)) ?? null;
    if (found instanceof Promise) void found.then((later) => limitFound(exchange, client, later, handle));
    else limitFound(exchange, client, found, handle);
  }

  function limitFound(
    exchange: Exchange,
    { limits }: ApiClient,
    tenant: Awaited<ReturnType<TenantLimits['limitsOf']>>,
    handle: () => void,
  ): void {
    // While the main thread was asked the client may have left.
    if (exchange.isFinished) return;
    if (typeof tenant === 'string') {
      exchange.fail(tenant);
      return;
    }
    if (limits !== null || tenant !== null) {
      const admission = limiter.admit(limits, tenant);
      exchange.admission = admission;
      exchange.log?.debug({}, 'limits asked');
      if (admission.refusal !== null) {
        exchange.fail('rate_limit_exceeded');
        return;
      }
    }
    handle();
  }

  /** Begins a request that leaves a record. */
  function beginRecorded(http: HttpExchange, endpoint: RecordedEndpoint, settings: ProxySettings): void {
    const exchange = begin(http, settings, endpoint.toErrorBody);
    exchange.log?.debug({ endpoint: endpoint.path }, 'request begins');
    const recording = startRecording(exchange, endpoint, settings, collaborators);
    track(exchange, () => {
      exchange.admission?.end(recording.usedTokens());
      if (exchange.isMalformed) {
        recording.discard();
        collaborators.telemetry.discardRequestSpan();
      } else pending.add(recording);
    });
    admit(exchange, settings, (client) => {
      if (client !== null) recording.noteClient(client);
      limit(exchange, client, settings, () => {
        void handleRecorded({ exchange, endpoint, client, recording }, settings, tools);
      });
    });
  }

  /** Answers a request for which there is nothing here. */
  function answerUnknown(http: HttpExchange, path: string, settings: ProxySettings): void {
    const { message, allow } = describeUnknown(http.head.method, path, settings);
    const exchange = begin(http, settings, (code) => toFailureJson(code, { message }));
    exchange.fail('not_found', allow === null ? '' : `Allow: ${allow}\r\n`);
  }

  /** Begins a request that leaves no record. */
  function beginUnrecorded(
    http: HttpExchange,
    settings: ProxySettings,
    handle: (exchange: Exchange, client: ApiClient | null) => void,
  ): void {
    const exchange = begin(http, settings);
    exchange.log?.debug({}, 'request without a record begins');
    // It may use the GPU, but how many tokens it uses nobody knows.
    track(exchange, () => exchange.admission?.end(0));
    admit(exchange, settings, (client) => handle(exchange, client));
  }

  /** Begins a request that leaves no record and counts in the limits of its client and of its tenant. */
  function beginCounted(
    http: HttpExchange,
    settings: ProxySettings,
    handle: (exchange: Exchange, client: ApiClient | null) => void,
  ): void {
    beginUnrecorded(http, settings, (exchange, client) =>
      limit(exchange, client, settings, () => handle(exchange, client)),
    );
  }

  /** Relays a request of `pass`. */
  function passOn(http: HttpExchange, settings: ProxySettings, path: string): void {
    beginCounted(http, settings, (exchange, client) => {
      // Which model it uses is not known, since its body is not read, nor whose response it is about.
      const isRefused = client !== null && (client.models !== null || isOfResponses(path));
      if (isRefused) exchange.fail('not_found');
      else void handlePassed(exchange, null, settings, tools);
    });
  }

  /** Relays a request about a stored response to the replica that has it, if that is known. */
  function passToHome(http: HttpExchange, settings: ProxySettings, responseId: string): void {
    beginCounted(http, settings, (exchange, client) => {
      const reader = toResponseReader(exchange.head.fields, client, settings);
      const found = pool.findResponse(responseId, reader);
      // What is not known may be another client's.
      if (found === null && reader !== null) exchange.fail('not_found');
      else void handlePassed(exchange, toSubject(found, settings.aliases), settings, tools);
    });
  }

  return {
    handle(http) {
      const settings = settingsOf(http);
      const { method, target } = http.head;
      const path = pathOf(target);
      const endpoint = method === 'POST' ? settings.endpoints.get(path) : undefined;
      if (endpoint !== undefined) {
        beginRecorded(http, endpoint, settings);
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
      } else if (method === 'GET' && path === USAGE_PATH && settings.tellsUsage) {
        beginCounted(http, settings, (exchange, client) => {
          void answerUsage(exchange, client, settings, collaborators);
        });
      } else if (method === 'GET' && path === HEALTH_PATH) {
        http.answer(isClosing ? 503 : 200, 'text/plain', isClosing ? 'shutting down' : 'ok');
      } else {
        const responseId = settings.endpoints.has(RESPONSES.path) ? storedResponseIdIn(method, path) : null;
        if (responseId !== null) passToHome(http, settings, responseId);
        else if (settings.passes.has(method, path)) passOn(http, settings, path);
        else answerUnknown(http, path, settings);
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
      return [...inFlight].reduce((oldestMs, { durationMs }) => Math.max(oldestMs, durationMs), 0);
    },
    cutAll() {
      // Responses that are ready to be sent are sent, not cut.
      outbox.flush();
      const cut = [...inFlight];
      for (const exchange of cut) exchange.cut();
      return cut.length;
    },
    close: () => inspector.close(),
  };
}

/** The path of a request target, without decoding or normalising. */
function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}
