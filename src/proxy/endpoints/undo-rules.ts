import type { Engine } from '#replicas/terms';
import type { UsageOption } from '../request/edits/include-usage.ts';
import { type Flag, readFlag } from '../request/inspection/engine-flags.ts';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { UndoRules } from '../response/undo-usage.ts';
import type { RecordedEndpoint } from './recorded-endpoint.ts';

/** Nothing but the usage chunk itself is undone. */
export const LEAVE_ALL: UndoRules = {
  usageChunk: 'withhold',
  cutUsage: 'never',
  movedMember: null,
  cutsTimings: false,
};

/** `usage` members that are null or zeros are undone too. */
export const CUT_PLACEHOLDERS: UndoRules = { ...LEAVE_ALL, cutUsage: 'placeholder' };

/** The client asked for usage, and the gateway for running figures. */
const CUT_RUNNING: UndoRules = { ...LEAVE_ALL, usageChunk: 'pass', cutUsage: 'always' };

/** The same with llama.cpp, whose running figures are in `timings`. */
const CUT_TIMINGS: UndoRules = { ...LEAVE_ALL, usageChunk: 'pass', cutsTimings: true };

/** What has to be undone in a stream for which the gateway has set these options; null: it has set none. */
export function toUndoRules(
  options: readonly UsageOption[],
  { streamOptions }: Pick<RequestFacts, 'streamOptions'>,
  { undoRules }: Pick<RecordedEndpoint, 'undoRules'>,
  engine: Engine,
): UndoRules | null {
  if (options.length === 0 || undoRules === null) return null;
  const cutsTimings = options.includes('timings_per_token');
  if (!options.includes('include_usage')) return cutsTimings ? CUT_TIMINGS : CUT_RUNNING;
  const isRunning = options.includes('continuous_usage_stats') || streamOptions.continuousUsageStats;
  return { ...undoRules(engine, isRunning), cutsTimings };
}

/**
 * What our `include_usage` changes in the streams of an engine, so that it can be undone. Facts: docs/endpoints.md,
 * testkit/engines.
 *
 * @param byEndpoint the rules of the engines whose endpoints differ
 */
export function undoRulesFor(
  engine: Engine,
  continuousUsageStats: Flag,
  byEndpoint: Readonly<Record<'llamacpp' | 'ollama', UndoRules>>,
): UndoRules {
  switch (engine) {
    case 'vllm':
      // vLLM honours continuous_usage_stats only together with include_usage. Without continuous_usage_stats,
      // releases of 2024 wrote `usage:null` on every chunk once include_usage was on, and no `usage` otherwise.
      return {
        usageChunk: 'withhold',
        cutUsage: readFlag(continuousUsageStats, engine) === true ? 'always' : 'placeholder',
        movedMember: 'systemFingerprint',
        cutsTimings: false,
      };
    case 'openai':
      return CUT_PLACEHOLDERS;
    case 'llamacpp':
    case 'ollama':
      return byEndpoint[engine];
    case 'sglang':
      // SGLang completions write `usage:null` unasked, and continuous_usage_stats works without include_usage.
      return LEAVE_ALL;
    case 'tgi':
      return LEAVE_ALL;
  }
}
