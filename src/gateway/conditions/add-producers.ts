import type { CertificateWatcher } from '#access/certificates';
import type { ClientsWatcher } from '#access/clients';
import type { RecordedHistory } from '#history';
import type { ReplicaControl } from '#replicas/control';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { createCertificateProducer } from './certificate-conditions.ts';
import { createClientsProducer } from './clients-conditions.ts';
import { addExportConditions } from './export-conditions.ts';
import { createLogProducer } from './file-conditions.ts';
import { addFlowConditions, type FlowSurroundings } from './flow-conditions.ts';
import { createHistoryProducer } from './history-conditions.ts';
import { addMachineConditions } from './machine-conditions.ts';
import { createModelProducer } from './model-conditions.ts';
import { PeerCertificates } from './peer-certificates.ts';
import { createReplicaProducer } from './replica-conditions.ts';
import { createSourceProducer } from './source-conditions.ts';

const nowMs = () => performance.now();

interface Watched extends FlowSurroundings {
  readonly replicas: ReplicaControl;
  readonly dataPlane: DataPlane;
  readonly certificateWatcher: CertificateWatcher;
  readonly clientsWatcher: ClientsWatcher;
  readonly history: RecordedHistory;
}

/** Tells the board of everything that can be seen from outside of the parts of a gateway. */
export function addProducers(composition: Composition, watched: Watched): void {
  const { board, inEffect } = composition;
  const { lostLogLines } = composition.collaborators;
  const { replicas, certificateWatcher, clientsWatcher, history } = watched;
  board.add(createReplicaProducer(replicas.registry, watched.dataPlane.pairLog));
  board.add(createModelProducer(replicas));
  board.add(createSourceProducer(() => replicas.sources));
  const peers = new PeerCertificates(() => replicas.registry.replicas, { nowMs, epochMs: Date.now });
  board.add(createCertificateProducer(certificateWatcher, peers, Date.now));
  board.add(createClientsProducer(clientsWatcher, () => inEffect.config.clientsFile));
  if (lostLogLines !== undefined) board.add(createLogProducer(lostLogLines, nowMs));
  board.add(createHistoryProducer({ state: () => history.state, path: history.path, nowMs }));
  addExportConditions(composition, watched);
  addFlowConditions(composition, watched);
  addMachineConditions(composition, watched);
}
