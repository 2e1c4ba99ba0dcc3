import { type Chance, createChance, hashOf } from '../engine/chance.ts';
import type { End } from '../engine/end.ts';
import { Network } from '../engine/network.ts';
import { Schedule, type ScheduledEvent } from '../engine/schedule.ts';
import { Machine } from '../platform/machine.ts';
import type { Program } from '../program/program.ts';
import { Actor } from './actors/actor.ts';
import type { Client } from './actors/client.ts';
import { Collector } from './actors/collector.ts';
import { GatewayNode } from './actors/gateway-node.ts';
import { Redis } from './actors/redis.ts';
import { Replica } from './actors/replica.ts';
import { hostOf } from './addresses.ts';
import { Chronicle } from './checks/chronicle.ts';
import type { Plan } from './plan.ts';
import type { WorldParts } from './world-parts.ts';

/** What costs no answer. */
const CALM: ReadonlySet<string> = new Set([
  ...['client', 'drain', 'undrain', 'look', 'reload', 'collector', 'redis', 'disk'],
]);
/** With longer ways, pieces of a byte reach the time-outs. */
const CALM_LATENCY_MS = 3;

/** Receives what happens, for people. */
export type TraceListener = (atMs: number, text: string) => void;

/** A part of the connections behaves as the weather of the plan says; the others as in a good network. */
const BAD_WEATHER_PERCENT = 40;

/** A whole world: gateways, replicas, clients, a collector, a Redis server, and the network between them. */
export class World {
  readonly plan: Plan;
  readonly schedule: Schedule;
  readonly network: Network;
  readonly chronicle: Chronicle;
  readonly gateways: readonly GatewayNode[];
  readonly replicas: readonly Replica[];
  readonly collector: Collector;
  readonly redis: Redis;
  readonly clients: Client[] = [];
  readonly chance: Chance;
  readonly actor = new Actor('world');
  /** How connection attempts to a host, or between two, end; others succeed. */
  readonly unreachable = new Map<string, 'refused' | 'silent'>();
  /** Whether new connections are all good: at the end, so that all that can arrive does. */
  isFair = false;
  /** A hash of all steps so far. */
  hash = 0;
  readonly parts: WorldParts;
  readonly #trace: TraceListener | null;

  constructor(plan: Plan, program: Program, trace: TraceListener | null) {
    const { seed } = plan;
    this.plan = plan;
    this.#trace = trace;
    this.chance = createChance(seed, 'world');
    this.schedule = new Schedule((event) => this.#onStep(event));
    this.network = new Network(seed, this.schedule, {
      profileOf: (_from, _to, chance) =>
        !this.isFair && chance.chance(BAD_WEATHER_PERCENT)
          ? plan.weather
          : { latencyMs: [0.02, 1], readBytes: 65_536, capacityBytes: 65_536 },
      admits: (from, to) => {
        const host = to.split(':')[0] ?? '';
        return this.unreachable.get(host) ?? this.unreachable.get(`${from}>${host}`) ?? 'open';
      },
    });
    this.chronicle = new Chronicle(this.schedule, { isCalm: isCalm(plan), isPunctual: isPunctual(plan) });
    this.network.onWrite = this.chronicle.onWrite;
    const requests = plan.actions.flatMap((action) => (action.kind === 'client' ? action.requests : []));
    this.parts = {
      schedule: this.schedule,
      network: this.network,
      chronicle: this.chronicle,
      plans: new Map(requests.map((request) => [request.id, request])),
    };
    this.collector = new Collector(this.parts);
    this.redis = new Redis(this.parts);
    this.replicas = Array.from({ length: plan.replicas }, (_, index) => {
      const { slowReader } = plan;
      return new Replica(index, slowReader?.replica === index ? slowReader.pauseMs : 0, this.parts);
    });
    this.gateways = Array.from({ length: plan.gateways }, (_, index) => {
      // The clocks of machines differ by a few milliseconds, and the first one's not.
      const clockErrorMs = index === 0 ? 0 : this.chance.between(-40, 40);
      const machine = new Machine(hostOf.gateway(index), clockErrorMs, {
        seed,
        schedule: this.schedule,
        network: this.network,
      });
      return new GatewayNode(index, machine, {
        plan,
        program,
        parts: this.parts,
        onLog: (gateway, level, message, fields) =>
          this.note(`gateway ${gateway} logs ${level}: ${message} ${toText(fields)}`),
      });
    });
  }

  /** Says something in the trace. */
  note(text: string): void {
    this.hash = hashOf(text, this.hash);
    this.#trace?.(this.schedule.nowMs, text);
  }

  after(delayMs: number, label: string, run: () => void): void {
    this.schedule.after(delayMs, this.actor, label, run);
  }

  /** The open connections between two hosts: one side of each, that of the first host. */
  connectionsBetween(here: string, there: string): readonly End[] {
    return [...this.network.open].filter(
      ({ localAddress, remoteAddress }) =>
        localAddress.startsWith(`${here}:`) && remoteAddress.startsWith(`${there}:`),
    );
  }

  /**
   * Lets events happen until a condition holds, nothing more can happen, or the time is over. Microtasks and the ticks
   * of `process.nextTick` run between two events, as between two callbacks of an event loop. Returns whether it holds.
   */
  async runUntil(isDone: () => boolean, forMs: number): Promise<boolean> {
    const untilMs = this.schedule.nowMs + forMs;
    for (;;) {
      if (this.chronicle.violation !== null) return false;
      if (isDone()) return true;
      if (!this.schedule.runNext(untilMs)) {
        this.schedule.nowMs = untilMs;
        return isDone();
      }
      await turn();
    }
  }

  #onStep({ atMs, label }: ScheduledEvent): void {
    this.hash = hashOf(label, hashOf(String(atMs), this.hash));
    this.#trace?.(atMs, label);
  }
}

/** Whether no machine and no connection has faults. */
function isCalm({ actions, weather }: Plan): boolean {
  return actions.every(({ kind }) => CALM.has(kind)) && weather.latencyMs[1] <= CALM_LATENCY_MS;
}

/** Whether nothing stands still for longer than its latency, so that what is sent at once arrives at once. */
function isPunctual({ actions, weather }: Plan): boolean {
  const stalls = actions.some(
    (action) => action.kind === 'stall' || (action.kind === 'cut' && action.how === 'stall'),
  );
  return !stalls && weather.latencyMs[1] <= CALM_LATENCY_MS;
}

/** Resolves when all microtasks have run. */
export function turn(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

/** The fields of a line of the log, the same in each run. */
function toText(fields: unknown): string {
  return JSON.stringify(fields, (_name, value: unknown) =>
    value instanceof Error ? `${value.name}: ${value.message}` : value,
  );
}
