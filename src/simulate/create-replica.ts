import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Dialect } from './dialects/dialect.ts';
import { llamacppDialect } from './dialects/llamacpp.ts';
import { openaiDialect } from './dialects/openai.ts';
import { vllmDialect } from './dialects/vllm.ts';
import { sendJson } from './exchange.ts';
import type { Failure } from './failure.ts';
import { PrefixCache } from './prefix-cache.ts';
import { isScene, type Scene, Stage } from './scenes.ts';
import { type Outcome, type ReplicaParts, serveRequest } from './serve-request.ts';
import {
  DEFAULT_SETTINGS,
  defaultCollaborators,
  type ServedRequest,
  type SimulatedEngine,
  type SimulatedReplicaCollaborators,
  type SimulatedReplicaSettings,
} from './settings.ts';

/** A replica that answers as an inference engine would, without a model. */
export interface SimulatedReplica {
  /** Listens; rejects with the system's error, for example on a taken port. The url has no trailing slash. */
  start(): Promise<{ readonly url: string }>;
  /** Stops at once: open answers are cut. */
  close(): Promise<void>;
  /** Plays a scene from now on. `POST /simulate/scene/SCENE` of the replica does the same. */
  play(scene: Scene): void;
  /** Counts since the start, of the recorded endpoints. */
  facts(): SimulatedReplicaFacts;
}

/** Received requests are either served or open. */
interface SimulatedReplicaFacts {
  readonly requestsReceived: number;
  /** Ended, well or not. */
  readonly requestsServed: number;
  readonly openRequests: number;
  /** Of the open ones, those asked to stream. */
  readonly openStreams: number;
  /** Ended because the client left. */
  readonly clientsGone: number;
  readonly tokensGenerated: number;
}

/** As in uvicorn and llama.cpp: idle connections close after it, even if a request is on its way. */
const KEEP_ALIVE_MS = 5000;

/** Scenes are played at a path that no engine has. */
const SCENE_PATH = '/simulate/scene/';

const DIALECTS: Readonly<Record<SimulatedEngine, Dialect>> = {
  vllm: vllmDialect,
  llamacpp: llamacppDialect,
  openai: openaiDialect,
};

/** Creates a replica, which does nothing until it is started. Absent settings are those of {@link DEFAULT_SETTINGS}. */
export function createSimulatedReplica(
  partialSettings: Partial<SimulatedReplicaSettings> = {},
  partialCollaborators: Partial<SimulatedReplicaCollaborators> = {},
): SimulatedReplica {
  const settings = { ...DEFAULT_SETTINGS, ...partialSettings };
  const collaborators = { ...defaultCollaborators(settings.seed), ...partialCollaborators };
  const dialect = DIALECTS[settings.engine];
  const parts: ReplicaParts = {
    settings,
    collaborators,
    dialect,
    cache: new PrefixCache(settings.maxCachedBlocks),
    stage: new Stage(),
  };
  const counts = { received: 0, served: 0, gone: 0, tokens: 0 };
  const open = new Set<Outcome>();
  const createdSeconds = Math.floor(collaborators.now() / 1000);
  let isClosing = false;

  async function serveRecorded(
    endpoint: ServedRequest['endpoint'],
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const outcome: Outcome = { ending: 'client_gone', stream: false, generatedTokens: 0 };
    counts.received += 1;
    open.add(outcome);
    try {
      await serveRequest({ endpoint, request, response, outcome }, parts);
    } finally {
      open.delete(outcome);
      const ending = outcome.ending === 'client_gone' && isClosing ? 'closed' : outcome.ending;
      counts.served += 1;
      counts.gone += ending === 'client_gone' ? 1 : 0;
      counts.tokens += outcome.generatedTokens;
      const { 'x-request-id': requestId = null, traceparent = null } = request.headers;
      collaborators.onServed({
        ...outcome,
        endpoint,
        requestId: typeof requestId === 'string' ? requestId : null,
        traceparent: typeof traceparent === 'string' ? traceparent : null,
        ending,
        status: response.headersSent ? response.statusCode : 0,
      });
    }
  }

  function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const delivery = { response, dialect, now: collaborators.now };
    const refuse = (failure: Failure): Promise<void> => {
      const error = dialect.error(failure, settings);
      return sendJson(delivery, error.status, error.body, error.headers);
    };
    const path = request.url?.split('?', 1)[0] ?? '';
    if (path.startsWith(SCENE_PATH)) {
      const scene = path.slice(SCENE_PATH.length);
      if (request.method !== 'POST' || !isScene(scene)) return refuse({ code: 'not_found' });
      parts.stage.play(scene);
      return sendJson(delivery, 200, { name: settings.name, scene });
    }
    switch (path) {
      case '/v1/chat/completions':
      case '/v1/completions':
      case '/v1/embeddings':
        if (request.method !== 'POST') return refuse({ code: 'method_not_allowed' });
        return serveRecorded(path, request, response);
      case '/v1/models':
        if (parts.stage.scene === 'loading') return refuse({ code: 'loading' });
        return sendJson(
          delivery,
          200,
          dialect.models(settings.models, settings.maxModelTokens, createdSeconds),
        );
      case '/health':
        if (parts.stage.scene === 'loading') return refuse({ code: 'loading' });
        return sendJson(delivery, 200, dialect.health);
      default:
        return refuse({ code: 'not_found' });
    }
  }

  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS, keepAliveTimeoutBuffer: 0 });
  server.maxRequestsPerSocket = dialect.maxRequestsPerConnection;
  server.on('request', (request, response) => {
    handle(request, response).catch((error: unknown) => {
      // A client may leave while its answer is written. Anything else is a bug: let it crash.
      if (!response.destroyed) throw error;
    });
  });

  return {
    async start() {
      server.listen(settings.port, settings.host);
      await once(server, 'listening');
      const { address, port, family } = server.address() as AddressInfo;
      return { url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}` };
    },
    async close() {
      if (!server.listening) return;
      isClosing = true;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
    play: (scene) => parts.stage.play(scene),
    facts: () => ({
      requestsReceived: counts.received,
      requestsServed: counts.served,
      openRequests: open.size,
      openStreams: open
        .values()
        .filter(({ stream }) => stream)
        .toArray().length,
      clientsGone: counts.gone,
      tokensGenerated:
        counts.tokens + open.values().reduce((sum, { generatedTokens }) => sum + generatedTokens, 0),
    }),
  };
}
