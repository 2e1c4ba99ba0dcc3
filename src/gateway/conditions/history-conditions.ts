import { dirname, join } from 'node:path';
import type { Finding, Producer } from '#conditions';
import { type HistoryState, toProblemText } from '#history';
import { Growth } from './growth.ts';

/** For so long after the last record that was left out it is told. */
const LEFT_OUT_LASTS_MS = 15 * 60_000;
/** For so long it is told that a file was set aside. */
const SET_ASIDE_LASTS_MS = 24 * 3_600_000;

/** How the history is doing, and where. */
interface HistorySources {
  readonly state: () => HistoryState | null;
  /** Of its file. */
  readonly path: string;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

/** What is wrong with the history. */
export function createHistoryProducer({ state, path, nowMs }: HistorySources): Producer {
  const growth = new Growth();
  let leftOutMs = Number.NEGATIVE_INFINITY;
  let aside = { atMs: Number.NEGATIVE_INFINITY, sinceMs: 0 };
  return function* (): Generator<Finding> {
    const now = state();
    if (now === null) return;
    const { problem, setAside, leftOut, waitingBytes } = now;
    if (problem !== null) {
      const figures = { reason: toProblemText(problem.reason), waiting: waitingBytes };
      yield { id: 'history_not_written', subject: path, figures, sinceEpochMs: problem.sinceMs };
    }
    if (growth.hasGrown(leftOut)) leftOutMs = nowMs();
    if (nowMs() - leftOutMs < LEFT_OUT_LASTS_MS)
      yield { id: 'history_incomplete', subject: path, figures: { left_out: leftOut } };
    if (setAside === null) return;
    if (setAside.atMs !== aside.atMs) aside = { atMs: setAside.atMs, sinceMs: nowMs() };
    if (nowMs() - aside.sinceMs >= SET_ASIDE_LASTS_MS) return;
    const figures = {
      reason: toProblemText(setAside.reason),
      aside: setAside.name === null ? 'gone' : join(dirname(path), setAside.name),
    };
    yield { id: 'history_set_aside', subject: path, figures };
  };
}
