import { access, constants, mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { listenForAdmin, type ReloadOutcome } from '#admin';
import { orStartError } from '#base';
import type { Config } from '#config';
import { lockState, type StateLock } from '#state-dir';
import { composeGateway, type GatewayParts } from './compose-gateway.ts';
import type { GatewayCollaborators } from './composition/gateway-collaborators.ts';

type ListenAddress = Config['gateway']['listen'];

/** What a shutdown could not complete. */
export interface CloseResult {
  readonly cutRequests: number;
  readonly undeliveredRecords: number;
}

/** A gateway that serves. */
export interface ServingGateway {
  /** Where clients connect, with the port that the system has picked. */
  readonly listen: ListenAddress;
  readonly adminListen: ListenAddress;
  readonly replicaCount: number;
  /** The models that the replicas are known to serve. */
  readonly models: readonly string[];
  /** Where records are posted, without credentials; null if they go to files. */
  readonly collector: string | null;
  readonly workerCount: number;
}

/** A gateway in its life: started once, then closed or abandoned. */
export interface Gateway {
  /** Rejects with a StartError, whose message is one line for the operator. Port 0 picks a free port. */
  start(): Promise<ServingGateway>;
  /**
   * Reads the configuration again and applies what can change while requests run. Calls run one at a time; each is
   * logged and recorded as an admin action.
   */
  reload(): Promise<ReloadOutcome>;
  /** Runs the whole shutdown: delay, grace period for requests in flight, flush of records. Idempotent. */
  close(): Promise<CloseResult>;
  /**
   * Cleans up after an uncaught error: cuts the requests in flight, and exports or stores the records within
   * ABANDON_FLUSH_MS. A shutdown that has already begun continues instead.
   */
  abandon(): Promise<CloseResult>;
}

/**
 * Creates a gateway: the life cycle of the parts that `composeGateway` makes. `start` composes and starts them, `close`
 * stops them; before `start` there are none.
 */
export function createGateway(config: Config, collaborators: GatewayCollaborators): Gateway {
  let lock: StateLock | null = null;
  let running: GatewayParts | null = null;
  let closing: Promise<CloseResult> | null = null;

  async function startAll(): Promise<ServingGateway> {
    await orStartError(`state_dir ${config.stateDir} is not usable`, prepareStateDir(config.stateDir));
    lock = await orStartError(
      `state_dir ${config.stateDir}`,
      lockState(config.stateDir, { ...collaborators, host: hostname() }),
    );
    running = await composeGateway(config, collaborators);
    const { replicas, adminListener, certificateWatcher, clientsWatcher, jwksSource } = running;
    const { fleet, serving } = running;
    const { listen: address, adminListen } = config.gateway;
    // The admin API first: a client that gets an answer from the gateway can already drain.
    const adminPort = await listenOn((to) => listenForAdmin(adminListener, to), adminListen, 'admin_listen');
    await Promise.all([
      orStartError('replicas', replicas.start()),
      // Before it serves, the other gateways know this one, and it knows what is drained.
      orStartError('state.redis', fleet?.join() ?? Promise.resolve()),
    ]);
    running.responseExchange?.configure(config.endpoints.includes('responses'));
    replicas.startChecks();
    certificateWatcher.start();
    clientsWatcher.start();
    jwksSource.start();
    const port = await listenOn((to) => serving.listen(to), address, 'listen');
    return {
      listen: { host: address.host, port },
      adminListen: { host: adminListen.host, port: adminPort },
      replicaCount: replicas.registry.replicas.length,
      models: [...new Set(replicas.registry.replicas.flatMap(({ models }) => models ?? []))],
      collector: running.collector,
      workerCount: running.workerCount,
    };
  }

  /** Closes the parts, then releases state_dir to the next gateway. */
  async function closeAll(parts: GatewayParts | null, steps: Config['shutdown']): Promise<CloseResult> {
    try {
      return parts === null ? NOTHING_LOST : await closeDown(parts, steps, collaborators.log);
    } finally {
      await lock?.release();
      lock = null;
    }
  }

  function end(toSteps: (steps: Config['shutdown']) => Config['shutdown']): Promise<CloseResult> {
    if (running === null) return Promise.resolve(NOTHING_LOST);
    closing ??= closeAll(running, toSteps(running.shutdown()));
    return closing;
  }

  return {
    async start() {
      try {
        return await startAll();
      } catch (error) {
        // A failed start leaves no connections, timers or sockets behind.
        await closeAll(running, NO_TIME);
        running = null;
        throw error;
      }
    },

    async reload() {
      return running === null || closing !== null ? NOT_RUNNING : await running.reload(null);
    },

    close: () => end((steps) => steps),
    abandon: () =>
      end(({ flushMs }) => ({ delayMs: 0, graceMs: 0, flushMs: Math.min(flushMs, ABANDON_FLUSH_MS) })),
  };
}

const NO_TIME: Config['shutdown'] = { delayMs: 0, graceMs: 0, flushMs: 0 };
/** A broken process ends soon, whatever `shutdown.flush` says. */
const ABANDON_FLUSH_MS = 5_000;
const NOT_RUNNING: ReloadOutcome = { kind: 'refused', problems: ['the gateway is starting or stopping'] };
const NOTHING_LOST: CloseResult = { cutRequests: 0, undeliveredRecords: 0 };

async function prepareStateDir(stateDir: string): Promise<void> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  await access(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
}

async function listenOn(
  start: (address: ListenAddress) => Promise<number>,
  address: ListenAddress,
  key: string,
): Promise<number> {
  return await orStartError(`gateway.${key} ${address.host}:${address.port}`, start(address));
}

/** Delay, stop accepting, grace period, cut, flush: in this order a rolling update loses no request. */
async function closeDown(
  {
    replicas,
    fleet,
    responseExchange,
    responsesFile,
    telemetry,
    figures,
    metrics,
    serving,
    background,
    adminListener,
    certificateWatcher,
    clientsWatcher,
    jwksSource,
  }: GatewayParts,
  { delayMs, graceMs, flushMs }: Config['shutdown'],
  log: GatewayCollaborators['log'],
): Promise<CloseResult> {
  serving.startClosing();
  replicas.stop();
  certificateWatcher.stop();
  clientsWatcher.stop();
  jwksSource.stop();
  if (delayMs > 0) await sleep(delayMs, undefined, { ref: false });
  const cutRequests = await serving.finish(graceMs);
  responseExchange?.configure(false);
  // Those that cannot be stored leave their records now.
  await background.close();
  await fleet?.leave();
  const [{ undelivered }] = await Promise.all([telemetry.shutdown(flushMs), metrics.shutdown(flushMs)]);
  adminListener.close();
  adminListener.closeAllConnections();
  figures.stop();
  await serving.close();
  await responsesFile
    .save()
    .catch((error: unknown) =>
      log.warn({ err: error }, 'stored responses not saved: the next start knows none'),
    );
  await replicas.close();
  return { cutRequests, undeliveredRecords: undelivered };
}
