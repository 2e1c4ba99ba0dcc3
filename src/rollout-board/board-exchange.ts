import type { RolloutBoard } from './board.ts';
import { parseBoard, printBoard } from './board-text.ts';
import { isLive, type KnownRollout } from './rules.ts';

/** On which gateways tell each other something that may get lost. */
export interface BoardChannel {
  publish(message: string): void;
  close(): void;
}

/** What an exchange works with. */
export interface BoardExchangeCollaborators {
  readonly board: RolloutBoard;
  readonly openChannel: (onMessage: (message: string) => void) => BoardChannel;
  readonly nowMs?: () => number;
}

/** A gateway that has missed something, or that begins, knows all of it after so long. */
const REPEAT_MS = 5_000;

/** More than the rollouts that a gateway knows take. */
const MAX_MESSAGE_CHARS = 8 * 1024 ** 2;

/**
 * Tells the other gateways of a fleet of rollouts, and learns of theirs: each shows all of them, and what is asked at one is
 * heard at the one that the driver calls.
 */
export class BoardExchange {
  readonly #board: RolloutBoard;
  readonly #openChannel: BoardExchangeCollaborators['openChannel'];
  readonly #nowMs: () => number;
  #channel: BoardChannel | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor({ board, openChannel, nowMs = () => performance.now() }: BoardExchangeCollaborators) {
    this.#board = board;
    this.#openChannel = openChannel;
    this.#nowMs = nowMs;
    board.listen({ onNews: (news) => this.#publish([news]), onWorthKeeping: () => undefined });
  }

  start(): void {
    this.#channel = this.#openChannel((message) => this.#hear(message));
    this.#timer = setInterval(() => this.#repeat(), REPEAT_MS).unref();
    this.#publish([], true);
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#channel?.close();
    this.#channel = null;
  }

  #hear(message: string): void {
    const contents = message.length > MAX_MESSAGE_CHARS ? null : parseBoard(message, this.#nowMs());
    if (contents === null) return;
    for (const rollout of contents.rollouts) this.#board.learn(rollout);
    if (contents.isHello) this.#publish(this.#board.rollouts);
  }

  /** Those under way; a gateway without any asks instead, because its first question may have got lost. */
  #repeat(): void {
    const live = this.#board.rollouts.filter(({ facts }) => isLive(facts));
    if (live.length > 0) this.#publish(live);
    else if (this.#board.rollouts.length === 0) this.#publish([], true);
  }

  #publish(rollouts: readonly KnownRollout[], isHello = false): void {
    if (rollouts.length > 0 || isHello) this.#channel?.publish(printBoard(rollouts, this.#nowMs(), isHello));
  }
}
