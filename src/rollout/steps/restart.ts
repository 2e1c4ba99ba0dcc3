import type { RolloutGateways } from '../gateways/gateways.ts';
import type { ReplicaView } from '../gateways/replica-view.ts';
import type { ReplicaState } from '../progress-file/state-file.ts';
import { runCommand, untilCommandEnded } from '../restart/run-command.ts';
import { until } from '../restart/until.ts';
import type { RollContext } from '../roll-context.ts';
import { RolloutStop } from '../stop.ts';

/** Restarts the engine with the command, or waits until it is restarted elsewhere or by the person at the terminal. */
export async function restart(
  view: ReplicaView,
  { command }: ReplicaState,
  context: RollContext,
): Promise<void> {
  const { settings, gateways, reporter, signal, sendToGroup, askPerson } = context;
  const { name } = view;
  const timeoutMs = settings.restartMs;
  // It may have been begun with another command than that of today.
  if (command !== null) {
    const onWait = () => reporter.show(name, 'restarting', 'waits for the command of the earlier run');
    await untilCommandEnded(command, { timeoutMs, signal, sendToGroup, onWait });
  }
  if (settings.exec !== null) {
    reporter.show(name, 'restarting', 'is being restarted');
    return await runFor(view, settings.exec, context);
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

/** Runs a command for a replica; its process group is stored while it may run. */
export async function runFor(
  view: ReplicaView,
  template: string,
  { settings, reporter, env, signal, sendToGroup, store }: RollContext,
): Promise<void> {
  await runCommand(template, view, {
    timeoutMs: settings.restartMs,
    signal,
    sendToGroup,
    env,
    onOutput: (line) => reporter.output(view.name, line),
    onStart: (group) => store(view.name, { command: group }),
  });
  await store(view.name, { command: null });
}

/** Waits until the engine answers, with its models and if wanted with a small completion. */
export async function untilAnswering(
  name: string,
  { settings, gateways, reporter, signal }: RollContext,
): Promise<void> {
  reporter.show(name, 'starting', 'waits until the engine answers');
  await untilReady(name, {
    gateways,
    signal,
    timeoutMs: settings.restartMs,
    hasCompletion: settings.isProbed,
    onProblem: (problem) => reporter.show(name, 'starting', `not ready: ${problem}`),
  });
}

const ASK_EVERY_MS = 1_000;
/** An engine that is killed and starts again at once is away for this long at least. */
const WATCH_EVERY_MS = 200;

/** What waiting for an engine needs. */
interface EngineWait {
  readonly gateways: RolloutGateways;
  readonly hasCompletion: boolean;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Called when what is wrong changes. */
  readonly onProblem: (problem: string) => void;
}

/** Waits until the engine goes away, as it does when somebody restarts it. */
async function untilAway(name: string, wait: Omit<EngineWait, 'hasCompletion'>): Promise<void> {
  wait.onProblem('waits for the engine to go away');
  const isAway = async () => (await wait.gateways.probe(name, false)).state === 'away';
  const patience = { ...wait, everyMs: WATCH_EVERY_MS, lateKind: 'command_failed' } as const;
  await until(isAway, patience, () => 'is drained; its engine was not restarted');
}

/** Waits until the engine answers with its models, and if wanted with a small completion. */
async function untilReady(name: string, wait: EngineWait): Promise<void> {
  let problem = '';
  const isReady = async () => {
    const { state, problem: found } = await wait.gateways.probe(name, wait.hasCompletion);
    if (state !== 'ready' && found !== problem) wait.onProblem(found);
    problem = found;
    return state === 'ready';
  };
  const patience = { ...wait, everyMs: ASK_EVERY_MS, lateKind: 'not_ready' } as const;
  await until(isReady, patience, () => `is drained; it is not ready: ${problem}`);
}
