/*
 * The rollouts that a gateway knows: who drives each, how far it is, and what is asked of it. It keeps them over restarts, and
 * tells the other gateways of a fleet.
 *
 * It never carries out a step of a rollout, nor knows a call of the admin API.
 * Begin with board.ts; rules.ts has what follows from what is known.
 */

import type { Log } from '#otel/base';
import { createStateFile, type OnStateWrite } from '#state-dir';
import type { RolloutBoard } from './board.ts';
import { parseBoard, printBoard } from './board-text.ts';

export { type AskKind, type ReportOutcome, RolloutBoard } from './board.ts';
export { type BoardChannel, BoardExchange } from './board-exchange.ts';
export { hasVanished, isLive, isOver, type KnownRollout } from './rules.ts';

/** What keeps a board over restarts. */
interface BoardFile {
  /** Lets the board learn what an earlier run knew, and writes it whenever that changes. */
  restore(): Promise<void>;
  /** Resolves when it is on disk. Never rejects: rollouts go on without it. */
  save(): Promise<void>;
}

/** Creates the access to the file at this path. */
export function createBoardFile(
  path: string,
  board: RolloutBoard,
  { log, onWrite }: { readonly log: Log<'error'>; readonly onWrite: OnStateWrite },
): BoardFile {
  const file = createStateFile<ReturnType<typeof parseBoard>>(path, log, onWrite);
  const save = () => file.write(`${printBoard(board.rollouts, performance.now())}\n`).catch(() => undefined);
  return {
    save,
    async restore() {
      const { value } = await file.read((text) => {
        const contents = parseBoard(text, performance.now());
        if (contents === null) return null;
        const unreadable = Array.from({ length: contents.unreadableCount }, (_, at) => `rollout ${at + 1}`);
        return { value: contents, unreadable };
      });
      // Nobody could be heard while the gateway was away.
      for (const rollout of value?.rollouts ?? []) board.learn({ ...rollout, heardMs: performance.now() });
      board.listen({ onNews: () => undefined, onWorthKeeping: () => void save() });
    },
  };
}
