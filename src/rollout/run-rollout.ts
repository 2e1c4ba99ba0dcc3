import { hostname } from 'node:os';
import { StartError } from '#base';
import type { AdminClient } from '#cli/admin-client';
import type { Signals } from '#cli/command';
import type { Environment } from '#config/secrets';
import { type RolloutFacts, type StopKind, toMark, toReasonOfLeft } from '#rollout-board/facts';
import { toAdvice, toShellWord } from './advice.ts';
import { RolloutGateways } from './gateways/gateways.ts';
import { isOver, type ReplicaState, type RolloutState, type StateFile } from './progress-file/state-file.ts';
import type { Reporter } from './report/reporter.ts';
import type { RollContext } from './roll-context.ts';
import { rollReplica } from './roll-replica.ts';
import { beginSpan, newSpanId, RolloutTrace, type StepEnd, type StepSpan } from './rollout-trace.ts';
import { EXIT_CODES, RolloutStop, toOutcome } from './stop.ts';
import { toPlanFacts, toRestarter } from './tell/plan-facts.ts';
import { type EndedStep, type RolloutHead, RolloutTeller } from './tell/rollout-teller.ts';
import { type Ending, Steering } from './tell/steering.ts';

/** At most so many rollouts of equal replicas are stopped by a false alarm. */
const FALSE_ALARM = 1 / 1_000;

/** What a rollout works with. */
interface RolloutCollaborators {
  /** Whether an earlier run has begun it. */
  readonly isResumed: boolean;
  /** Replicas that stay drained although no rollout is at work on them any more. */
  readonly leftDrained: readonly string[];
  readonly clients: readonly AdminClient[];
  readonly file: StateFile;
  readonly reporter: Reporter;
  readonly env: Environment;
  readonly pid: number;
  readonly signals: Pick<Signals, 'shutdown' | 'sendToGroup'>;
}

/** Why a rollout stopped, and at which replica; null: at none. */
interface Stopped {
  readonly kind: StopKind;
  readonly replica: string | null;
  readonly sentence: string;
}

/** How long the last calls of a rollout that was ended may take. */
const TIDY_MS = 20_000;

/**
 * Carries out what is left of a rollout: as many replicas at a time as its settings say, and as others ask of it meanwhile.
 * After the first problem no other replica is begun. Returns the exit code. The file is removed when the rollout is over.
 * Throws a StartError if a gateway refuses it: nothing was begun then.
 */
