import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
/** How long the queue may take to empty once the collector is back. */
const DELIVERY_MS = 30_000;

/** Read by all gateways of the measurement. */
export const ADMIN_TOKEN = 'measurement';
/** Times shorter than the defaults, so that an outage of seconds is one of many back-offs; in milliseconds. */
export const EXPORT = {
  batchSize: 128,
  intervalMs: 100,
  retryInitialMs: 50,
  retryMaxMs: 500,
  timeoutMs: 300,
};

/** The counters of GET /admin/stats. */
export type Stats = Readonly<Record<string, number>>;

/** A gateway as its users run it: a process of its own. */
export interface GatewayProcess {
  readonly url: string;
  readonly adminUrl: string;
  stats(): Promise<Stats>;
  /**
   * The counters once nothing is queued and at least so many records of an earlier run were restored. Rejects
   * when that takes too long.
   */
  untilDelivered(restoredCount?: number): Promise<Stats>;
  /** Sends the signal and resolves when the process has ended, with its exit code; null after a SIGKILL. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null>;
}

export interface GatewaySettings {
  readonly folder: string;
  readonly collectorUrl: string;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  readonly queueSize?: number | undefined;
  /** Default: a free port. */
  readonly listen?: string;
  readonly workers?: number;
  readonly shutdownDelay?: string;
  readonly connectTimeout?: string;
  /** As one of a fleet: its name there, and where the state is shared. */
  readonly fleet?: { readonly name: string; readonly redisUrl: string };
}

/** A folder for the configuration and the state of a gateway, over its restarts. */
export const createFolder = (): Promise<string> => mkdtemp(join(tmpdir(), 'spangate-reliability-'));

/** Removes it. */
export const removeFolder = (folder: string): Promise<void> => rm(folder, { recursive: true, force: true });

/** Starts a gateway. Rejects if its output ends before it serves. */
export async function startGatewayProcess(settings: GatewaySettings): Promise<GatewayProcess> {
  const path = join(settings.folder, 'gateway.yaml');
  await writeFile(path, JSON.stringify(toConfigFile(settings)));
  const child = spawn(process.execPath, [MAIN, '-config', path], {
    env: {
      PATH: process.env.PATH,
      SVC_ADMIN_TOKEN: ADMIN_TOKEN,
      OTEL_EXPORTER_OTLP_TIMEOUT: String(EXPORT.timeoutMs),
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const { listen, adminListen } = await new Promise<{ listen: string; adminListen: string }>(
    (resolve, reject) => {
      createInterface({ input: child.stdout })
        .on('line', (line) => {
          const fields = JSON.parse(line);
          if (fields.msg === 'serving') resolve(fields);
        })
        .on('close', () => reject(new Error('a gateway did not start')));
    },
  );
  const adminUrl = `http://${adminListen}`;
  const stats = async (): Promise<Stats> => {
    const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
    return (await (await fetch(`${adminUrl}/admin/stats`, { headers })).json()) as Stats;
  };
  return {
    url: `http://${listen}`,
    adminUrl,
    stats,
    async untilDelivered(restoredCount = 0) {
      const startedAtMs = performance.now();
      while (performance.now() - startedAtMs < DELIVERY_MS) {
        const now = await stats();
        if (now.queued === 0 && (now.restored ?? 0) >= restoredCount) return now;
        await delay(20);
      }
      throw new Error('records are still queued, long after the collector has come back');
    },
    async end(signal) {
      child.kill(signal);
      const [exitCode] = await exited;
      return exitCode;
    },
  };
}

function toConfigFile(settings: GatewaySettings): object {
  const { collectorUrl, replicas, queueSize, folder, fleet } = settings;
  const { listen = '127.0.0.1:0', workers = 1, shutdownDelay = '0s', connectTimeout = '2s' } = settings;
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
    metrics: { otlp: false }, // calls with records are counted here
    shutdown: { delay: shutdownDelay, flush: '1s' },
  };
}
