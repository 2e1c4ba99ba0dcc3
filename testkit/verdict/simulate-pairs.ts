import type { PairObservation, PairSide } from '#verdict/pairs';

/** How simulated pairs differ from those of equal replicas. */
export interface PairScenario {
  /** How many times slower the shadow is. */
  readonly slowness: number;
  /**
   * How much of the variance of times within like requests is the request's own, and so the same on both sides: the rest is
   * that of each replica.
   */
  readonly commonShare: number;
  /** The share of answers that the shadow fails; the primary fails 1 in 1,000. */
  readonly errorShare: number;
  /** The share of its answers that end half-way. */
  readonly truncatedShare: number;
  /** The share of its answers that miss their stop token, and go on to the limit. */
  readonly unstoppedShare: number;
  /** The share of outputs that are other ones for good. */
  readonly changedShare: number;
  /** The share of outputs in which either side differs by chance, because an engine is not exact. */
  readonly inexactShare: number;
}

/** A shadow that is like its primaries. */
export const EQUAL_PAIRS: PairScenario = {
  slowness: 1,
  commonShare: 0.9,
  errorShare: 0.001,
  truncatedShare: 0,
  unstoppedShare: 0,
  changedShare: 0,
  inexactShare: 0.02,
};

/** The standard deviations of the logarithms of times of like requests. */
const NOISE = { first: 0.5, gaps: 0.2 } as const;
const MAX_TOKENS = 1_024;
/** Half of all requests ask for the same output each time. */
const FIXED_SHARE = 0.5;

/** A pair, with the tokens of its prompt. */
export interface SimulatedPair extends PairObservation {
  readonly promptTokens: number;
}

/** Creates the generator of pairs. */
export function createPairs(scenario: PairScenario, random: () => number): () => SimulatedPair {
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  const { commonShare } = scenario;
  return () => {
    const common = { first: normal(), gaps: normal() };
    const prompt = (random() < 0.2 ? 4_000 : 300) * Math.exp(0.5 * normal());
    const isFixed = random() < FIXED_SHARE;
    const tokens = toTokens(normal());
    const sideOf = (isOwn: boolean): PairSide => {
      const noise = (of: 'first' | 'gaps') =>
        Math.exp(NOISE[of] * (Math.sqrt(commonShare) * common[of] + Math.sqrt(1 - commonShare) * normal()));
      const slowness = isOwn ? scenario.slowness : 1;
      const isError = random() < (isOwn ? scenario.errorShare : 0.001);
      const isUnstopped = isOwn && random() < scenario.unstoppedShare;
      const isTruncated = isOwn && random() < scenario.truncatedShare;
      const full = isFixed ? tokens : toTokens(normal());
      const completionTokens = isUnstopped ? MAX_TOKENS : isTruncated ? Math.ceil(full / 2) : full;
      return {
        outcome: isError ? 'error' : 'ok',
        firstTokenMs: slowness * (20 + prompt / 20) * noise('first'),
        gapMs: slowness * 20 * noise('gaps'),
        durationMs: 1_000,
        completionTokens,
        finish: completionTokens >= MAX_TOKENS ? 'length' : 'stop',
        tools: 'none',
        inflight: 4,
      };
    };
    const [own, peer] = [sideOf(true), sideOf(false)];
    const isOk = own.outcome === 'ok' && peer.outcome === 'ok';
    return {
      shadow: 's',
      primary: 'p',
      model: 'm',
      endpoint: '/v1/chat/completions',
      stream: true,
      tookMs: 1_000,
      own,
      peer,
      promptTokens: Math.round(prompt),
      sameToolCalls: null,
      output:
        isFixed && isOk ? outputOf(scenario, own.completionTokens !== peer.completionTokens, random) : null,
    };
  };
}

function toTokens(normal: number): number {
  return Math.min(MAX_TOKENS, Math.max(1, Math.round(150 * Math.exp(0.8 * normal))));
}

function outputOf(
  { changedShare, inexactShare }: PairScenario,
  hasOtherLength: boolean,
  random: () => number,
): PairObservation['output'] {
  const isChanged = hasOtherLength || random() < changedShare;
  const isInexact = random() < inexactShare;
  if (!isChanged && !isInexact) return { isEqual: true, atToken: null, atByte: null, again: null };
  const again = isChanged ? 'as_shadow' : random() < 0.5 ? 'as_shadow' : 'as_primary';
  const atToken = Math.floor(random() * 100);
  return { isEqual: false, atToken, atByte: atToken * 4, again };
}
