import type { CertificateWatcher } from '#access/certificates';
import type { ClientsWatcher } from '#access/clients';
import type { JwksSource } from '#access/jwt';
import type { LimitRows } from '#access/limits';
import type { FailedTokens } from '#admin';
import { hasHealthChecks } from '#config';
import type { Fleet } from '#fleet';
import type { RecordedHistory } from '#history';
import type { ReplicaControl } from '#replicas/control';
import type { RolloutBoard } from '#rollout-board';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { guarded } from '../composition/observe-record.ts';
import { createAdminProducer } from './admin-conditions.ts';
import { createCertificateProducer } from './certificate-conditions.ts';
import { createDrainProducer } from './drain-conditions.ts';
import { addExportConditions } from './export-conditions.ts';
import { createLogProducer } from './file-conditions.ts';
import { createFleetProducer } from './fleet-conditions.ts';
import { createHealthProducer } from './health-conditions.ts';
import { createHistoryProducer } from './history-conditions.ts';
import { createClientsProducer, createJwksProducer } from './key-conditions.ts';
import { createLimitProducer } from './limit-conditions.ts';
import { addMachineConditions } from './machine-conditions.ts';
import { createModelProducer } from './model-conditions.ts';
import { PeerCertificates } from './peer-certificates.ts';
import { createBacklogProducer, createReplicaProducer } from './replica-conditions.ts';
import { createRolloutProducer } from './rollout-conditions.ts';
import { createSourceProducer } from './source-conditions.ts';
import { TrafficWatch } from './traffic-conditions.ts';

const nowMs = () => performance.now();

interface Watched {
  readonly replicas: ReplicaControl;
  readonly dataPlane: DataPlane;
  /** Null: this gateway shares its state with no other one. */
  readonly fleet: Fleet | null;
  readonly rollouts: RolloutBoard;
  readonly history: RecordedHistory;
  readonly certificateWatcher: CertificateWatcher;
  readonly clientsWatcher: ClientsWatcher;
  readonly jwksSource: JwksSource;
  readonly failedTokens: FailedTokens;
  readonly limitRows: LimitRows;
}

/** Tells the board of everything that can be seen from outside of the parts of a gateway. */
export function addProducers(composition: Composition, watched: Watched): void {
  const { board, events, inEffect, collaborators } = composition;
  const { lostLogLines } = collaborators;
  const { replicas, fleet, history } = watched;
  const { registry } = replicas;
  board.add(createReplicaProducer(registry, watched.dataPlane.pairLog));
  board.add(createModelProducer(replicas));
  board.add(createSourceProducer(() => replicas.sources));
  const peers = new PeerCertificates(() => registry.replicas, { nowMs, epochMs: Date.now });
  board.add(createCertificateProducer(watched.certificateWatcher, peers, Date.now));
  board.add(createClientsProducer(watched.clientsWatcher, () => inEffect.config.clientsFile));
  if (lostLogLines !== undefined) board.add(createLogProducer(lostLogLines, nowMs));
  board.add(createHistoryProducer({ state: () => history.state, path: history.path, nowMs }));
  addExportConditions(composition, watched);
  const traffic = new TrafficWatch(registry, nowMs);
  const note = guarded(({ record }) => traffic.note(record), collaborators.log);
  events.on('record', note);
  board.add(traffic.produce);
  board.add(createLimitProducer(watched.limitRows, () => registry.silentHolders(), nowMs));
  board.add(createBacklogProducer(registry));
  board.add(createDrainProducer(registry));
  if (fleet !== null) board.add(createFleetProducer({ fleet, registry }));
  board.add(createJwksProducer(watched.jwksSource));
  board.add(createAdminProducer(watched.failedTokens, nowMs));
  const hasHealth = () => hasHealthChecks(inEffect.config.health);
  board.add(createHealthProducer(hasHealth, (name) => registry.find(name)?.shadow == null, board));
  board.add(createRolloutProducer(watched.rollouts, { nowMs, epochMs: Date.now }));
  addMachineConditions(composition, watched);
}
