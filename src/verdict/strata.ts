import type { Observation } from '#verdict/blocks';
import type { Pair } from './rank-difference.ts';

/** What is measured of each request. */
export const MEASURES = ['first_token', 'gaps', 'duration', 'lengths', 'cached'] as const;

/** `duration`: of a response in one piece. `lengths`: tokens of the completion. `cached`: the share of the prompt. */
export type Measure = (typeof MEASURES)[number];

/** Steps of the logarithm of a length within which two requests are alike: a factor of √2. */
const STEPS_PER_DOUBLING = 2;

/** Shorter times are not told apart: how the network cuts a stream into reads decides them. */
const SHORTEST_MS = 1;

/** A time as it is compared; null: there is none. */
export function toComparedMs(ms: number | null): number | null {
  return ms === null ? null : Math.max(SHORTEST_MS, ms);
}

/** The value of a request; null if it has none. Requests that failed are not measured. */
function measuredValueOf(measure: Measure, observation: Observation): number | null {
  if (observation.outcome !== 'ok') return null;
  const { stream, ttftMs, gapMs, e2eMs, completionTokens, promptTokens, cachedTokens } = observation;
  switch (measure) {
    case 'first_token':
      return stream ? toComparedMs(ttftMs) : null;
    case 'gaps':
      return stream ? toComparedMs(gapMs) : null;
    case 'duration':
      return stream ? null : toComparedMs(e2eMs);
    case 'lengths':
      return completionTokens;
    case 'cached':
      return promptTokens === null || promptTokens === 0 || cachedTokens === null
        ? null
        : cachedTokens / promptTokens;
  }
}

/**
 * The group of requests whose errors and finish reasons are comparable: a limit decides how a completion ends. Not by
 * `stream`: what fails before its answer is no stream yet, and would be in no group with the streams of the peers.
 */
export function kindOf({ model, endpoint, maxTokens }: Observation): string {
  return `${model}\n${endpoint}\n${toStep(maxTokens)}`;
}

/**
 * The group of like requests that a request belongs to. Times depend on the prompt that the engine had to compute, so a
 * cache that is still empty is no slowness; the time of a whole response also depends on its length.
 */
function stratumOf(measure: Measure, observation: Observation): string {
  const { model, endpoint, stream, promptTokens, cachedTokens, completionTokens, maxTokens } = observation;
  const isTime = measure === 'first_token' || measure === 'gaps' || measure === 'duration';
  const prompt = isTime && promptTokens !== null ? promptTokens - (cachedTokens ?? 0) : promptTokens;
  const completion =
    measure === 'duration' ? toStep(completionTokens) : measure === 'lengths' ? toStep(maxTokens) : '';
  return `${model}\n${endpoint}\n${stream}\n${toStep(prompt)}\n${completion}`;
}

function toStep(length: number | null): string {
  return length === null ? '?' : String(Math.round(STEPS_PER_DOUBLING * Math.log2(Math.max(1, length))));
}

/** The values of one measure in groups of like requests, sorted. Groups with values of only one side are left out. */
export function toPairs(
  measure: Measure,
  own: readonly Observation[],
  peers: readonly Observation[],
): readonly Pair[] {
  const groups = new Map<string, { readonly own: number[]; readonly peers: number[] }>();
  for (const observation of own) {
    const value = measuredValueOf(measure, observation);
    if (value === null) continue;
    const stratum = stratumOf(measure, observation);
    const group = groups.get(stratum) ?? { own: [], peers: [] };
    groups.set(stratum, group);
    group.own.push(value);
  }
  for (const observation of peers) {
    const value = measuredValueOf(measure, observation);
    if (value !== null) groups.get(stratumOf(measure, observation))?.peers.push(value);
  }
  const toSorted = (values: readonly number[]) => new Float64Array(values).sort();
  return Array.from(groups.values(), (group) => ({
    own: toSorted(group.own),
    peers: toSorted(group.peers),
  })).filter((pair) => pair.peers.length > 0);
}
