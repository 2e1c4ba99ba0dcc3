import { StartError } from '#base';
import { printDuration } from '#config/values';
import { toReason, toReasonOfUndrain } from '#rollout-board/facts';
import type { ComparisonEnd } from '../compare/compare-replica.ts';
import { DrainRefused } from '../gateways/gateways.ts';
import type { RollContext, RollEnd } from '../roll-context.ts';
import { RolloutStop } from '../stop.ts';
import { untilSafeToStop } from './drain.ts';
import { runFor, untilAnswering } from './restart.ts';

/**
 * Draws the consequences of a comparison. A bad replica is drained again, and with `--on-bad` rolled back, unless only
 * warnings are wanted or the replica is accepted. Throws a RolloutStop if the rollout does not go on.
 */
export async function decide(
  name: string,
  end: ComparisonEnd,
  parentSpanId: string,
  context: RollContext,
): Promise<RollEnd> {
  const { settings, store, isAccepted } = context;
  const { kind, sentence } = end;
  if (kind === 'good' || settings.verdict !== 'strict' || isAccepted(name)) {
    await store(name, { stage: 'done', sentence });
    return { kind: kind === 'good' ? 'done' : 'warned', sentence };
  }
  if (kind === 'undecided') throw new RolloutStop('undecided', `${sentence}. It goes on serving`);
  await hold(name, sentence, context);
  if (settings.onBad === null) throw new RolloutStop('bad', `${sentence}. It is drained again`);
  await rollBack(name, sentence, settings.onBad, parentSpanId, context);
  const rolledBack = `${sentence}. It was rolled back, and serves`;
  await store(name, { stage: 'rolled_back', sentence: rolledBack });
  if (settings.onBadThen === 'stop') throw new RolloutStop('bad', rolledBack);
  return { kind: 'rolled_back', sentence: rolledBack };
}

/** Serves with a replica that was held, because a person takes it as it is. */
export async function accept(
  name: string,
  sentence: string | null,
  { settings, gateways, store, reporter }: RollContext,
): Promise<RollEnd> {
  const ramp = printDuration(settings.rampMs);
  await gateways.undrain(name, { reason: toReasonOfUndrain(settings.reason), ramp });
  const accepted = `was accepted${sentence === null ? '' : ` although it ${sentence}`}`;
  await store(name, { stage: 'done', sentence: accepted });
  reporter.show(name, 'ramp', `serves again, with a ramp of ${ramp}`);
  return { kind: 'warned', sentence: accepted };
}

/** Drains a bad replica again, with its verdict as the reason. */
async function hold(
  name: string,
  sentence: string,
  { settings, gateways, marks, store }: RollContext,
): Promise<void> {
  // Before the drain: after a crash in between, the replica is restarted and not taken for a good one.
  await store(name, { stage: 'held', sentence });
  try {
    await gateways.drain(name, { reason: toReason(settings.reason, marks[0], sentence), isForced: false });
  } catch (error) {
    if (error instanceof DrainRefused) {
      const why = `because it could not be drained: ${error.message}`;
      throw new RolloutStop('bad', `${sentence}. It goes on serving, ${why}`);
    }
    if (!(error instanceof RolloutStop || error instanceof StartError)) throw error;
    throw new RolloutStop('bad', `${sentence}. Its drain is not certain: ${error.message}`);
  }
}

/** Runs the command of `--on-bad` for a drained replica, and serves with it again. */
async function rollBack(
  name: string,
  sentence: string,
  command: string,
  parentSpanId: string,
  context: RollContext,
): Promise<void> {
  const { settings, gateways, reporter, trace } = context;
  const step = (each: string) => ({ step: each, parentSpanId, replica: name });
  try {
    const view = await untilSafeToStop(name, context);
    reporter.show(name, 'restarting', `${sentence}. It is being rolled back`);
    await trace.step(step('restart'), () => runFor(view, command, context));
    await trace.step(step('answer'), () => untilAnswering(name, context));
    const change = { reason: toReasonOfUndrain(settings.reason), ramp: printDuration(settings.rampMs) };
    await trace.step(step('rollout_undrain'), () => gateways.undrain(name, change));
  } catch (error) {
    if (error instanceof RolloutStop && error.kind === 'interrupted') throw error;
    if (!(error instanceof RolloutStop || error instanceof StartError)) throw error;
    throw new RolloutStop('rollback_failed', `${sentence}. It was not rolled back: it ${error.message}`);
  }
}
