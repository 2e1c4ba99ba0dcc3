import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '#base';
import { UnreachableError } from '#cli/admin-client';
import type { Signals } from '#cli/command';
import type { Environment } from '#config/secrets';
import { printDuration } from '#config/values';
import { type ComparisonEnd, compareReplica } from './compare/compare-replica.ts';
import { DrainRefused, type RolloutGateways } from './gateways/gateways.ts';
import { findForeignDrain, type ReplicaView } from './gateways/replica-view.ts';
import { toReason } from './gateways/rollout-mark.ts';
import type { ReplicaState } from './progress-file/state-file.ts';
import type { Figures, Reporter } from './report/reporter.ts';
import { runCommand, untilCommandEnded } from './restart/run-command.ts';
import { untilAway, untilReady } from './restart/until-ready.ts';
import { newSpanId, type RolloutTrace } from './rollout-trace.ts';
import type { RolloutSettings } from './settings.ts';
import { RolloutStop } from './stop.ts';

/** What the rollout of each replica works with. */
export interface RollContext {
  readonly settings: RolloutSettings;
  /** The mark of this rollout, and then those of the rollouts that it replaces. */
  readonly marks: readonly [own: string, ...givenUp: string[]];
  readonly gateways: RolloutGateways;
  readonly trace: RolloutTrace;
  readonly reporter: Reporter;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly sendToGroup: Signals['sendToGroup'];
  readonly isUnderWay: (name: string) => boolean;
  /** Of one replica's comparison. */
  readonly falseAlarm: number;
  /** Asks a person to restart a replica, one at a time. */
  readonly askPerson: (question: string) => Promise<string | null>;
  /** Stores how far a replica is. What is not given stays. */
  readonly store: (name: string, changes: Partial<Omit<ReplicaState, 'name'>>) => Promise<void>;
}

/** How the rollout of a replica ended. */
export interface RollEnd {
  readonly kind: 'done' | 'warned';
  readonly sentence: string;
}

const POLL_MS = 250;

/**
 * Rolls one replica from the stage that it has reached: drain, restart, undrain, ramp, comparison. Throws a RolloutStop
 * if it cannot go on; the stage is stored, so that a later call goes on there. Its steps are spans below the given one.
 */
export async function rollReplica(
  state: ReplicaState,
  parentSpanId: string,
  context: RollContext,
): Promise<RollEnd> {
  const { name } = state;
  const { settings, marks, gateways, trace, reporter, store, signal } = context;
  const step = (each: string) => ({ step: each, parentSpanId, replica: name });
  const isRestarted = state.stage === 'restarted' || state.stage === 'undrained';
  if (!isRestarted) {
    const view = await trace.step(step('rollout_drain'), () => drain(state, context));
    await trace.step(step('restart'), () => restart(view, state, context));
    await store(name, { stage: 'restarted', command: null });
  }
  if (state.stage !== 'undrained') {
    reporter.show(name, 'starting', 'waits until the engine answers');
    const wait = {
      gateways,
      signal,
      timeoutMs: settings.restartMs,
      hasCompletion: settings.isProbed,
      onProblem: (problem: string) => reporter.show(name, 'starting', `not ready: ${problem}`),
    };
    await trace.step(step('answer'), () => untilReady(name, wait));
  }
  if (state.stage !== 'undrained') {
    // What an earlier run undrained may have been drained by somebody since then.
    const change = { reason: toReason(settings.reason, marks[0]), ramp: printDuration(settings.rampMs) };
    await trace.step(step('rollout_undrain'), () => gateways.undrain(name, change));
    await store(name, { stage: 'undrained' });
  }
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
  const end = await trace.step(step('compare'), () => compareReplica(task), toStepEnd);
  return await decide(name, end, context);
}

function toLookText(phase: 'ramp' | 'compare', text: string): string {
  return phase === 'ramp' ? `serves ${text}` : `is compared: ${text}`;
}

function toStepEnd({ kind, sentence, figures }: ComparisonEnd) {
  return { outcome: kind, sentence, figures };
}

