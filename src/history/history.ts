/*
 * The gateway's own bounded memory, in a database in state_dir: records, sums of them by minute and by hour, a timeline
 * of what happened. A thread of its own writes it and answers queries.
 *
 * It never knows a request: it hears of records that have ended and of actions, and nothing waits for it.
 * Begin with recorded-history.ts, then feed/record-feed.ts (what each record costs), store/history-store.ts (what one
 * transaction writes), store/retention.ts (what goes first when it is full), store/usage-store.ts (what is summed as `other`) and queries/run-query.ts.
 */

import { explainFileCode } from '#base';

export { HistoryRefusal } from './history-thread.ts';
export type { Answer, Query, Step, UsageRow } from './query.ts';
export { type HistoryState, RecordedHistory } from './recorded-history.ts';
export { EVENT_KINDS, type PresentFact } from './timeline-entry.ts';
export { DIMENSIONS, type Dimension } from './usage-sums.ts';

const WORDS: Readonly<Record<string, string>> = {
  locked: 'another process uses it',
  read_only: 'it is read-only',
  io_error: 'the disk fails',
  full: 'the disk is full',
  damaged: 'it is damaged',
  deleted: 'it was deleted',
  replaced: 'another file is in its place',
  cannot_open: 'it cannot be opened',
  not_a_history: 'it is something else than a history',
  thread_ended: 'its thread has ended by an error',
  ended: 'its thread has ended by an error',
  too_slow: 'it takes too long',
  busy: 'it answers too many queries already',
};

/** Why the history does not write or answer, or was set aside, in words. A code of the system is in them. */
export function toProblemText(reason: string): string {
  const version = /^version_(\d+)$/.exec(reason)?.[1];
  if (version !== undefined) return `it is of version ${version}`;
  return Object.hasOwn(WORDS, reason) ? `${WORDS[reason]}` : explainFileCode(reason);
}
