import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Child, startChild } from './child.ts';
import { ROOT } from './results.ts';

/** How long the queue may go without a record less, once the collector is back: a busy machine takes its time. */
const STANDSTILL_MS = 120_000;

/** The token of the admin API of every gateway here. */
export const ADMIN_TOKEN = 'measurement';
/** Times shorter than the defaults, in milliseconds, so that an outage of seconds covers many back-offs. */
export const EXPORT = {
  batchSize: 128,
  intervalMs: 100,
  retryInitialMs: 50,
  retryMaxMs: 500,
  timeoutMs: 1_000,
};

/** The counters of GET /admin/stats. */
export type Stats = Readonly<Record<string, number>>;

/** A gateway as its users run it: a process of its own. Disposing it sends SIGTERM. */
export interface GatewayProcess extends AsyncDisposable {
  readonly url: string;
  readonly adminUrl: string;
  readonly pid: number;
  /** The lines of its log so far: JSON. */
  readonly log: readonly string[];
  /** Reads its log no more, or again. */
  holdLog(isHeld: boolean): void;
  stats(): Promise<Stats>;
  /**
   * Resolves with the counters when nothing is queued and at least `restoredCount` records of an earlier run are
   * restored. Rejects when nothing has left the queue for two minutes.
   */
  untilDelivered(restoredCount?: number): Promise<Stats>;
  /** Sends the signal and resolves with the exit code when the process has ended; null after a SIGKILL. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

/** Settings of a gateway that is measured. */
export interface GatewaySettings {
  /** For configuration and state, over the restarts of the gateway. It is created if it does not exist. */
  readonly folder: string;
  readonly collectorUrl: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  readonly queueSize?: number | undefined;
  /** Default: a free port. */
  readonly listen?: string;
  readonly workers?: number;
  readonly shutdownDelay?: string;
  readonly connectTimeout?: string;
  /** The section `health` of the configuration; health checks are off without it. */
  readonly health?: object;
  /** The name of the gateway in a fleet, and the Redis server that holds the shared state. */
  readonly fleet?: { readonly name: string; readonly redisUrl: string };
}

/** Starts a gateway that is measured. Rejects if it ends before it serves. */
export async function startGatewayProcess(settings: GatewaySettings): Promise<GatewayProcess> {
  await mkdir(settings.folder, { recursive: true });
  const env = { OTEL_EXPORTER_OTLP_TIMEOUT: String(EXPORT.timeoutMs) };
  return await startGateway(settings.folder, toConfig(settings), env);
}

/**
 * Writes the configuration into the folder and starts a gateway of a checkout with it. Rejects if it ends before it
 * serves. `prefix`: a command that becomes the gateway, such as `prlimit --nofile=100`. `command`: starts a gateway that
 * is installed, instead of one of a checkout.
 */
export async function startGateway(
  folder: string,
  config: object,
  env: Readonly<Record<string, string>> = {},
  {
    checkout = ROOT,
    prefix = [],
    command = [process.execPath, join(checkout, 'src/main.ts')],
  }: {
    readonly checkout?: string;
    readonly prefix?: readonly string[];
    readonly command?: readonly string[];
  } = {},
): Promise<GatewayProcess> {
  const path = join(folder, 'gateway.yaml');
  await writeFile(path, JSON.stringify(config)); // JSON is YAML
  const [file = '', ...args] = [...prefix, ...command, '-config', path];
  const child = startChild(
    {
      file,
      args,
      env: { SVC_ADMIN_TOKEN: ADMIN_TOKEN, ...env },
      isIsolated: true,
    },
    { stdout: 'lines' },
  );
  const serving = JSON.parse(await untilServing(child));
  const adminUrl = `http://${serving.adminListen}`;
  const stats = async () => (await askAdmin(adminUrl, 'GET', '/admin/stats')) as Stats;
  return {
    url: `http://${serving.listen}`,
    adminUrl,
    pid: child.pid,
    log: child.lines,
    holdLog: (isHeld) => child.holdOutput(isHeld),
    stats,
    async untilDelivered(restoredCount = 0) {
      let movedAtMs = performance.now();
      let before = await stats();
      for (let now = before; performance.now() - movedAtMs < STANDSTILL_MS; now = await stats()) {
        if (now.queued === 0 && (now.restored ?? 0) >= restoredCount) return now;
        if (now.exported !== before.exported || now.rejected !== before.rejected)
          movedAtMs = performance.now();
        before = now;
        await sleep(20);
      }
      throw new Error('records are still queued, long after the collector has come back');
    },
    end: (signal) => child.end(signal),
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}

/** Resolves with the log line of a gateway that serves. If it ends first, its log tells why. */
async function untilServing(child: Child): Promise<string> {
  try {
    return await child.untilLine((line) => JSON.parse(line).msg === 'serving');
  } catch (error) {
    throw new Error(`the gateway does not serve\n${child.lines.join('\n')}`, { cause: error });
  }
}

/** Sends a request to the admin API and resolves with its JSON. Rejects if the status is not 2xx. */
export async function askAdmin(
  adminUrl: string,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<unknown> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}`, 'Content-Type': 'application/json' };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const response = await fetch(adminUrl + path, { method, headers, ...sent });
  if (!response.ok) throw new Error(`${method} ${path} was answered with ${response.status}`);
  return await response.json();
}

/** Names of the replicas that a gateway reports as safe to stop. */
export async function readSafeToStop(adminUrl: string): Promise<readonly string[]> {
  const { replicas } = (await askAdmin(adminUrl, 'GET', '/admin/replicas')) as {
    replicas: { name: string; safe_to_stop: boolean | null }[];
  };
  return replicas.filter((replica) => replica.safe_to_stop === true).map(({ name }) => name);
}

function toConfig(settings: GatewaySettings): object {
  const { collectorUrl, replicas, queueSize, folder, fleet } = settings;
  const {
    health,
    listen = '127.0.0.1:0',
    workers = 1,
    shutdownDelay = '0s',
    connectTimeout = '2s',
  } = settings;
  const { batchSize, intervalMs, retryInitialMs, retryMaxMs } = EXPORT;
  return {
    gateway: { listen, admin_listen: '127.0.0.1:0', workers, ...(fleet && { name: fleet.name }) },
    state: fleet === undefined ? {} : { redis: fleet.redisUrl },
    state_dir: join(folder, 'state'),
    replicas: replicas.map(({ name, url }) => ({ name, url, models: ['m'], engine: 'vllm' })),
    export: {
      endpoint: collectorUrl,
      batch_size: batchSize,
      interval: `${intervalMs}ms`,
      retry: { initial: `${retryInitialMs}ms`, max: `${retryMaxMs}ms` },
      ...(queueSize === undefined ? {} : { queue_size: queueSize }),
    },
    timeouts: { connect: connectTimeout },
    ...(health === undefined ? {} : { health }),
    metrics: { otlp: false }, // calls with records are counted here
    shutdown: { delay: shutdownDelay, flush: '1s' },
  };
}
