/*
 * The judge of the gateway: whether one group of replicas is as good as another one, by the requests that this gateway has
 * served. It keeps the facts of the latest requests in columns, and goes on with each comparison while somebody asks.
 *
 * It never knows a call of the admin API. The statistics are those of #verdict; judge/silence-watch.ts finds who ends nothing.
 * Begin with judge/gateway-judge.ts; groups/ finds whom a selector means, requests/ keeps what is compared, pairs/ the answers of
 * shadows beside those that clients got.
 */

export { JudgeExchange } from './fleet/judge-exchange.ts';
export { parseSelector, SELECTOR_FORM } from './groups/selector.ts';
export { type Answer, GatewayJudge, type Refusal } from './judge/gateway-judge.ts';
export { WRONG_BY_ITSELF } from './judge/judge-groups.ts';
export { PairLog } from './pairs/pair-log.ts';
export { RequestRing, type RingCollaborators } from './requests/request-ring.ts';
export { type OutcomeReading, toObservations } from './requests/to-observations.ts';
