import type { JudgeExchange } from '#comparisons';
import type { RequestRecord } from '#otel/record/registry';
import type { ListedPodUids } from '#replicas/discovery';
import type { RegisteredReplica } from '#replicas/registry';
import { toRandom } from '#testkit/random.ts';
import { PLAIN, type Scenario, simulateSeconds } from '#testkit/verdict/workload.ts';
import type { Observation } from '#verdict/blocks';
import { parseSelector } from '../../../src/comparisons/groups/selector.ts';
import { GatewayJudge, type Question } from '../../../src/comparisons/judge/gateway-judge.ts';
import { PairLog } from '../../../src/comparisons/pairs/pair-log.ts';
import { RequestRing } from '../../../src/comparisons/requests/request-ring.ts';

/** When the gateway of a scene started, and the same by its monotonic clock. */
export const START_EPOCH_MS = Date.parse('2026-01-31T12:00:00Z');
export const START_MS = 1_000;

/** What a test changes of a replica. Times are monotonic. */
export interface Replica {
  models: readonly string[] | null;
  host: string;
  serverId?: string;
  drained: boolean;
  isRemoving: boolean;
  knownSinceMs: number;
  changedMs: number;
  rampShare: number | null;
  reachability: { state: string; reason: string | null; sinceMs: number };
  health: { state: string; sinceMs: number; failingBy: readonly string[] };
  inflight: number;
}

/** A judge with a clock of its own. */
export interface JudgeScene {
  readonly judge: GatewayJudge;
  readonly ring: RequestRing;
  readonly replicas: Map<string, Replica>;
  readonly clock: {
    nowMs: number;
    /** By how much the time since 1970 is ahead every other time that it is read. */
    tickMs: number;
    /** How far the time since 1970 was set forward, or back. */
    stepMs: number;
  };
  /** What the API server answers. */
  pods: ListedPodUids;
  listedPods: number;
  /** Lets seconds of a simulated load pass; r0 is the replica that may be bad. */
  pass(seconds: number, scenario?: Partial<Scenario>): void;
  ask(
    candidate: string,
    baseline?: string | null,
    changes?: Partial<Question>,
  ): ReturnType<GatewayJudge['ask']>;
}

/** Creates the scene with replicas r0 to r3 of the model m. */
export function createScene({
  policy = 'round_robin',
  exchange = null as JudgeExchange | null,
  seed = 7,
} = {}): JudgeScene {
  const clock = { nowMs: START_MS, tickMs: 0, stepMs: 0 };
  let reads = 0;
  const replicas = new Map<string, Replica>();
  for (let index = 0; index < 4; index++) replicas.set(`r${index}`, newReplica());
  const ring = new RequestRing({
    isOfPresent: () => true,
    isWarm: (name) => (replicas.get(name)?.rampShare ?? null) === null,
    nowMs: () => clock.nowMs,
  });
  const random = toRandom(seed);
  const loads = new Map<string, ReturnType<typeof simulateSeconds>>();
  const scene: JudgeScene = {
    ring,
    replicas,
    clock,
    pods: { kind: 'no_source' },
    listedPods: 0,
    judge: new GatewayJudge({
      ring,
      pairLog: new PairLog({ sinceMsOf: () => 0, nowMs: () => clock.nowMs }),
      registry: {
        get replicas() {
          return [...replicas].map(([name, replica]) => toRegistered(name, replica, clock.nowMs));
        },
      },
      currency: 'EUR',
      routingPolicy: () => policy,
      exchange,
      async listPods() {
        scene.listedPods++;
        return scene.pods;
      },
      nowMs: () => clock.nowMs,
      epochMs() {
        return START_EPOCH_MS - START_MS + clock.nowMs + clock.stepMs + (++reads % 2) * clock.tickMs;
      },
    }),
    pass(seconds, scenario = {}) {
      const key = JSON.stringify(scenario);
      const load = loads.get(key) ?? simulateSeconds({ ...PLAIN, ...scenario }, random);
      loads.set(key, load);
      for (let second = 0; second < seconds; second++) {
        const { own, peers } = load.next().value ?? { own: [], peers: [] };
        const ended = [...own, ...peers].toSorted(() => random() - 0.5);
        for (const observation of ended) {
          clock.nowMs += 1_000 / ended.length;
          ring.add(toRecord(observation));
        }
      }
    },
    ask: (candidate, baseline = null, changes = {}) =>
      scene.judge.ask({
        selectors: { candidate: parse(candidate), baseline: baseline === null ? null : parse(baseline) },
        texts: { candidate, baseline },
        sinceEpochMs: null,
        falseAlarm: 0.001,
        missed: 0.05,
        tolerance: 1.01,
        ...changes,
      }),
  };
  return scene;
}

function parse(text: string) {
  const selector = parseSelector(text);
  if (selector === null) throw new Error(`no selector: ${text}`);
  return selector;
}

/** A replica that serves. */
export function newReplica(): Replica {
  return {
    models: ['m'],
    host: 'h',
    drained: false,
    rampShare: null,
    inflight: 0,
    isRemoving: false,
    knownSinceMs: START_MS - 60_000,
    changedMs: -Infinity,
    reachability: { state: 'reachable', reason: null, sinceMs: 0 },
    health: { state: 'ok', sinceMs: 0, failingBy: [] },
  };
}

/** The members that a judge reads. */
function toRegistered(name: string, replica: Replica, nowMs: number): RegisteredReplica {
  const { models, host, serverId, drained, rampShare, reachability, health, inflight } = replica;
  const { isRemoving, knownSinceMs, changedMs } = replica;
  return {
    name,
    isRemoving,
    knownSinceMs,
    changedMs,
    models,
    reachability: { ...reachability, lastedMs: nowMs - reachability.sinceMs },
    health: { ...health, lastedMs: nowMs - health.sinceMs },
    inflight,
    shadow: null,
    config: { host, serverId },
    drain: { drained },
    ramp: rampShare === null ? null : { share: rampShare },
  } as unknown as RegisteredReplica;
}

function toRecord(observation: Observation): RequestRecord {
  const { replica, endpoint, stream, e2eMs, outcome } = observation;
  const { model, promptTokens, cachedTokens, completionTokens, ttftMs, gapMs, finish } = observation;
  return {
    request_id: '',
    trace_id: '',
    ts: '',
    replica,
    endpoint,
    stream,
    e2e_ms: e2eMs,
    status: outcome === 'ok' ? 200 : 500,
    ...(model !== null && { model }),
    ...(promptTokens !== null && { prompt_tokens: promptTokens }),
    ...(cachedTokens !== null && { cached_tokens: cachedTokens }),
    ...(completionTokens !== null && { completion_tokens: completionTokens }),
    ...(ttftMs !== null && { ttft_ms: ttftMs }),
    ...(gapMs !== null && { gap_p50_ms: gapMs }),
    ...(finish !== null && { finish_reasons: [finish] }),
  };
}
