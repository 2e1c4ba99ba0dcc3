import { explainFileCode } from '#base';
import type { ConditionBoard, Finding, Producer } from '#conditions';
import type { OnStateWrite } from '#state-dir';
import type { LostLogLines } from '../composition/gateway-collaborators.ts';
import { Growth } from './growth.ts';

/** Notes which files of state_dir cannot be written. Each is written again until it can. */
export function createStateWriteNotes(board: Pick<ConditionBoard, 'raise' | 'clear'>): OnStateWrite {
  return (path, error) => {
    if (error === null) board.clear('state_not_stored', path);
    else
      board.raise({
        id: 'state_not_stored',
        subject: path,
        figures: { reason: explainFileCode(toCode(error)) },
      });
  };
}

function toCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'unknown';
}

/** For so long after the last lost line the loss is told. */
const LOST_LASTS_MS = 15 * 60_000;

/** Lines of the log that were lost. `nowMs`: monotonic milliseconds. */
export function createLogProducer(lostLogLines: () => LostLogLines, nowMs: () => number): Producer {
  const growth = new Growth();
  let lastMs = Number.NEGATIVE_INFINITY;
  return function* (): Generator<Finding> {
    const { lost, reason } = lostLogLines();
    if (growth.hasGrown(lost)) lastMs = nowMs();
    if (nowMs() - lastMs < LOST_LASTS_MS)
      yield { id: 'log_lines_lost', subject: '', figures: { lost, reason } };
  };
}
