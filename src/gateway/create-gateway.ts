import { access, constants, mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import type { ReloadOutcome } from '#admin';
import { orStartError } from '#base';
import type { Config } from '#config';
import { lockState } from '#state-dir';
import { type ComposedGateway, composeGateway, type ServingGateway } from './compose-gateway.ts';
import type { GatewayCollaborators } from './composition/gateway-collaborators.ts';
import { type CloseResult, Parts, type ShutdownSteps } from './parts.ts';

/** A gateway in its life: started once, then closed or abandoned. */
export interface Gateway {
  /**
   * Rejects with a StartError, whose message is one line for the operator, or with the reason of `stopped` as soon as it
   * aborts: a start may wait for others. Port 0 picks a free port.
   */
  start(stopped?: AbortSignal): Promise<ServingGateway>;
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

/** Creates a gateway. Until `start` it has no parts. */
export function createGateway(config: Config, collaborators: GatewayCollaborators): Gateway {
  const parts = new Parts();
  let running: ComposedGateway | null = null;
  let closing: Promise<CloseResult> | null = null;

  async function startAll(stopped?: AbortSignal): Promise<ServingGateway> {
    await orStartError(`state_dir ${config.stateDir} is not usable`, prepareStateDir(config.stateDir));
    const lock = await orStartError(
      `state_dir ${config.stateDir}`,
      lockState(config.stateDir, { ...collaborators, host: hostname() }),
    );
    parts.add('state', { stop: () => lock.release() });
    running = await composeGateway(config, collaborators, parts);
    await parts.start(stopped);
    return running.describe();
  }

  function end(toSteps: (steps: ShutdownSteps) => ShutdownSteps): Promise<CloseResult> {
    if (running === null) return Promise.resolve(NOTHING_LOST);
    closing ??= parts.stop(toSteps(running.shutdown()));
    return closing;
  }

  return {
    async start(stopped) {
      try {
        return await startAll(stopped);
      } catch (error) {
        // A failed start leaves no connections, timers or sockets behind.
        running = null;
        await parts.stop(NO_TIME);
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

const NO_TIME: ShutdownSteps = { delayMs: 0, graceMs: 0, flushMs: 0 };
/** A broken process ends soon, whatever `shutdown.flush` says. */
const ABANDON_FLUSH_MS = 5_000;
const NOT_RUNNING: ReloadOutcome = {
  kind: 'refused',
  file: null,
  problems: ['the gateway is starting or stopping'],
};
const NOTHING_LOST: CloseResult = { cutRequests: 0, undeliveredRecords: 0 };

async function prepareStateDir(stateDir: string): Promise<void> {
  await mkdir(stateDir, { recursive: true, mode: 0o700 });
  await access(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
}
