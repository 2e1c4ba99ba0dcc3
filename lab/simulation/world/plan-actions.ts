import type { Chance } from '../engine/chance.ts';
import { type AnswerPlan, planAnswer } from './answers.ts';
import type { Action, CollectorMode, Plan, RequestPlan } from './plan.ts';

/** How many there are. */
type Shape = Pick<Plan, 'gateways' | 'workers' | 'replicas'>;

/** A client with one or several requests. */
export function planClient(chance: Chance, name: string, gateway: number, atMs: number): Action {
  const count = chance.chance(60) ? 1 : 2 + chance.below(4);
  return {
    kind: 'client',
    atMs,
    gateway,
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
export function planCall(chance: Chance, { gateways, replicas }: Shape, atMs: number): Action {
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

/** Something that goes wrong. */
export function planFault(chance: Chance, { gateways, workers, replicas }: Shape, atMs: number): Action {
  const forMs = chance.between(10, chance.chance(30) ? 9_000 : 1_500);
  const gateway = chance.below(gateways);
  const kind = chance.pick([
    ...(['replica', 'replica', 'collector', 'collector', 'disk', 'stop', 'kill', 'cut', 'cut'] as const),
    ...(workers > 1
      ? (['crash_worker', 'kill_worker', 'kill_worker', 'kill_worker', 'stall'] as const)
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
    case 'kill_worker':
      return {
        kind,
        atMs,
        gateway,
        worker: chance.below(workers),
        afterSteps: chance.chance(50) ? 0 : chance.below(100),
      };
    case 'stall':
      return { kind, atMs, gateway, worker: chance.below(workers + 1), forMs: Math.min(forMs, 4_000) };
    case 'partition':
      return { kind, atMs, gateway, forMs };
    case 'cut':
      return { kind, atMs, side: chance.pick(['clients', 'replicas']), how: chance.pick(['reset', 'stall']) };
  }
}

/** From so much time on, a fleet that has started knows that nobody else is there. */
const STABLE_MS = 5_500;

/**
 * A replica of a stable fleet is drained at one gateway while another, which has clients, is cut off from Redis or stands
 * still, and operators look at it.
 */
export function planUnawareGateway(chance: Chance, { gateways, replicas }: Shape): readonly Action[] {
  const gateway = chance.below(gateways);
  const other = (gateway + 1 + chance.below(gateways - 1)) % gateways;
  const atMs = STABLE_MS + chance.between(0, 3_000);
  const faultMs = atMs - chance.between(0, 1_200);
  const forMs = chance.between(1_000, 6_000);
  const later = () => atMs + chance.between(0, 2_500);
  const fault: Action = chance.chance(60)
    ? { kind: 'partition', atMs: faultMs, gateway: other, forMs }
    : { kind: 'stall', atMs: faultMs, gateway: other, worker: 0, forMs: Math.min(forMs, 4_000) };
  return [
    fault,
    { kind: 'drain', atMs, gateway, replica: chance.below(replicas) },
    ...Array.from({ length: 1 + chance.below(3) }, () => ({ kind: 'look' as const, atMs: later(), gateway })),
    ...Array.from({ length: 1 + chance.below(3) }, (_, at) => planClient(chance, `u${at}`, other, later())),
  ];
}

/** A replica of a stable fleet is drained at one gateway while another has long requests on it, and operators look at it. */
export function planBusyGateway(chance: Chance, { gateways, replicas }: Shape): readonly Action[] {
  const gateway = chance.below(gateways);
  const other = (gateway + 1 + chance.below(gateways - 1)) % gateways;
  const atMs = STABLE_MS + chance.between(500, 3_000);
  return [
    ...Array.from({ length: 2 + chance.below(3) }, (_, at): Action => {
      const request = planRequest(chance, `b${at}`);
      const answers = request.answers.map(
        (answer): AnswerPlan => ({
          ...answer,
          status: 200,
          kind: 'stream',
          framing: 'chunked',
          breakAt: null,
          isSilent: false,
          events: 6 + chance.below(6),
          gapMs: chance.between(100, 400),
        }),
      );
      const long: RequestPlan = { ...request, path: '/v1/completions', stream: true, answers };
      return {
        kind: 'client',
        gateway: other,
        pauseMs: 0,
        atMs: atMs - chance.between(0, 900),
        requests: [long],
      };
    }),
    { kind: 'drain', atMs, gateway, replica: chance.below(replicas) },
    ...Array.from({ length: 3 }, () => ({
      kind: 'look' as const,
      atMs: atMs + chance.between(100, 2_500),
      gateway,
    })),
  ];
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
