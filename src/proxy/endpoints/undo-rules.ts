import type { Engine } from '#replicas/terms';
import { type Flag, readFlag } from '../request/inspection/engine-flags.ts';
import type { UndoRules } from '../response/undo-usage.ts';

/** Nothing but the usage chunk itself is undone. */
export const LEAVE_ALL: UndoRules = { cutUsage: 'never', movedMember: null };

/** `usage` members that are null or zeros are undone too. */
export const CUT_PLACEHOLDERS: UndoRules = { cutUsage: 'placeholder', movedMember: null };

/**
 * What our `include_usage` changes in the streams of an engine, so that it can be undone. Facts: docs/engines.md,
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
        cutUsage: readFlag(continuousUsageStats, engine) === true ? 'always' : 'placeholder',
        movedMember: 'systemFingerprint',
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
