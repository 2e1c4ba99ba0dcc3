import { StartError } from '#base';
import type { Signals } from '#cli/command';
import type { Environment } from '#config/secrets';
import type { RolloutGateways } from './gateways/gateways.ts';
import { toMark } from './gateways/rollout-mark.ts';
import type { ReplicaState, RolloutState, StateFile } from './progress-file/state-file.ts';
import type { Reporter } from './report/reporter.ts';
import { type RollContext, rollReplica } from './roll-replica.ts';
import { newSpanId, RolloutTrace, type StepSpan } from './rollout-trace.ts';
import { EXIT_CODES, RolloutStop, type StopKind } from './stop.ts';

/** At most so many rollouts of equal replicas are stopped by a false alarm. */
const FALSE_ALARM = 1 / 1_000;

/** What a rollout works with. */
interface RolloutCollaborators {
  /** Whether an earlier run has begun it. */
  readonly isResumed: boolean;
  readonly gateways: RolloutGateways;
  readonly file: StateFile;
  readonly reporter: Reporter;
  readonly env: Environment;
  readonly signals: Pick<Signals, 'shutdown' | 'sendToGroup'>;
}

/**
 * Carries out what is left of a rollout: as many replicas at a time as its settings say. After the first problem no other
 * replica is begun. Returns the exit code. The file is removed when all replicas are done.
 */
export async function runRollout(
  state: RolloutState,
  { isResumed, gateways, file, reporter, env, signals }: RolloutCollaborators,
): Promise<number> {
  const { shutdown: signal, sendToGroup } = signals;
  const { settings } = state;
  const trace = new RolloutTrace(state.traceId, gateways);
  const root: StepSpan = {
    step: 'rollout',
    replica: null,
    startedEpochMs: Date.now(),
    spanId: isResumed ? newSpanId() : state.rootSpanId,
    parentSpanId: isResumed ? state.rootSpanId : null,
  };
  const replicas = new Map(state.replicas.map((replica) => [replica.name, replica]));
  const underWay = new Set<string>();
  const stops: StopKind[] = [];
  let asked: Promise<unknown> = Promise.resolve();
  const update: RollContext['store'] = async (name, changes) => {
    const before = replicas.get(name);
    if (before !== undefined) replicas.set(name, { ...before, ...changes });
    await file.write({ ...state, replicas: [...replicas.values()] });
  };
  const context: RollContext = {
    settings,
    gateways,
    trace,
    reporter,
    env,
    signal,
    sendToGroup,
    marks: [toMark(state.traceId), ...state.givenUp.map(toMark)],
    falseAlarm: FALSE_ALARM / state.replicas.length,
    isUnderWay: (name) => underWay.has(name),
    async askPerson(question) {
      const answer = asked.then(() => Promise.race([reporter.ask(question), untilAborted(signal)]));
      asked = answer;
      return await answer;
    },
    store: update,
  };

  async function roll(name: string): Promise<void> {
    const replica = replicas.get(name);
    if (replica === undefined) return;
    const span: StepSpan = {
      step: 'replica',
      replica: name,
      startedEpochMs: Date.now(),
      spanId: newSpanId(),
      parentSpanId: root.spanId,
    };
    underWay.add(name);
    try {
      const { kind, sentence } = await rollReplica(replica, span.spanId, context);
      reporter.show(name, kind, sentence);
      await trace.end(span, { outcome: 'ok', sentence });
    } catch (error) {
      const stop = toStop(error, signal);
      stops.push(stop.kind);
      reporter.show(name, 'stopped', stop.message);
      await trace.end(span, { outcome: stop.kind, sentence: stop.message });
    } finally {
      underWay.delete(name);
    }
  }

  // Those that an earlier run has begun come first: they may be drained, and count as away.
  const waiting = state.replicas
    .filter(({ stage }) => stage !== 'done')
    .toSorted((a, b) => Number(a.stage === 'waiting') - Number(b.stage === 'waiting'))
    .map(({ name }) => name);
  for (const { name, stage, sentence } of state.replicas) {
    if (stage === 'done') reporter.show(name, 'done', sentence ?? 'is done');
  }
  const work = async () => {
    for (;;) {
      const next = stops.length > 0 || signal.aborted ? undefined : waiting.shift();
      if (next === undefined) return;
      await roll(next);
    }
  };
  await file.write(state);
  await Promise.all(Array.from({ length: settings.maxUnavailable }, work));
  if (signal.aborted && stops.length === 0) stops.push('interrupted');

  const [first] = stops;
  const outcome = first ?? 'ok';
  const sentence = toSummary([...replicas.values()], outcome, file.path);
  await trace.end(root, { outcome, sentence });
  const isBegun = [...replicas.values()].some(({ stage }) => stage !== 'waiting');
  if (first === undefined || !isBegun) await file.remove();
  reporter.end();
  reporter.say(sentence);
  return EXIT_CODES[first ?? 'done'];
}

function toStop(error: unknown, signal: AbortSignal): RolloutStop {
  if (error instanceof RolloutStop) return error;
  // The admin API refuses, or was interrupted in the middle of a call.
  if (error instanceof StartError)
    return new RolloutStop(signal.aborted ? 'interrupted' : 'failed', error.message);
  throw error;
}

function toSummary(replicas: readonly ReplicaState[], outcome: StopKind | 'ok', path: string): string {
  const done = replicas.filter(({ stage }) => stage === 'done').length;
  const count = `${done} of ${replicas.length} replicas done`;
  if (done === 0 && replicas.every(({ stage }) => stage === 'waiting')) return 'nothing was done';
  return outcome === 'ok' ? count : `${count}. To go on: gateway rollout --resume --state ${toWord(path)}`;
}

/** One word for a shell. */
function toWord(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function untilAborted(signal: AbortSignal): Promise<null> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(null);
    signal.addEventListener('abort', () => resolve(null), { once: true });
  });
}
