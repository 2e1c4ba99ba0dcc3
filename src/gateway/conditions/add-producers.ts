import { dirname, join } from 'node:path';
import { type CertificateEnd, type CertificateWatcher, createCertificateLister } from '#access/certificates';
import type { ClientsWatcher } from '#access/clients';
import type { Finding, Producer } from '#conditions';
import { type HistoryState, type RecordedHistory, toProblemText } from '#history';
import { toShownName } from '#otel/base';
import type { ReplicaControl } from '#replicas/control';
import type { SourceState } from '#replicas/discovery';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { addExportConditions } from './export-conditions.ts';
import { createLogProducer } from './file-conditions.ts';
import { addFlowConditions, type FlowSurroundings } from './flow-conditions.ts';
import { Growth } from './growth.ts';
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

/** For so long after the last record that was left out it is told. */
const LEFT_OUT_LASTS_MS = 15 * 60_000;
/** For so long it is told that a file was set aside. */
const SET_ASIDE_LASTS_MS = 24 * 3_600_000;

/** How the history is doing, and where. */
interface HistorySources {
  readonly state: () => HistoryState | null;
  /** Of its file. */
  readonly path: string;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

/** What is wrong with the history. */
export function createHistoryProducer({ state, path, nowMs }: HistorySources): Producer {
  const growth = new Growth();
  let leftOutMs = Number.NEGATIVE_INFINITY;
  let aside = { atMs: Number.NEGATIVE_INFINITY, sinceMs: 0 };
  return function* (): Generator<Finding> {
    const now = state();
    if (now === null) return;
    const { problem, setAside, leftOut, waitingBytes } = now;
    if (problem !== null) {
      const figures = { reason: toProblemText(problem.reason), waiting: waitingBytes };
      yield { id: 'history_not_written', subject: path, figures, sinceEpochMs: problem.sinceMs };
    }
    if (growth.hasGrown(leftOut)) leftOutMs = nowMs();
    if (nowMs() - leftOutMs < LEFT_OUT_LASTS_MS)
      yield { id: 'history_incomplete', subject: path, figures: { left_out: leftOut } };
    if (setAside === null) return;
    if (setAside.atMs !== aside.atMs) aside = { atMs: setAside.atMs, sinceMs: nowMs() };
    if (nowMs() - aside.sinceMs >= SET_ASIDE_LASTS_MS) return;
    const figures = {
      reason: toProblemText(setAside.reason),
      aside: setAside.name === null ? 'gone' : join(dirname(path), setAside.name),
    };
    yield { id: 'history_set_aside', subject: path, figures };
  };
}

const DAY_MS = 24 * 3_600_000;

/**
 * Certificates that are at their end, and files that cannot be used. `peers`: those that replicas show. `epochMs`: the
 * time, since 1970.
 */
export function createCertificateProducer(
  watcher: Pick<CertificateWatcher, 'current' | 'problem'>,
  peers: Pick<PeerCertificates, 'list'>,
  epochMs: () => number,
): Producer {
  const list = createCertificateLister();
  return function* (): Generator<Finding> {
    for (const ends of [list(watcher.current), peers.list()]) {
      for (const end of ends) {
        const finding = toFinding(end, epochMs());
        // The others end later.
        if (finding === null) break;
        yield finding;
      }
    }
    const reason = watcher.problem;
    if (reason === null) return;
    // It begins with the key of the configuration.
    const [subject = ''] = reason.split(': ', 1);
    yield { id: 'certificate_unusable', subject, figures: { reason } };
  };
}

function toFinding({ subject: name, endMs }: CertificateEnd, nowMs: number): Finding | null {
  const subject = toShownName(name);
  const leftMs = endMs - nowMs;
  if (leftMs >= 30 * DAY_MS) return null;
  // Certificates end at a whole second.
  const ends = `${new Date(endMs).toISOString().slice(0, 19)}Z`;
  if (leftMs <= 0) {
    return { id: 'certificate_ended', subject, figures: { ago: -leftMs / 1_000, ends }, sinceEpochMs: endMs };
  }
  const figures = { left: leftMs / 1_000, ends };
  if (leftMs < DAY_MS) return { id: 'certificate_ends_in_1_day', subject, figures };
  if (leftMs < 7 * DAY_MS) return { id: 'certificate_ends_in_7_days', subject, figures };
  return { id: 'certificate_ends_in_30_days', subject, figures };
}
