/*
 * Shadows: replicas that get copies of live requests, whose answers are compared with those that clients get, and dropped.
 *
 * It hears of requests from the proxy, and can change nothing of them. It never knows who sent one, and keeps no text: of an
 * output a salted digest, as long as the pair of answers is not over. What pairs prove, #verdict/pairs says.
 * Begin with shadow-copies.ts, which also watches the event loop, then pair.ts. why-not.ts says what is never copied. #replicas/control (trials.ts) makes shadows for a while.
 */

export { CopyTotals } from './copy-totals.ts';
export { ShadowCopies, type ShadowSettings } from './shadow-copies.ts';
export type { ShadowReport } from './shadow-report.ts';
