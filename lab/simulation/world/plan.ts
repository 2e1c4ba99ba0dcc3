import { type Chance, createChance } from '../engine/chance.ts';
import type { DiskFault } from '../engine/disk.ts';
import { type AnswerPlan, planAnswer } from './answers.ts';

/** One request of a client. */
export interface RequestPlan {
  /** Names the request in the whole world; the client sends it as its tenant. */
  readonly id: string;
  readonly path: '/v1/chat/completions' | '/v1/completions' | '/v1/embeddings';
  readonly stream: boolean;
  readonly asksUsage: boolean;
  readonly promptChars: number;
  /** The request is written in so many pieces, with pauses between them. */
  readonly pieces: number;
  readonly pieceGapMs: number;
  /** How the replica answers the first attempt, the second … */
  readonly answers: readonly AnswerPlan[];
  /** The client leaves after so many bytes of the response; null: it stays. */
  readonly leavesAfterBytes: number | null;
  readonly leaves: 'reset' | 'close';
  /** It closes its side of the connection after the request. */
  readonly halfCloses: boolean;
}

/** How the collector behaves. */
export type CollectorMode =
  | 'ok'
  | 'down'
  | 'hangs'
  | 'later'
  | 'refuses'
  | 'fails'
  | 'partial'
  | 'cuts'
  | 'too_large'
  | 'slow';

/** Something that happens to the world at a time. */
export type Action = { readonly atMs: number } & (
  | {
      readonly kind: 'client';
      readonly gateway: number;
      /** Sent one after another on one connection, as long as it is kept. */
      readonly requests: readonly RequestPlan[];
      /** The client reads a part, then pauses. */
      readonly pauseMs: number;
    }
  | { readonly kind: 'drain' | 'undrain'; readonly gateway: number; readonly replica: number }
  | { readonly kind: 'look'; readonly gateway: number }
  | { readonly kind: 'reload'; readonly gateway: number; readonly firstByteMs: number }
  | {
      readonly kind: 'replica';
      readonly replica: number;
      readonly to: 'crash' | 'refuse' | 'silent';
      readonly forMs: number;
    }
  | { readonly kind: 'collector'; readonly to: CollectorMode; readonly forMs: number }
  | { readonly kind: 'redis'; readonly to: 'down' | 'hangs' | 'wiped' | 'cut'; readonly forMs: number }
  | { readonly kind: 'disk'; readonly gateway: number; readonly to: DiskFault; readonly forMs: number }
  | { readonly kind: 'stop' | 'kill'; readonly gateway: number; readonly forMs: number }
  | { readonly kind: 'crash_worker'; readonly gateway: number; readonly worker: number }
  | { readonly kind: 'stall'; readonly gateway: number; readonly worker: number; readonly forMs: number }
  | { readonly kind: 'partition'; readonly gateway: number; readonly forMs: number }
  | { readonly kind: 'cut'; readonly side: 'clients' | 'replicas'; readonly how: 'reset' | 'stall' }
);

/** How all connections of a world behave. */
export interface WeatherPlan {
  readonly latencyMs: readonly [number, number];
  readonly readBytes: number;
  readonly capacityBytes: number;
}

/** All that a seed decides before the world begins. What happens in it is decided by chance from the same seed. */
export interface Plan {
  readonly seed: number;
  readonly gateways: number;
  readonly workers: number;
  readonly replicas: number;
  readonly maxInflight: number | null;
  readonly queueSize: number;
  readonly batchSize: number;
  readonly routing: 'round_robin' | 'least_inflight';
  readonly weather: WeatherPlan;
  readonly actions: readonly Action[];
}

/** The world of a seed. */
export function planWorld(seed: number): Plan {
  const chance = createChance(seed, 'plan');
  const gateways = chance.chance(70) ? 1 : 2 + chance.below(2);
  const workers = chance.chance(gateways > 1 ? 75 : 55) ? 1 : 2 + chance.below(2);
  const shape = { gateways, workers, replicas: 1 + chance.below(3) };
  const durationMs = chance.between(500, 6_000);
  const when = createTimes(chance, durationMs);
  const clients = 1 + chance.below(12);
  const actions: Action[] = [];
  for (let client = 0; client < clients; client++) {
    actions.push(planClient(chance, `${client}`, shape.gateways, when()));
  }
  for (let count = chance.below(7); count > 0; count--) {
    const action = planFault(chance, shape, when());
    if (action !== null) actions.push(action);
  }
  for (let count = chance.below(9); count > 0; count--) actions.push(planCall(chance, shape, when()));
  const queueSize = chance.chance(15) ? 2 + chance.below(6) : 16_384;
  return {
    seed,
    ...shape,
    maxInflight: chance.chance(20) ? 1 + chance.below(3) : null,
    queueSize,
    batchSize: Math.min(queueSize, chance.chance(40) ? 1 + chance.below(4) : 512),
    routing: chance.pick(['round_robin', 'least_inflight']),
    weather: planWeather(chance),
    actions: actions.sort((a, b) => a.atMs - b.atMs),
  };
}

