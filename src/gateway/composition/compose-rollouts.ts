import { join } from 'node:path';
import { orStartError } from '#base';
import { BoardExchange, createBoardFile, RolloutBoard } from '#rollout-board';
import { toFleetChannel } from './fleet-channel.ts';
import type { Composition } from './gateway-collaborators.ts';

/** Composes what is known of rollouts: kept over restarts, and the same on all gateways of a fleet. */
export async function composeRollouts({
  inEffect,
  collaborators: { log },
  parts,
  onStateWrite,
  loadChannels,
}: Composition): Promise<RolloutBoard> {
  const board = new RolloutBoard();
  const path = join(inEffect.config.stateDir, 'rollouts.json');
  const file = createBoardFile(path, board, { log, onWrite: onStateWrite });
  parts.add('stored responses', {
    start: () => orStartError('state_dir', file.restore()),
    stop: () => file.save(),
  });
  const openChannel = await toFleetChannel(loadChannels, 'rollouts', (reason) =>
    log.warn({ reason }, 'the server does not permit to share rollouts: see fleet.md'),
  );
  if (openChannel === null) return board;
  const exchange = new BoardExchange({ board, openChannel });
  parts.add('watches', { start: () => exchange.start(), stop: () => exchange.stop() });
  return board;
}