export async function runRollout(
  stored: RolloutState,
  { isResumed, leftDrained, clients, file, reporter, env, pid, signals }: RolloutCollaborators,
): Promise<number> {
  const { sendToGroup } = signals;
  const steering = new Steering();
  const signal = AbortSignal.any([signals.shutdown, steering.signal]);
  const gateways = new RolloutGateways(clients, signal);
  const driverId = newSpanId();
  const driver = { id: driverId, replaces: stored.driverId, ...findDriver(env), pid };
  const state = { ...stored, driverId, run: isResumed ? stored.run + 1 : stored.run };
  const { settings } = state;
  const teller = new RolloutTeller(toHead(state, driver), state.replicas.map(toBegun), {
    clients,
    steering,
    say: (line) => reporter.say(line),
    onAsk: () => tellState(),
  });
  const trace = new RolloutTrace(state.traceId, gateways, (span, end, durationMs) => {
    if (span.replica !== null && span.step !== 'replica') {
      teller.addStep(span.replica, toEndedStep(span, end, durationMs), end.figures ?? {});
    }
  });
  const parentSpanId = isResumed ? state.rootSpanId : null;
  const root = beginSpan(
    { step: 'rollout', replica: null, parentSpanId },
    isResumed ? newSpanId() : state.rootSpanId,
  );
  const replicas = new Map(state.replicas.map((replica) => [replica.name, replica]));
  const underWay = new Set<string>();
  const stops: Stopped[] = [];
  let asked: Promise<unknown> = Promise.resolve();
  const tellState = () => {
    const isPaused = steering.isPaused && underWay.size === 0;
    const sentence = toCounts([...replicas.values()]);
    teller.set({ state: isPaused ? 'paused' : 'running', sentence, problem: null });
  };
  const show: Reporter['show'] = (name, phase, text, figures) => {
    reporter.show(name, phase, text, figures);
    teller.show(name, phase, text, figures);
  };
  const context: RollContext = {
    settings,
    gateways,
    trace,
    reporter: { ...reporter, show },
    env,
    signal,
    sendToGroup,
    marks: [toMark(state.traceId), ...state.givenUp.map(toMark)],
    falseAlarm: FALSE_ALARM / state.replicas.length,
    isUnderWay: (name) => underWay.has(name),
    isAccepted: (name) => state.accepted.includes(name),
    async askPerson(question) {
      const answer = asked.then(() => Promise.race([reporter.ask(question), untilAborted(signal)]));
      asked = answer;
      return await answer;
    },
    async store(name, changes) {
      const before = replicas.get(name);
      if (before !== undefined) replicas.set(name, { ...before, ...changes });
      if (changes.stage !== undefined) teller.reach(name, changes.stage);
      await file.write({ ...state, replicas: [...replicas.values()] });
    },
  };

  async function roll(name: string): Promise<void> {
    const replica = replicas.get(name);
    if (replica === undefined) return;
    const span = beginSpan({ step: 'replica', replica: name, parentSpanId: root.spanId });
    underWay.add(name);
    tellState();
    try {
      const { kind, sentence } = await rollReplica(replica, span.spanId, context);
      show(name, kind === 'done' ? 'done' : 'warned', sentence);
      await trace.end(span, { outcome: kind === 'rolled_back' ? 'bad' : 'ok', sentence });
    } catch (error) {
      const stop = toStop(error, signal);
      const kind = stop.kind === 'interrupted' && steering.ending?.kind === 'aborted' ? 'aborted' : stop.kind;
      stops.push({ kind, replica: name, sentence: stop.message });
      show(name, 'stopped', stop.message);
      await trace.end(span, { outcome: toOutcome(kind), sentence: stop.message });
    } finally {
      underWay.delete(name);
      tellState();
    }
  }

  // Those that an earlier run has begun come first: they may be drained, and count as away.
  const waiting = state.replicas
    .filter((replica) => !isOver(replica, settings))
    .toSorted((a, b) => Number(a.stage === 'waiting') - Number(b.stage === 'waiting'))
    .map(({ name }) => name);
  for (const replica of state.replicas) {
    if (isOver(replica, settings)) reporter.show(replica.name, 'done', toEndedText(replica));
  }
  const work = async () => {
    while (waiting.length > 0) {
      await steering.untilMayGo(signal);
      const next = stops.length > 0 || signal.aborted ? undefined : waiting.shift();
      if (next === undefined) return;
      await roll(next);
    }
  };
  await teller.begin(signal);
  await file.write(state);
  await release(leftDrained, context);
  await Promise.all(Array.from({ length: settings.maxUnavailable }, work));

  const all = [...replicas.values()];
  const isBegun = all.some(({ stage }) => stage !== 'waiting');
  const { ending } = steering;
  if (signal.aborted && stops.length === 0) {
    const kind = ending?.kind === 'aborted' ? 'aborted' : 'interrupted';
    stops.push({ kind, replica: null, sentence: 'the rollout was interrupted' });
  }
  const [first] = stops;
  const isAborted = ending?.kind === 'aborted';
  const sentence = toSummary(all, first, ending, toResume(file));
  await trace.end(root, { outcome: first === undefined ? 'ok' : toOutcome(first.kind), sentence });
  const isOverHere = isAborted || ending?.kind === 'taken_over';
  if (first === undefined || !isBegun || isOverHere) await file.remove();
  if (isAborted) {
    const tidy = { ...context, gateways: new RolloutGateways(clients, AbortSignal.timeout(TIDY_MS)) };
    await release([...replicas.keys()], tidy).catch((error: unknown) => {
      if (!(error instanceof StartError || error instanceof RolloutStop)) throw error;
      reporter.say(`the reasons of its drains still name this rollout: ${error.message}`);
    });
  }
  const resume = toResume(file);
  const advice =
    first === undefined || !isBegun
      ? null
      : toAdvice({ ...first, restartedBy: toRestarter(settings), resume });
  const ended = first === undefined ? 'done' : isAborted || !isBegun ? 'aborted' : 'stopped';
  const next = ended === 'stopped' ? `To go on: ${resume}` : null;
  const isAllTold = first === undefined || (isAborted && first.replica === null);
  const problem = isAllTold ? null : { ...first, advice: advice ?? next };
  teller.set({ state: ended, sentence: toSentence(all, ending), problem });
  await teller.end();
  reporter.end();
  if (advice !== null) reporter.say(advice);
  reporter.say(sentence);
  const isRolledBack = all.some(({ stage }) => stage === 'rolled_back');
  return EXIT_CODES[first?.kind ?? (isRolledBack ? 'bad' : 'done')];
}

