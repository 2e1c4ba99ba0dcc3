import type { Finding, Producer } from '#conditions';
import type { SourceState } from '#replicas/discovery';
import { toSince } from './finding-parts.ts';

/** Kubernetes or DNS that does not tell of replicas, and readiness gates that cannot be written. */
export function createSourceProducer(sources: () => readonly SourceState[]): Producer {
  return () => sources().flatMap((source) => [...findingsOf(source)]);
}

function* findingsOf({ name: subject, kind, readinessGate, ...status }: SourceState): Generator<Finding> {
  if (status.state === 'failing') {
    const id = kind === 'dns' ? 'dns_failing' : 'kubernetes_failing';
    yield { id, subject, figures: { reason: toReason(status) }, ...toSince(status.since) };
  }
  if (readinessGate?.state === 'failing') {
    const figures = { reason: toReason(readinessGate) };
    yield { id: 'readiness_gate_failing', subject, figures, ...toSince(readinessGate.since) };
  }
}

function toReason(status: Pick<SourceState, 'errorCode' | 'errorCause' | 'advice'>): string {
  const { errorCode, errorCause, advice } = status;
  const code = errorCode ?? 'unknown';
  const failure = errorCause === null ? code : `${code} (${errorCause})`;
  return advice === null ? failure : `${failure}: ${advice}`;
}
