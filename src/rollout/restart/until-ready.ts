import type { RolloutGateways } from '../gateways/gateways.ts';
import { until } from './until.ts';

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
export async function untilAway(name: string, wait: Omit<EngineWait, 'hasCompletion'>): Promise<void> {
  wait.onProblem('waits for the engine to go away');
  const isAway = async () => (await wait.gateways.probe(name, false)).state === 'away';
  const patience = { ...wait, everyMs: WATCH_EVERY_MS, lateKind: 'command_failed' } as const;
  await until(isAway, patience, () => 'is drained; its engine was not restarted');
}

/** Waits until the engine answers with its models, and if wanted with a small completion. */
export async function untilReady(name: string, wait: EngineWait): Promise<void> {
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
