import { setTimeout as sleep } from 'node:timers/promises';
import { createSimulatedReplica, type SimulatedReplica } from '../../src/simulate/create-replica.ts';
import { askAdmin } from '../support/gateway-process.ts';
import type { SpanCollector } from './span-collector.ts';

const NAMES = ['r0', 'r1', 'r2'] as const;
const SPEED = { ttftMs: 5, gapMs: 2, tokens: 6 };
/** How long the collector is away, and a replica that crashed. */
const AWAY_MS = 2_000;

/** Replicas that can be restarted on their ports. */
export interface Replicas extends AsyncDisposable {
  readonly list: readonly { readonly name: string; readonly url: string }[];
  /** When replicas were ended: in these times requests may fail. On the clock of `performance.now()`. */
  readonly endedMs: readonly number[];
  end(name: string): Promise<void>;
  start(name: string): Promise<void>;
}

/** Starts three simulated replicas. */
export async function startReplicas(): Promise<Replicas> {
  const running = new Map<string, SimulatedReplica>();
  const ports = new Map<string, number>();
  const list: { name: string; url: string }[] = [];
  const endedMs: number[] = [];
  const start = async (name: string) => {
    const replica = createSimulatedReplica({ name, models: ['m'], port: ports.get(name) ?? 0, ...SPEED });
    const { url } = await replica.start();
    ports.set(name, Number(new URL(url).port));
    running.set(name, replica);
    return url;
  };
  for (const name of NAMES) list.push({ name, url: await start(name) });
  return {
    list,
    endedMs,
    async end(name) {
      endedMs.push(performance.now());
      await running.get(name)?.close();
    },
    async start(name) {
      await start(name);
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all([...running.values()].map((replica) => replica.close()));
    },
  };
}

/** What a fault works on. */
export interface Testbed {
  readonly adminUrl: string;
  readonly replicas: Replicas;
  readonly collector: SpanCollector;
}

/** Something that happens while requests run. It is over when its promise resolves. */
export interface SoakFault {
  readonly name: string;
  run(testbed: Testbed, turn: number): Promise<void>;
}

const nameOf = (turn: number) => NAMES[turn % NAMES.length] ?? NAMES[0];
const drain = (adminUrl: string, name: string) =>
  askAdmin(adminUrl, 'POST', `/admin/replicas/${name}/drain?wait=20s`);
const undrain = (adminUrl: string, name: string) =>
  askAdmin(adminUrl, 'POST', `/admin/replicas/${name}/undrain`);

/** The faults, in turn. */
export const SOAK_FAULTS: readonly SoakFault[] = [
  {
    name: 'a replica is drained, restarted and undrained',
    async run({ adminUrl, replicas }, turn) {
      await drain(adminUrl, nameOf(turn));
      await replicas.end(nameOf(turn));
      await replicas.start(nameOf(turn));
      await undrain(adminUrl, nameOf(turn));
    },
  },
  {
    name: 'the collector is away',
    async run({ collector }) {
      await collector.close();
      await sleep(AWAY_MS);
      await collector.reopen();
    },
  },
  {
    name: 'the configuration is read again',
    run: async ({ adminUrl }) => void (await askAdmin(adminUrl, 'POST', '/admin/reload')),
  },
  {
    name: 'a replica is drained and undrained',
    async run({ adminUrl }, turn) {
      await drain(adminUrl, nameOf(turn));
      await undrain(adminUrl, nameOf(turn));
    },
  },
  {
    name: 'a replica crashes',
    async run({ replicas }, turn) {
      await replicas.end(nameOf(turn));
      await sleep(AWAY_MS);
      await replicas.start(nameOf(turn));
    },
  },
];
