import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { askAdmin, type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { readResidentBytes } from '#testkit/programs/process-memory.ts';
import type { ThreadFigures } from './gateway-preload.ts';

const PRELOAD = `--import=${join(import.meta.dirname, 'gateway-preload.ts')}`;
const MB = 1024 ** 2;
/** A replica that is there may take seconds to accept a connection on a busy machine; one that is not refuses it at once. */
export const TIMEOUTS = { connect: '20s' };

/** What was measured of a gateway at one moment. */
export interface Sample {
  /** Seconds since the load began. */
  readonly atS: number;
  readonly rssMb: number;
  readonly heapMb: number;
  readonly externalMb: number;
  /** Open file descriptors. */
  readonly fds: number;
  /** What keeps the event loop of the main thread busy. */
  readonly resources: number;
}

/** A part of a configuration. */
export type Change = Readonly<Record<string, unknown>>;

/** What POST /admin/reload answers. */
export interface ReloadAnswer {
  readonly changed: readonly string[];
  readonly needs_restart: readonly string[];
}

/** A gateway under soak. */
export interface SoakGateway extends AsyncDisposable {
  readonly name: string;
  readonly process: GatewayProcess;
  readonly workers: number;
  /** Workers that have been killed, and have ended. */
  readonly killedWorkers: number;
  /** Reads the configuration again, with these keys instead of those it had at the start. */
  reload(change: Change): Promise<ReloadAnswer>;
  /** Throws if the process has ended. */
  sample(atS: number): Sample;
}

/** What a gateway of the soak begins with. */
export interface SoakGatewaySettings {
  readonly name: string;
  readonly folder: string;
  readonly workers: number;
  readonly collectorUrl: string;
  readonly redisUrl: string;
  /** Keys of the configuration that only this gateway has. */
  readonly own: Change;
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
}

/** Starts a gateway with the ledger, a shared state, and further endpoints. */
export async function startSoakGateway(settings: SoakGatewaySettings): Promise<SoakGateway> {
  const folder = join(settings.folder, settings.name);
  mkdirSync(folder);
  const figuresFile = join(folder, 'figures.json');
  const config = toConfig(settings, folder);
  const env = { NODE_OPTIONS: PRELOAD, SOAK_FIGURES_FILE: figuresFile };
  const gateway = await startGateway(folder, config, env);
  let last: ThreadFigures = { heapUsed: 0, external: 0, resources: 0, killed: 0 };
  const readFigures = () => {
    try {
      last = JSON.parse(readFileSync(figuresFile, 'utf8')) as ThreadFigures;
    } catch {
      // It is being written: the last ones stand.
    }
    return last;
  };
  return {
    name: settings.name,
    process: gateway,
    workers: settings.workers,
    get killedWorkers() {
      return readFigures().killed;
    },
    async reload(change) {
      writeFileSync(join(folder, 'gateway.yaml'), JSON.stringify({ ...config, ...change }));
      return (await askAdmin(gateway.adminUrl, 'POST', '/admin/reload')) as ReloadAnswer;
    },
    sample(atS) {
      if (!existsSync(`/proc/${gateway.pid}`))
        throw new Error(`the ${settings.name} gateway has ended by itself`);
      const { heapUsed, external, resources } = readFigures();
      return {
        atS,
        resources,
        heapMb: heapUsed / MB,
        externalMb: external / MB,
        rssMb: readResidentBytes(gateway.pid) / MB,
        fds: readdirSync(`/proc/${gateway.pid}/fd`).length,
      };
    },
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

/** A replica as the configuration names it. */
export const toReplica = ({ name, url }: { readonly name: string; readonly url: string }, more = {}) => ({
  name,
  url,
  models: ['m'],
  engine: 'vllm',
  ...more,
});

/** A key for clients, and the entry of the configuration that allows it. */
export function createKey(name: string, limits: Change = {}) {
  const key = `sk-${name}-${randomUUID()}`;
  const entry = { name, key_sha256: createHash('sha256').update(key).digest('hex'), ...limits };
  return { key, entry };
}

function toConfig(
  { name, workers, collectorUrl, redisUrl, own, replicas }: SoakGatewaySettings,
  folder: string,
) {
  return {
    gateway: { name, listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', workers },
    endpoints: ['responses', 'messages'],
    state: { redis: redisUrl },
    state_dir: join(folder, 'state'),
    replicas: replicas.map((replica) => toReplica(replica)),
    export: {
      endpoint: collectorUrl,
      interval: '500ms',
      retry: { initial: '100ms', max: '1s' },
      ledger: { interval: '5s' },
      protocol: workers === 1 ? 'http/json' : 'http/protobuf',
    },
    timeouts: TIMEOUTS,
    metrics: { otlp: false }, // calls with records are counted here
    ...own,
  };
}
