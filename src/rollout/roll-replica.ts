import { printDuration } from '#config/values';
import { toReasonOfUndrain } from '#rollout-board/facts';
import { type ComparisonEnd, compareReplica } from './compare/compare-replica.ts';
import type { ReplicaState } from './progress-file/state-file.ts';
import type { Figures } from './report/reporter.ts';
import type { RollContext, RollEnd } from './roll-context.ts';
import { newSpanId } from './rollout-trace.ts';
import { accept, decide } from './steps/decide.ts';
import { drain } from './steps/drain.ts';
import { judgeInShadow } from './steps/judge-in-shadow.ts';
import { restart, untilAnswering } from './steps/restart.ts';

/**
 * Rolls one replica from the stage that it has reached: drain, restart, a judgement in the shadow if that is wanted, undrain,
 * ramp, comparison. Throws a RolloutStop
 * if it cannot go on; the stage is stored, so that a later call goes on there. Its steps are spans below the given one.
 */
export async function rollReplica(
  state: ReplicaState,
  parentSpanId: string,
  context: RollContext,
): Promise<RollEnd> {
  const { name, stage } = state;
  const { settings, gateways, trace, store } = context;
  const step = (each: string) => ({ step: each, parentSpanId, replica: name });
  if (stage === 'held' && context.isAccepted(name)) {
    return await trace.step(step('rollout_undrain'), () => accept(name, state.sentence, context));
  }
  if (stage !== 'restarted' && stage !== 'undrained') {
    const view = await trace.step(step('rollout_drain'), () => drain(state, context));
    await trace.step(step('restart'), () => restart(view, state, context));
    await store(name, { stage: 'restarted', command: null });
  }
  if (stage !== 'undrained') {
    await trace.step(step('answer'), () => untilAnswering(name, context));
    const { shadow } = settings;
    if (shadow !== null) {
      const end = await trace.step(step('compare'), () => judgeInShadow(name, shadow, context), toStepEnd);
      if (end.kind === 'bad' && settings.verdict === 'strict' && !context.isAccepted(name))
        return await decide(name, end, parentSpanId, context);
      context.reporter.say(`${name} ${end.sentence}`);
    }
    // What an earlier run undrained may have been drained by somebody since then.
    const change = { reason: toReasonOfUndrain(settings.reason), ramp: printDuration(settings.rampMs) };
    await trace.step(step('rollout_undrain'), () => gateways.undrain(name, change));
    await store(name, { stage: 'undrained' });
  }
  const end = await compare(name, parentSpanId, context);
  return await decide(name, end, parentSpanId, context);
}

/** Compares the replica with its peers, during its ramp and after it. */
async function compare(name: string, parentSpanId: string, context: RollContext): Promise<ComparisonEnd> {
  const { settings, gateways, trace, reporter, signal } = context;
  const step = (each: string) => ({ step: each, parentSpanId, replica: name });
  reporter.show(name, 'ramp', `serves again, with a ramp of ${printDuration(settings.rampMs)}`);
  const rampSpan = { ...step('ramp'), spanId: newSpanId(), startedEpochMs: Date.now() };
  const task = {
    name,
    gateways,
    signal,
    falseAlarm: context.falseAlarm,
    isUnderWay: context.isUnderWay,
    timeoutMs: settings.compareMs,
    isJudged: settings.verdict !== 'off',
    onLook: (phase: 'ramp' | 'compare', text: string, figures: Figures) =>
      reporter.show(name, phase, toLookText(phase, text), figures),
    onRampEnd: () => void trace.end(rampSpan, { outcome: 'ok' }),
  };
  return await trace.step(step('compare'), () => compareReplica(task), toStepEnd);
}

function toLookText(phase: 'ramp' | 'compare', text: string): string {
  return phase === 'ramp' ? `serves ${text}` : `is compared: ${text}`;
}

function toStepEnd({ kind, sentence, figures }: ComparisonEnd) {
  return { outcome: kind, sentence, figures };
}
