import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type createInTurn, RepeatedCheck } from '#base';
import type { Log } from '#otel/base';
import type { TlsMaterial } from '#wire/client';
import type { Certificates } from './certificate-files.ts';

export interface CertificateWatcherCollaborators {
  /** How often the files are read. */
  readonly intervalMs: number;
  /** Checks run in turn with what else changes the configuration in effect. */
  readonly inTurn: ReturnType<typeof createInTurn>;
  /** Reads the files. Rejects with a StartError if they cannot be used. */
  readonly read: () => Promise<Certificates>;
  /** Uses these for handshakes of clients from now on. */
  readonly useForListeners: (next: Certificates) => Promise<void>;
  /** Uses these for connections to replicas from now on. Rejects with a StartError if that is not possible now. */
  readonly useForReplicas: (next: Certificates) => Promise<void>;
  /** The time: milliseconds since 1970. */
  readonly epochMs: () => number;
  readonly log: Log<'info'>;
}

/** Who learns the keys of session tickets can read resumed sessions of this time. Then clients handshake in full once. */
const TICKET_KEYS_MS = 6 * 3_600_000;

/**
 * Reads the certificate files again and again, and has new contents used. Contents that cannot be used are refused: the
 * ones in effect stay. It logs the certificates of the listeners when they come into use.
 */
export class CertificateWatcher {
  readonly #collaborators: CertificateWatcherCollaborators;
  readonly #checks: RepeatedCheck;
  #current: Certificates;
  /** Milliseconds since 1970. */
  #ticketKeysSinceMs: number;
  /** The certificates in use that were logged, each with its listener. */
  #logged: ReadonlySet<string> = new Set();

  constructor(current: Certificates, collaborators: CertificateWatcherCollaborators) {
    const { intervalMs, inTurn } = collaborators;
    this.#current = current;
    this.#ticketKeysSinceMs = collaborators.epochMs();
    this.#collaborators = collaborators;
    this.#checks = new RepeatedCheck({ intervalMs, inTurn, check: () => this.#check() });
  }

  /** The certificates in use. */
  get current(): Certificates {
    return this.#current;
  }

  /** Why the files cannot be used as they are now; null: they are in use. */
  get problem(): string | null {
    return this.#checks.problem;
  }

  start(): void {
    this.#logCertificates();
    this.#checks.start();
  }

  stop(): void {
    this.#checks.stop();
  }

  /** Has certificates that a reload has read used by the listeners, if they differ. Adds the keys whose files differ. */
  async adopt(next: Certificates, changedFiles?: Set<string>): Promise<void> {
    const before = this.#current;
    this.#current = next;
    this.#checks.succeed();
    const nowMs = this.#collaborators.epochMs();
    const areTicketKeysOld = nowMs - this.#ticketKeysSinceMs >= TICKET_KEYS_MS;
    const isSame = areSame(before.listen, next.listen);
    const isAdminSame = areSame(before.admin, next.admin);
    if (!isSame) changedFiles?.add('gateway.tls');
    if (!isAdminSame) changedFiles?.add('gateway.admin_tls');
    if (isSame && isAdminSame && !areTicketKeysOld) return;
    this.#ticketKeysSinceMs = nowMs;
    await this.#collaborators.useForListeners(next);
    this.#logCertificates();
  }

  async #check(): Promise<void> {
    const next = await this.#collaborators.read();
    if (!this.#checks.isStopped) await this.#use(next);
  }

  async #use(next: Certificates): Promise<void> {
    const { replicas } = this.#current;
    const isNewForReplicas = !isDeepStrictEqual(replicas, next.replicas);
    await this.adopt({ ...next, replicas });
    if (!isNewForReplicas) return;
    // If this fails, the next check tries again.
    await this.#collaborators.useForReplicas(next);
    this.#current = next;
  }

  /** Logs each certificate that has come into use. */
  #logCertificates(): void {
    const logged = new Set<string>();
    for (const listener of ['listen', 'admin'] as const) {
      for (const { cert } of this.#current[listener]?.pairs ?? []) {
        const key = `${listener} ${cert}`;
        logged.add(key);
        if (this.#logged.has(key)) continue;
        const { subject: lines, subjectAltName, validToDate } = new X509Certificate(cert);
        const subject = lines.replaceAll('\n', ',');
        const fields = { listener, subject, names: subjectAltName, valid_to: validToDate.toISOString() };
        this.#collaborators.log.info(fields, 'certificate in use');
      }
    }
    this.#logged = logged;
  }
}

/** Whether two readings have the same contents. Each reading makes new ticket keys. */
function areSame(a: TlsMaterial | null, b: TlsMaterial | null): boolean {
  const strip = (material: TlsMaterial | null) => material && { ...material, ticketKeys: null };
  return isDeepStrictEqual(strip(a), strip(b));
}