/** Drains it on all gateways and waits until it is safe to stop. */
async function drain(state: ReplicaState, context: RollContext): Promise<ReplicaView> {
  const { name, stage } = state;
  const { gateways, settings, marks, reporter, signal, store } = context;
  const checkForeign = (replicas: readonly ReplicaView[] | null) => {
    const foreign = replicas === null ? null : findForeignDrain(name, replicas, marks);
    if (foreign !== null) throw new DrainRefused(`another rollout has drained ${foreign}`);
  };
  reporter.show(name, 'draining', 'is drained');
  try {
    checkForeign(await lookAtReplicas(name, gateways));
    if (stage === 'waiting') await store(name, { stage: 'draining' });
    await gateways.drain(name, {
      reason: toReason(settings.reason, marks[0]),
      isForced: settings.isForced,
    });
  } catch (error) {
    // Otherwise it may be drained: a later run goes on with it.
    if (error instanceof DrainRefused && stage === 'waiting') await store(name, { stage: 'waiting' });
    if (error instanceof UnreachableError) {
      throw new RolloutStop(signal.aborted ? 'interrupted' : 'failed', `${error.message}; it may be drained`);
    }
    throw error;
  }
  const endMs = performance.now() + settings.drainMs;
  for (;;) {
    const replicas = await lookAtReplicas(name, gateways);
    const view = replicas?.find((replica) => replica.name === name);
    if (view?.isDrained === false) throw new RolloutStop('failed', 'was undrained by somebody else');
    if (replicas !== null && view?.isSafeToStop === true) {
      // Two rollouts that began at once see each other here at the latest, because the drain is known everywhere.
      await giveWay(name, context, () => checkForeign(replicas));
      return view;
    }
    const left = `${view?.inflight ?? '?'} in flight`;
    if (signal.aborted) throw new RolloutStop('interrupted', `is drained, with ${left}`);
    if (performance.now() >= endMs) {
      const limit = printDuration(settings.drainMs);
      throw new RolloutStop('failed', `is drained, but not safe to stop after ${limit}: ${left}`);
    }
    reporter.show(name, 'draining', `is drained, ${left}`);
    await sleep(POLL_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** Takes a drain back if the check says that another rollout is under way. */
async function giveWay(
  name: string,
  { gateways, settings, marks, store }: RollContext,
  check: () => void,
): Promise<void> {
  try {
    check();
  } catch (error) {
    await gateways.undrain(name, { reason: toReason(settings.reason, marks[0]), ramp: '0s' });
    await store(name, { stage: 'waiting' });
    throw error;
  }
}

/** Null while the gateway does not answer. */
async function lookAtReplicas(
  name: string,
  gateways: RolloutGateways,
): Promise<readonly ReplicaView[] | null> {
  try {
    const replicas = await gateways.replicas();
    if (!replicas.some((replica) => replica.name === name)) {
      throw new RolloutStop('failed', 'is not a replica of this gateway any more');
    }
    return replicas;
  } catch (error) {
    if (error instanceof UnreachableError) return null;
    throw error;
  }
}

/** Restarts the engine with the command, or waits until it is restarted elsewhere or by the person at the terminal. */
async function restart(view: ReplicaView, { command }: ReplicaState, context: RollContext): Promise<void> {
  const { settings, gateways, reporter, env, signal, sendToGroup, store, askPerson } = context;
  const { name } = view;
  const timeoutMs = settings.restartMs;
  if (settings.exec !== null) {
    const wait = { timeoutMs, signal, sendToGroup };
    const onWait = () => reporter.show(name, 'restarting', 'waits for the command of the earlier run');
    if (command !== null) await untilCommandEnded(command, { ...wait, onWait });
    reporter.show(name, 'restarting', 'is restarted');
    return await runCommand(settings.exec, view, {
      ...wait,
      env,
      onOutput: (line) => reporter.output(name, line),
      onStart: (group) => store(name, { command: group }),
    });
  }
  if (settings.isWatched) {
    const onProblem = (text: string) => reporter.show(name, 'restarting', `is safe to stop; ${text}`);
    return await untilAway(name, { gateways, timeoutMs, signal, onProblem });
  }
  reporter.show(name, 'restarting', 'is safe to stop');
  const typed = await askPerson(`${name} is safe to stop. Restart it, then press Enter.`);
  if (signal.aborted || typed === null) {
    throw new RolloutStop('interrupted', 'is drained; nobody has said that it was restarted');
  }
}

/** A bad replica is drained again, unless only warnings are wanted. */
async function decide(name: string, end: ComparisonEnd, context: RollContext): Promise<RollEnd> {
  const { settings, gateways, marks, store } = context;
  const { kind, sentence } = end;
  if (kind === 'good' || settings.verdict !== 'strict') {
    await store(name, { stage: 'done', sentence });
    return { kind: kind === 'good' ? 'done' : 'warned', sentence };
  }
  if (kind === 'undecided') throw new RolloutStop('undecided', `${sentence}. It goes on serving`);
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
  throw new RolloutStop('bad', `${sentence}. It is drained again`);
}