/** Most actions come close together at a few moments: what happens at nearly the same time is what goes wrong. */
function createTimes(chance: Chance, durationMs: number): () => number {
  const moments = Array.from({ length: 1 + chance.below(4) }, () => chance.between(0, durationMs));
  const spreadMs = chance.pick([2, 10, 50, 300]);
  return () =>
    chance.chance(70) ? chance.pick(moments) + chance.between(0, spreadMs) : chance.between(0, durationMs);
}

type Shape = Pick<Plan, 'gateways' | 'workers' | 'replicas'>;

function planWeather(chance: Chance): WeatherPlan {
  const slow = chance.chance(20);
  return {
    latencyMs: [0.02, slow ? 40 : 2],
    readBytes: chance.pick([65_536, 65_536, 1_400, 200, 17, 1]),
    capacityBytes: chance.pick([65_536, 65_536, 4_096, 300]),
  };
}

function planClient(chance: Chance, name: string, gateways: number, atMs: number): Action {
  const count = chance.chance(60) ? 1 : 2 + chance.below(4);
  return {
    kind: 'client',
    atMs,
    gateway: chance.below(gateways),
    pauseMs: chance.chance(15) ? chance.between(1, 2_000) : 0,
    requests: Array.from({ length: count }, (_, at) => planRequest(chance, `r${name}-${at}`)),
  };
}

function planRequest(chance: Chance, id: string): RequestPlan {
  const path = chance.pick([
    '/v1/chat/completions',
    '/v1/chat/completions',
    '/v1/completions',
    '/v1/embeddings',
  ] as const);
  const stream = path !== '/v1/embeddings' && chance.chance(60);
  return {
    id,
    path,
    stream,
    asksUsage: chance.chance(40),
    promptChars: chance.below(chance.chance(10) ? 40_000 : 200),
    pieces: chance.chance(70) ? 1 : 2 + chance.below(6),
    pieceGapMs: chance.between(0, 20),
    answers: [planAnswer(chance, stream), planAnswer(chance, stream), planAnswer(chance, stream)],
    leavesAfterBytes: chance.chance(10) ? chance.below(chance.chance(50) ? 1 : 800) : null,
    leaves: chance.pick(['reset', 'close']),
    halfCloses: chance.chance(5),
  };
}

/** A call of an operator. */
function planCall(chance: Chance, { gateways, replicas }: Shape, atMs: number): Action {
  const at = { atMs, gateway: chance.below(gateways) };
  const kind = chance.pick(['drain', 'drain', 'undrain', 'look', 'look', 'reload'] as const);
  switch (kind) {
    case 'drain':
    case 'undrain':
      return { ...at, kind, replica: chance.below(replicas) };
    case 'look':
      return { ...at, kind };
    case 'reload':
      return { ...at, kind, firstByteMs: 1_000 + chance.below(2_000) };
  }
}

function planFault(chance: Chance, { gateways, workers, replicas }: Shape, atMs: number): Action | null {
  const forMs = chance.between(10, chance.chance(30) ? 9_000 : 1_500);
  const gateway = chance.below(gateways);
  const kind = chance.pick([
    ...(['replica', 'replica', 'collector', 'collector', 'disk', 'stop', 'kill', 'cut', 'cut'] as const),
    ...(workers > 1
      ? (['crash_worker', 'crash_worker', 'crash_worker', 'stall'] as const)
      : (['stall'] as const)),
    ...(gateways > 1 ? (['redis', 'redis', 'partition'] as const) : []),
  ]);
  switch (kind) {
    case 'replica':
      return {
        kind,
        atMs,
        replica: chance.below(replicas),
        to: chance.pick(['crash', 'refuse', 'silent']),
        forMs,
      };
    case 'collector':
      return { kind, atMs, to: chance.pick(COLLECTOR_FAULTS), forMs };
    case 'redis':
      return { kind, atMs, to: chance.pick(['down', 'hangs', 'wiped', 'cut']), forMs };
    case 'disk':
      return { kind, atMs, gateway, to: chance.pick(['full', 'failing', 'read_only']), forMs };
    case 'stop':
    case 'kill':
      return { kind, atMs, gateway, forMs };
    case 'crash_worker':
      return { kind, atMs, gateway, worker: chance.below(workers) };
    case 'stall':
      return { kind, atMs, gateway, worker: chance.below(workers + 1), forMs: Math.min(forMs, 4_000) };
    case 'partition':
      return { kind, atMs, gateway, forMs };
    case 'cut':
      return { kind, atMs, side: chance.pick(['clients', 'replicas']), how: chance.pick(['reset', 'stall']) };
  }
}

const COLLECTOR_FAULTS: readonly CollectorMode[] = [
  ...([
    'down',
    'hangs',
    'later',
    'refuses',
    'fails',
    'partial',
    'partial',
    'cuts',
    'too_large',
    'slow',
  ] as const),
];
