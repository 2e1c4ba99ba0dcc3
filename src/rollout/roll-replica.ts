import { setTimeout as sleep } from 'node:timers/promises';
import { itemsOf } from '#base/parsed';
import { RefusedError, UnreachableError } from '#cli/admin-client';
import { toOneLine } from '#cli/terminal';
import { printDuration } from '#config/values';
import { toReasonOfUndrain } from '#rollout-board/facts';
import { type ComparisonEnd, compareReplica } from './compare/compare-replica.ts';
import type { ReplicaState } from './progress-file/state-file.ts';
import type { Figures } from './report/reporter.ts';
import type { RollContext, RollEnd } from './roll-context.ts';
import { beginSpan } from './rollout-trace.ts';
import { accept, decide } from './steps/decide.ts';
import { drain } from './steps/drain.ts';
import { restart, untilAnswering } from './steps/restart.ts';
import { RolloutStop } from './stop.ts';

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
  const rampSpan = beginSpan(step('ramp'));
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

const LOOK_EVERY_MS = 1_000;
/** The gateways end a shadow that is not renewed for a minute. */
const RENEW_EVERY_MS = 15_000;

/** Another version of an engine may well give other outputs: alone, that stops no rollout. */
const TOLD_ONLY = 'outputs';

/**
 * Judges a restarted replica by copies of live requests while it is drained for clients. Whatever happens, it is no shadow in
 * the end. Throws a RolloutStop if the signal aborts or a gateway refuses.
 */
async function judgeInShadow(
  name: string,
  share: string,
  { gateways, settings, reporter, signal, falseAlarm }: RollContext,
): Promise<ComparisonEnd> {
  const endMs = performance.now() + settings.compareMs;
  let renewedMs = Number.NEGATIVE_INFINITY;
  let end: ComparisonEnd = { kind: 'undecided', sentence: 'was not compared in the shadow', figures: {} };
  reporter.show(name, 'compare', `gets copies of ${share} of the requests, and no client`);
  try {
    while (performance.now() < endMs) {
      if (signal.aborted) throw new RolloutStop('interrupted', 'is drained; it was judged in the shadow');
      try {
        if (performance.now() - renewedMs >= RENEW_EVERY_MS) {
          await gateways.beginShadow(name, share);
          renewedMs = performance.now();
        }
        const { verdict, sentence, summary, figures, answer } = await gateways.judgeShadow(name, falseAlarm);
        end = { kind: verdict, sentence: toOneLine(`in the shadow ${sentence}`), figures };
        if (verdict === 'bad' && isToldOnly(answer)) return { ...end, kind: 'undecided' };
        if (verdict !== 'undecided') return end;
        reporter.show(name, 'compare', toOneLine(`is judged in the shadow: ${summary}`), figures);
      } catch (error) {
        if (error instanceof RefusedError) throw new RolloutStop('failed', toOneLine(error.reason));
        if (!(error instanceof UnreachableError)) throw error;
      }
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
    return end;
  } finally {
    await gateways.endShadow(name);
  }
}

function isToldOnly(answer: unknown): boolean {
  const reasons = itemsOf(answer, 'reasons');
  return reasons.length > 0 && reasons.every((reason) => reason === TOLD_ONLY);
}
