import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { TlsMaterial } from '../http/tls-acceptor.ts';
import type { InTurn } from '../in-turn.ts';
import { RepeatedCheck } from '../repeated-check.ts';
import type { Certificates } from './certificate-files.ts';

/** A certificate is announced as ending this long before it does. */
const ENDS_SOON_MS = 14 * 24 * 3_600_000;

export interface CertificateWatcherCollaborators {
  /** How often the files are read. */
  readonly intervalMs: number;
  /** Checks run in turn with what else changes the configuration in effect. */
  readonly inTurn: InTurn;
  /** Reads the files. Rejects with a StartError if they cannot be used. */
  readonly read: () => Promise<Certificates>;
  /** Uses these for handshakes of clients from now on. */
  readonly useForListeners: (next: Certificates) => Promise<void>;
  /** Uses these for connections to replicas from now on. */
  readonly useForReplicas: (next: Certificates) => Promise<void>;
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;
}

/**
 * Reads the certificate files again and again, and has new contents used. Contents that cannot be used are refused: the
 * ones in effect stay.
 */
export class CertificateWatcher {
  readonly #collaborators: CertificateWatcherCollaborators;
  readonly #checks: RepeatedCheck;
  #current: Certificates;

  constructor(current: Certificates, collaborators: CertificateWatcherCollaborators) {
    const { intervalMs, inTurn, log } = collaborators;
    this.#current = current;
    this.#collaborators = collaborators;
    this.#checks = new RepeatedCheck({
      ...{ intervalMs, inTurn },
      check: () => this.#check(),
      onProblem: (problem) => log.error({ problem }, 'certificates refused: the former ones stay'),
    });
  }

  start(): void {
    this.#logCertificates(this.#current, null);
    this.#checks.start();
  }

  stop(): void {
    this.#checks.stop();
  }

  /** Has certificates used by the listeners that a reload has read, if they differ from those in effect. */
  async adopt(next: Certificates): Promise<void> {
    const before = this.#current;
    this.#current = next;
    if (areSame(before.listen, next.listen) && areSame(before.admin, next.admin)) return;
    await this.#collaborators.useForListeners(next);
    this.#logCertificates(next, before);
  }

  async #check(): Promise<void> {
    const { read, useForReplicas } = this.#collaborators;
    const next = await read();
    const { replicas, services } = this.#current;
    const isNewForReplicas = !isDeepStrictEqual([replicas, services], [next.replicas, next.services]);
    await this.adopt(next);
    if (isNewForReplicas) await useForReplicas(next);
  }

  #logCertificates(next: Certificates, before: Certificates | null): void {
    for (const listener of ['listen', 'admin'] as const) {
      if (isDeepStrictEqual(next[listener]?.pairs, before?.[listener]?.pairs)) continue;
      for (const { cert } of next[listener]?.pairs ?? []) this.#logCertificate(listener, cert);
    }
  }

  #logCertificate(listener: 'listen' | 'admin', pem: string): void {
    const { subject, subjectAltName, validToDate } = new X509Certificate(pem);
    const fields = { listener, subject, names: subjectAltName, valid_to: validToDate.toISOString() };
    const restMs = validToDate.getTime() - Date.now();
    const { log } = this.#collaborators;
    if (restMs <= 0) log.error(fields, 'certificate in use has expired');
    else if (restMs < ENDS_SOON_MS) log.warn(fields, 'certificate in use expires soon');
    else log.info(fields, 'certificate in use');
  }
}

/** Whether two readings have the same contents. Each reading makes new ticket keys. */
function areSame(a: TlsMaterial | null, b: TlsMaterial | null): boolean {
  const strip = (material: TlsMaterial | null) => material && { ...material, ticketKeys: null };
  return isDeepStrictEqual(strip(a), strip(b));
}