/** Takes the marks of rollouts that are not at work on them any more off the drains of replicas. */
async function release(names: readonly string[], { gateways, marks }: RollContext): Promise<void> {
  if (names.length === 0) return;
  const replicas = await gateways.replicas();
  for (const { name, drainedBy, reason } of replicas) {
    if (!names.includes(name) || !drainedBy.some((mark) => marks.includes(mark))) continue;
    await gateways.changeReason(name, toReasonOfLeft(reason));
  }
}

function findDriver(env: Environment): { readonly user: string; readonly host: string } {
  return { user: env.USER ?? env.LOGNAME ?? 'somebody', host: hostname() };
}

function toHead(state: RolloutState, driver: RolloutFacts['driver']): RolloutHead {
  return {
    id: toMark(state.traceId),
    trace_id: state.traceId,
    root_span_id: state.rootSpanId,
    run: state.run,
    driver,
    started_at: state.startedAt,
    plan: toPlanFacts(state.settings, state.accepted),
    given_up: state.givenUp,
  };
}

function toBegun(replica: ReplicaState) {
  return { name: replica.name, stage: replica.stage, text: replica.sentence ?? '' };
}

function toEndedStep({ step }: StepSpan, { outcome }: StepEnd, durationMs: number): EndedStep {
  const startedAt = new Date(Date.now() - durationMs).toISOString();
  return { step, started_at: startedAt, duration_ms: durationMs, outcome };
}

function toStop(error: unknown, signal: AbortSignal): RolloutStop {
  if (error instanceof RolloutStop) return error;
  // The admin API refuses, or was interrupted in the middle of a call.
  if (error instanceof StartError)
    return new RolloutStop(signal.aborted ? 'interrupted' : 'failed', error.message);
  throw error;
}

function toEndedText({ stage, sentence }: ReplicaState): string {
  return stage === 'skipped' ? 'is left out' : (sentence ?? 'is done');
}

/** What is told to gateways, beside the problem and the next step. */
function toSentence(replicas: readonly ReplicaState[], ending: Ending | null): string {
  const counts = toCounts(replicas);
  if (ending?.kind === 'taken_over') return ending.message;
  return ending?.kind === 'aborted'
    ? `${counts} when ${ending.by ?? 'somebody'} aborted the rollout`
    : counts;
}

/** The last line of its output. */
function toSummary(
  replicas: readonly ReplicaState[],
  stopped: Stopped | undefined,
  ending: Ending | null,
  resume: string,
): string {
  const sentence = toSentence(replicas, ending);
  if (ending?.kind === 'taken_over' || ending?.kind === 'aborted') return sentence;
  if (ending?.kind === 'refused') return `${sentence}. ${ending.message}. To go on: ${resume}`;
  if (replicas.every(({ stage }) => stage === 'waiting')) return 'nothing was done';
  return stopped === undefined ? sentence : `${sentence}. To go on: ${resume}`;
}

function toCounts(replicas: readonly ReplicaState[]): string {
  const count = (wanted: ReplicaState['stage']) => replicas.filter(({ stage }) => stage === wanted).length;
  const skipped = count('skipped');
  const rolledBack = count('rolled_back');
  const parts = [
    `${count('done')} of ${replicas.length} replicas done`,
    ...(skipped === 0 ? [] : [`${skipped} left out`]),
    ...(rolledBack === 0 ? [] : [`${rolledBack} rolled back`]),
  ];
  return parts.join(', ');
}

const toResume = ({ path, isDefault }: Pick<StateFile, 'path' | 'isDefault'>) =>
  `gateway rollout --resume${isDefault ? '' : ` --state ${toShellWord(path)}`}`;

function untilAborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}
