/*
 * The gateway's own bounded memory, in a database in state_dir: records, sums of them by minute and by hour, a timeline
 * of what happened. A thread of its own writes it and answers queries.
 *
 * It never knows a request: it hears of records that have ended and of actions, and nothing waits for it.
 * Begin with recorded-history.ts, then feed/record-feed.ts (what each record costs), store/history-store.ts (what one
 * transaction writes) and queries/run-query.ts.
 */

export { HistoryRefusal } from './history-thread.ts';
export { toProblemText } from './problem-text.ts';
export type { Answer, Query, Step, UsageRow } from './query.ts';
export { type HistoryState, RecordedHistory } from './recorded-history.ts';
export { EVENT_KINDS, type PresentFact } from './timeline-entry.ts';
export { DIMENSIONS, type Dimension } from './usage-sums.ts';
