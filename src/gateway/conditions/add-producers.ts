import type { CertificateWatcher } from '#access/certificates';
import type { ClientsWatcher } from '#access/clients';
import type { Finding, Producer } from '#conditions';
import type { RecordedHistory } from '#history';
import { toShownName } from '#otel/base';
import type { ReplicaControl } from '#replicas/control';
import type { SourceState } from '#replicas/discovery';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { createCertificateProducer } from './certificate-conditions.ts';
import { addExportConditions } from './export-conditions.ts';
import { createLogProducer } from './file-conditions.ts';
import { addFlowConditions, type FlowSurroundings } from './flow-conditions.ts';
import { createHistoryProducer } from './history-conditions.ts';
import { addMachineConditions } from './machine-conditions.ts';
import { PeerCertificates } from './peer-certificates.ts';
import { createReplicaProducer } from './replica-conditions.ts';

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

/** A file of clients that cannot be used. `path`: where it is; null where there is none. */
function createClientsProducer(
  watcher: Pick<ClientsWatcher, 'problem'>,
  path: () => string | null,
): Producer {
  return function* (): Generator<Finding> {
    const subject = path();
    const reason = watcher.problem;
    if (subject !== null && reason !== null)
      yield { id: 'clients_file_unusable', subject, figures: { reason } };
  };
}

/** Models that no replica can serve, or only one of several. */
function createModelProducer(replicas: Pick<ReplicaControl, 'models'>): Producer {
  return function* (): Generator<Finding> {
    for (const { model, known, available, well, drained } of replicas.models) {
      // Replicas choose the names.
      const subject = toShownName(model);
      if (available === 0) {
        yield { id: 'model_unavailable', subject, figures: { drained, away: known - drained } };
      } else if (known > 1 && well <= 1) {
        yield { id: 'model_on_last_replica', subject, figures: { known } };
      }
    }
  };
}

/** Kubernetes or DNS that does not tell of replicas, and readiness gates that cannot be written. */
function createSourceProducer(sources: () => readonly SourceState[]): Producer {
  return () => sources().flatMap((source) => [...findingsOf(source)]);
}

function* findingsOf({ name: subject, kind, readinessGate, ...status }: SourceState): Generator<Finding> {
  if (status.state === 'failing') {
    const id = kind === 'dns' ? 'dns_failing' : 'kubernetes_failing';
    yield { id, subject, figures: { reason: toReason(status) }, ...toSince(status) };
  }
  if (readinessGate?.state === 'failing') {
    const figures = { reason: toReason(readinessGate) };
    yield { id: 'readiness_gate_failing', subject, figures, ...toSince(readinessGate) };
  }
}

function toReason({
  errorCode,
  errorCause,
  advice,
}: Pick<SourceState, 'errorCode' | 'errorCause' | 'advice'>): string {
  const code = errorCode ?? 'unknown';
  const failure = errorCause === null ? code : `${code} (${errorCause})`;
  return advice === null ? failure : `${failure}: ${advice}`;
}

function toSince({ since }: Pick<SourceState, 'since'>): { readonly sinceEpochMs?: number } {
  return since === null ? {} : { sinceEpochMs: Date.parse(since) };
}
