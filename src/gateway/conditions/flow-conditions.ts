import type { JwksSource } from '#access/jwt';
import type { LimitRows } from '#access/limits';
import type { FailedTokens } from '#admin';
import type { Producer } from '#conditions';
import { hasHealthChecks } from '#config';
import type { Fleet } from '#fleet';
import type { ReplicaControl } from '#replicas/control';
import type { RolloutBoard } from '#rollout-board';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { guarded } from '../composition/observe-record.ts';
import { createAdminProducer } from './admin-conditions.ts';
import { createBacklogProducer } from './backlog-conditions.ts';
import { createDrainProducer } from './drain-conditions.ts';
import { createFleetProducer } from './fleet-conditions.ts';
import { createHealthProducer } from './health-conditions.ts';
import { createLimitProducer } from './limit-conditions.ts';
import { createRolloutProducer } from './rollout-conditions.ts';
import { TrafficWatch } from './traffic-conditions.ts';

/** What has to do with requests, and with those who serve and operate together. */
export interface FlowSurroundings {
  readonly replicas: ReplicaControl;
  /** Null: this gateway shares its state with no other one. */
  readonly fleet: Fleet | null;
  readonly jwksSource: JwksSource;
  readonly failedTokens: FailedTokens;
  readonly limitRows: LimitRows;
  readonly rollouts: RolloutBoard;
}

const nowMs = () => performance.now();

/** Tells the board of the requests, and of the gateways, keys, drains and rollouts behind them. */
export function addFlowConditions(composition: Composition, surroundings: FlowSurroundings): void {
  const { board, events, inEffect, collaborators } = composition;
  const { replicas, fleet, jwksSource, failedTokens, limitRows, rollouts } = surroundings;
  const { registry } = replicas;
  const hasHealth = () => hasHealthChecks(inEffect.config.health);
  const traffic = new TrafficWatch(registry, nowMs);
  events.on(
    'record',
    guarded(({ record }) => traffic.note(record), collaborators.log),
  );
  board.add(traffic.produce);
  board.add(createLimitProducer(limitRows, () => registry.silentHolders(), nowMs));
  board.add(createBacklogProducer(registry));
  board.add(createDrainProducer(registry));
  if (fleet !== null) board.add(createFleetProducer({ fleet, registry }));
  board.add(createJwksProducer(jwksSource));
  board.add(createAdminProducer(failedTokens, nowMs));
  const isServing = (name: string) => registry.find(name)?.shadow == null;
  board.add(createHealthProducer(hasHealth, isServing, board));
  board.add(createRolloutProducer(rollouts, { nowMs, epochMs: Date.now }));
}

/** Keys of tokens that cannot be read. */
function createJwksProducer(source: JwksSource): Producer {
  return () => {
    const { problem } = source;
    if (problem === null) return [];
    const id = problem.hasKeys ? 'jwks_failing' : 'jwks_missing';
    return [{ id, subject: problem.source, figures: { reason: problem.text } }];
  };
}
