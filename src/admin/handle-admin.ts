import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AdminAction } from '#otel/admin-spans.ts';
import type { ExportStats } from '#otel/export-stats.ts';
import { toErrorJson } from '../http/error-body.ts';
import type { DrainStore } from '../replicas/drain-store.ts';
import type { ReplicaPool } from '../replicas/pool.ts';
import type { Replica } from '../replicas/replica.ts';
import { createAuth } from './auth.ts';
import { toReplicaView, toStatsView } from './views.ts';

/** Where admin actions are logged. A pino logger fits. */
export interface AdminLog {
  info(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface AdminCollaborators {
  readonly token: string | undefined;
  readonly pool: ReplicaPool;
  readonly drains: DrainStore;
  readonly stats: () => ExportStats;
  /** Told of each action when it is in force and stored, or could not be. */
  readonly onAction: (action: AdminAction) => void;
  readonly log: AdminLog;
}

const ERRORS = {
  admin_disabled: { status: 403, message: 'The admin API is off: no admin token is configured.' },
  unauthorized: { status: 401, message: 'The bearer token is missing or wrong.' },
  replica_not_found: { status: 404, message: 'No replica has this name.' },
  not_found: { status: 404, message: 'No such path or method on the admin API.' },
  internal_error: { status: 500, message: 'The admin API failed; see the log.' },
} as const;

interface Answer {
  readonly status: number;
  readonly body: string;
}

const DRAIN_PATH = /^\/admin\/replicas\/([^/]+)\/(drain|undrain)$/;

/** Creates the handler of the admin listener. */
export function createAdminHandler(
  collaborators: AdminCollaborators,
): (request: IncomingMessage, response: ServerResponse) => void {
  const authorize = createAuth(collaborators.token);
  return (request, response) => {
    request.resume();
    const decision = authorize(request.headers.authorization);
    if (decision !== 'allowed') {
      send(response, toErrorAnswer(decision));
      return;
    }
    void answer(request, response, collaborators);
  };
}

async function answer(
  request: IncomingMessage,
  response: ServerResponse,
  collaborators: AdminCollaborators,
): Promise<void> {
  try {
    send(response, await route(request, collaborators));
  } catch (error) {
    collaborators.log.error({ err: error }, 'admin call failed');
    send(response, toErrorAnswer('internal_error'));
  }
}

async function route(request: IncomingMessage, collaborators: AdminCollaborators): Promise<Answer> {
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const { pool } = collaborators;
  if (request.method === 'GET' && path === '/admin/replicas') {
    return toAnswer({ replicas: pool.replicas.map(toReplicaView) });
  }
  if (request.method === 'GET' && path === '/admin/stats') {
    return toAnswer(toStatsView(collaborators.stats()));
  }
  const [, encodedName, action] = DRAIN_PATH.exec(path) ?? [];
  if (request.method !== 'POST' || encodedName === undefined) return toErrorAnswer('not_found');
  const replica = findReplica(pool, encodedName);
  if (replica === undefined) return toErrorAnswer('replica_not_found');
  return setDrained(replica, action === 'drain', collaborators);
}

function findReplica(pool: ReplicaPool, encodedName: string): Replica | undefined {
  try {
    return pool.find(decodeURIComponent(encodedName));
  } catch {
    return undefined;
  }
}

/**
 * Drains or undrains, then answers once the state is on disk. The drain itself is in force before: an answer
 * that cannot be stored says so, and does not take the drain back.
 */
async function setDrained(
  replica: Replica,
  drained: boolean,
  { pool, drains, onAction, log }: AdminCollaborators,
): Promise<Answer> {
  const startEpochMs = Date.now();
  const before = pool.setDrained(replica, drained, new Date(startEpochMs).toISOString());
  const action = drained ? 'drain' : 'undrain';
  const { name, inflight } = replica;
  const answer = { replica: toReplicaView(replica), was_drained: before.drained };
  log.info({ action, replica: name, was_drained: before.drained, inflight }, action);
  try {
    await drains.save();
  } catch (error) {
    log.error({ err: error, replica: name }, 'drain state not stored');
    return toAnswer({
      ...answer,
      warning: 'The state is in force but could not be stored: a restart forgets it.',
    });
  } finally {
    onAction({ action, replica: name, wasDrained: before.drained, inflight, startEpochMs });
  }
  return toAnswer(answer);
}

function toAnswer(value: unknown): Answer {
  return { status: 200, body: JSON.stringify(value) };
}

function toErrorAnswer(code: keyof typeof ERRORS): Answer {
  return { status: ERRORS[code].status, body: toErrorJson({ code, ...ERRORS[code] }) };
}

function send(response: ServerResponse, { status, body: json }: Answer): void {
  // For whoever reads it in a terminal.
  const body = `${json}\n`;
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store',
    ...(status === 401 ? { 'WWW-Authenticate': 'Bearer realm="spangate admin"' } : {}),
  });
  response.end(body);
}
