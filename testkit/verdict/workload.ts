import type { Observation } from '#verdict/blocks';

/** How the requests of a simulated rollout differ from the plainest ones. All of them may be on at once. */
export interface Scenario {
  /** Of all replicas together; each gets an even share. */
  readonly requestsPerSecond: number;
  /** How many times slower the replica is than its peers. */
  readonly slowness: number;
  /** Whether only the time to the first token is slower. */
  readonly isSlowToStart: boolean;
  /** The share of its requests that fail; its peers fail 1 in 1,000. */
  readonly errorShare: number;
  /** A tenth of all times is from a Pareto distribution without a variance. */
  readonly isHeavyTailed: boolean;
  /** The load of all replicas together rises and falls by this standard deviation of the logarithm, within 5 s. */
  readonly sharedLoad: number;
  /** The times of each replica rise and fall on their own by this standard deviation of the logarithm, within 2 s. */
  readonly ownLoad: number;
  /** The replica gets long prompts four times as often as its peers. */
  readonly hasOtherMix: boolean;
  /** After its restart the replica is three times as slow and has nothing in its cache; both fade away within 20 s. */
  readonly isCold: boolean;
}

/** Equal replicas, 200 requests per second. */
export const PLAIN: Scenario = {
  requestsPerSecond: 200,
  slowness: 1,
  isSlowToStart: false,
  errorShare: 0.001,
  isHeavyTailed: false,
  sharedLoad: 0,
  ownLoad: 0,
  hasOtherMix: false,
  isCold: false,
};

/** The scenarios of equal replicas. */
export const EQUAL_REPLICAS: readonly (readonly [title: string, scenario: Scenario])[] = [
  ['equal replicas', PLAIN],
  ['heavy tails', { ...PLAIN, isHeavyTailed: true }],
  ['load that all share', { ...PLAIN, sharedLoad: 0.5 }],
  ['load of their own', { ...PLAIN, ownLoad: 0.05 }],
  ['other prompt lengths', { ...PLAIN, hasOtherMix: true }],
  ['cold start', { ...PLAIN, isCold: true }],
  [
    'all of these',
    { ...PLAIN, isHeavyTailed: true, sharedLoad: 0.5, ownLoad: 0.05, hasOtherMix: true, isCold: true },
  ],
];

const REPLICAS = 4;

/** How long the replica's ramp took before its times are compared. */
const RAMP_S = 60;
const COLD_FADES_S = 20;
const SHARED_FADES_S = 5;
const OWN_FADES_S = 2;
const STEP_S = 0.25;
const TAIL = { share: 0.1, exponent: 1.5 } as const;
const NOISE = { first: 0.5, gaps: 0.2 } as const;

/**
 * The observations of a simulated rollout, second after second from the end of its ramp. `choose`: the replica that gets
 * the next request, from 0, which is the one that is rolled.
 */
export function* simulateSeconds(
  scenario: Scenario,
  random: () => number,
  choose: () => number = () => Math.floor(random() * REPLICAS),
): Generator<{ readonly own: readonly Observation[]; readonly peers: readonly Observation[] }> {
  const normal = createNormal(random);
  const shared = createDrift(scenario.sharedLoad, SHARED_FADES_S, normal);
  const loads = Array.from({ length: REPLICAS }, () => createDrift(scenario.ownLoad, OWN_FADES_S, normal));
  for (let second = 0; ; second++) {
    const own: Observation[] = [];
    const peers: Observation[] = [];
    for (let step = 0; step < 1 / STEP_S; step++) {
      const sharedLoad = shared();
      const ownLoads = loads.map((load) => load());
      for (let left = scenario.requestsPerSecond * STEP_S - random(); left > 0; left--) {
        const replica = choose();
        const coldness =
          scenario.isCold && replica === 0 ? Math.exp(-(RAMP_S + second + step * STEP_S) / COLD_FADES_S) : 0;
        const load = Math.exp(sharedLoad + (ownLoads[replica] ?? 0)) * (1 + 2 * coldness);
        (replica === 0 ? own : peers).push(
          createObservation(scenario, { replica, load, coldness, random, normal }),
        );
      }
    }
    yield { own, peers };
  }
}

interface Moment {
  readonly replica: number;
  readonly load: number;
  readonly coldness: number;
  readonly random: () => number;
  readonly normal: () => number;
}

function createObservation(scenario: Scenario, moment: Moment): Observation {
  const { replica, load, coldness, random, normal } = moment;
  const isOwn = replica === 0;
  const isLong = random() < (scenario.hasOtherMix && isOwn ? 0.8 : 0.2);
  const promptTokens = Math.round((isLong ? 4_000 : 300) * Math.exp(0.5 * normal()));
  const cachedShare = (random() < 0.7 ? 0.6 : 0) * (1 - coldness);
  const cachedTokens = Math.round(promptTokens * cachedShare);
  const slowness = isOwn ? scenario.slowness : 1;
  const isTail = scenario.isHeavyTailed && random() < TAIL.share;
  const tail = isTail ? random() ** (-1 / TAIL.exponent) : 1;
  const computed = promptTokens - cachedTokens;
  const ttftMs = slowness * load * tail * (15 + computed / 20) * Math.exp(NOISE.first * normal());
  const gapMs = (scenario.isSlowToStart ? 1 : slowness) * load * tail * 20 * Math.exp(NOISE.gaps * normal());
  const completionTokens = Math.max(1, Math.round(120 * Math.exp(0.8 * normal())));
  const isError = random() < (isOwn ? scenario.errorShare : PLAIN.errorShare);
  return {
    replica: `r${replica}`,
    model: 'm',
    endpoint: '/v1/chat/completions',
    stream: random() < 0.8,
    promptTokens,
    cachedTokens,
    completionTokens,
    ttftMs,
    gapMs,
    maxTokens: null,
    e2eMs: ttftMs + gapMs * completionTokens,
    outcome: isError ? 'error' : 'ok',
    finish: isError ? null : completionTokens > 400 ? 'length' : 'stop',
  };
}

/** Numbers with the standard normal distribution (Box and Muller). */
function createNormal(random: () => number): () => number {
  let spare: number | null = null;
  return () => {
    if (spare !== null) {
      const kept = spare;
      spare = null;
      return kept;
    }
    const radius = Math.sqrt(-2 * Math.log(1 - random()));
    const angle = 2 * Math.PI * random();
    spare = radius * Math.sin(angle);
    return radius * Math.cos(angle);
  };
}

/** A value that drifts around zero with this standard deviation, and forgets where it was within some seconds. */
function createDrift(deviation: number, fadesS: number, normal: () => number): () => number {
  if (deviation === 0) return () => 0;
  const kept = Math.exp(-STEP_S / fadesS);
  const added = deviation * Math.sqrt(1 - kept * kept);
  let value = deviation * normal();
  return () => {
    value = kept * value + added * normal();
    return value;
  };
}
