/*
 * The rollouts that a gateway knows: who drives each, how far it is, and what is asked of it. It keeps them over restarts, and
 * tells the other gateways of a fleet.
 *
 * It never carries out a step of a rollout, nor knows a call of the admin API.
 * Begin with board.ts; rules.ts has what follows from what is known.
 */

export { type AskKind, type ReportOutcome, RolloutBoard } from './board.ts';
export { type BoardChannel, BoardExchange } from './board-exchange.ts';
export { createBoardFile } from './board-file.ts';
export { hasVanished, isLive, isOver, type KnownRollout } from './rules.ts';
