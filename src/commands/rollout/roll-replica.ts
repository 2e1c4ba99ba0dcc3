import { setTimeout as sleep } from 'node:timers/promises';
import type { Environment } from '../../config/environment.ts';
import { printDuration } from '../../config/values/values.ts';
import { UnreachableError } from '../admin/client.ts';
import { type ComparisonEnd, compareReplica } from './compare/compare-replica.ts';
import { toFigures } from './compare/describe.ts';
import type { ReplicaView, RolloutGateways } from './gateways.ts';
import type { Reporter } from './report/reporter.ts';
import { runCommand, untilAway, untilReady } from './restart.ts';
import { newSpanId, type RolloutTrace } from './rollout-trace.ts';
import type { RolloutSettings } from './settings.ts';
import type { ReplicaState } from './state-file.ts';
import { RolloutStop } from './stop.ts';

/** What the rollout of each replica works with. */
export interface RollContext {
  readonly settings: RolloutSettings;
  readonly gateways: RolloutGateways;
  readonly trace: RolloutTrace;
  readonly reporter: Reporter;
  readonly env: Environment;
  readonly signal: AbortSignal;
  readonly isUnderWay: (name: string) => boolean;
  /** Of one replica's comparison. */
  readonly falseAlarm: number;
  /** Asks a person to restart a replica, one at a time. */
  readonly askPerson: (question: string) => Promise<string | null>;
  /** Stores how far a replica is. */
  readonly store: (name: string, stage: ReplicaState['stage'], sentence?: string) => Promise<void>;
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
  const { settings, gateways, trace, reporter, store, signal } = context;
  const step = (each: string) => ({ step: each, parentSpanId, replica: name });
  const isRestarted = state.stage === 'restarted' || state.stage === 'undrained';
  if (!isRestarted) {
    await store(name, 'draining');
    const view = await trace.step(step('rollout_drain'), () => drain(name, context));
    await trace.step(step('restart'), () => restart(view, context));
    await store(name, 'restarted');
  }
  if (state.stage !== 'undrained') {
    reporter.show(name, 'starting', 'waits until the engine answers');
    const wait = {
      ...{ gateways, signal, timeoutMs: settings.restartMs, hasCompletion: settings.isProbed },
      onProblem: (problem: string) => reporter.show(name, 'starting', `not ready: ${problem}`),
    };
    await trace.step(step('answer'), () => untilReady(name, wait));
  }
  const look = await gateways.follow();
  const ramp = printDuration(settings.rampMs);
  await trace.step(step('rollout_undrain'), () => gateways.undrain(name, { reason: settings.reason, ramp }));
  await store(name, 'undrained');
  reporter.show(name, 'ramp', 'serves');
  const rampSpan = { ...step('ramp'), spanId: newSpanId(), startedEpochMs: Date.now() };
  const task = {
    ...{ name, gateways, look, signal, falseAlarm: context.falseAlarm },
    ...{
      isUnderWay: context.isUnderWay,
      timeoutMs: settings.compareMs,
      isJudged: settings.verdict !== 'off',
    },
    onLook: (phase: 'ramp' | 'compare', text: string) => reporter.show(name, phase, toLookText(phase, text)),
    onRampEnd: () => void trace.end(rampSpan, { outcome: 'ok' }),
  };
  const end = await trace.step(step('compare'), () => compareReplica(task), toStepEnd);
  return await decide(name, end, context);
}

function toLookText(phase: 'ramp' | 'compare', text: string): string {
  return phase === 'ramp' ? `serves ${text}` : `is compared: ${text}`;
}

function toStepEnd({ kind, sentence, comparison }: ComparisonEnd) {
  return { outcome: kind, sentence, figures: toFigures(comparison) };
}

/** Drains it on all gateways and waits until it is safe to stop. */
async function drain(name: string, context: RollContext): Promise<ReplicaView> {
  const { gateways, settings, reporter, signal } = context;
  reporter.show(name, 'draining', 'is drained');
  try {
    await gateways.drain(name, settings);
  } catch (error) {
    // Refused, or not certain: it was not begun.
    await context.store(name, 'waiting');
    throw error;
  }
  const endMs = performance.now() + settings.drainMs;
  for (;;) {
    const view = await find(name, gateways);
    if (view?.isSafeToStop === true) return view;
    if (view?.isDrained === false) throw new RolloutStop('failed', 'was undrained by somebody else');
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

/** Null while the gateway does not answer. */
async function find(name: string, gateways: RolloutGateways): Promise<ReplicaView | null> {
  try {
    const view = (await gateways.replicas()).find((replica) => replica.name === name);
    if (view === undefined) throw new RolloutStop('failed', 'is not a replica of this gateway any more');
    return view;
  } catch (error) {
    if (error instanceof UnreachableError) return null;
    throw error;
  }
}

/** By the command, by whoever restarts the engine elsewhere, or by the person at the terminal. */
async function restart(view: ReplicaView, context: RollContext): Promise<void> {
  const { settings, gateways, reporter, env, signal, askPerson } = context;
  const { name } = view;
  const timeoutMs = settings.restartMs;
  if (settings.exec !== null) {
    reporter.show(name, 'restarting', 'is restarted');
    const onOutput = (line: string) => reporter.output(name, line);
    return await runCommand(settings.exec, view, { env, timeoutMs, signal, onOutput });
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
  const { settings, gateways, store } = context;
  const { kind, sentence } = end;
  if (kind === 'good' || settings.verdict !== 'strict') {
    await store(name, 'done', sentence);
    return { kind: kind === 'good' ? 'done' : 'warned', sentence };
  }
  if (kind === 'undecided') throw new RolloutStop('undecided', `${sentence}. It goes on serving`);
  const reason = `${settings.reason}: ${sentence}`.slice(0, 250);
  try {
    await gateways.drain(name, { reason, isForced: false });
  } catch (error) {
    if (!(error instanceof RolloutStop)) throw error;
    throw new RolloutStop(
      'bad',
      `${sentence}. It goes on serving, because it could not be drained: ${error.message}`,
    );
  }
  await store(name, 'held', sentence);
  throw new RolloutStop('bad', `${sentence}. It is drained again`);
}
