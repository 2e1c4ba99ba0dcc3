import { type CertificateEnd, type CertificateWatcher, createCertificateLister } from '#access/certificates';
import type { Finding, Producer } from '#conditions';
import { toShownName } from '#otel/base';
import type { PeerCertificates } from './peer-certificates.ts';

const DAY_MS = 24 * 3_600_000;

/** Certificates at their end, and files that cannot be used. `peers`: those of replicas. `epochMs`: since 1970. */
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
