import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { type InTurn, RepeatedCheck } from '#base';
import type { TlsMaterial } from '#wire';
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
  /** Uses these for connections to replicas from now on. Rejects with a StartError if that is not possible now. */
  readonly useForReplicas: (next: Certificates) => Promise<void>;
  /** The time: milliseconds since 1970. */
  readonly epochMs: () => number;
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;
}

/** Who learns the keys of session tickets can read resumed sessions of this time. Then clients handshake in full once. */
const TICKET_KEYS_MS = 6 * 3_600_000;

/**
 * Reads the certificate files again and again, and has new contents used. Contents that cannot be used are refused: the
 * ones in effect stay. It logs the certificates of the listeners when they come into use, and when their end is near.
 */
export class CertificateWatcher {
  readonly #collaborators: CertificateWatcherCollaborators;
  readonly #checks: RepeatedCheck;
  #current: Certificates;
  /** Milliseconds since 1970. */
  #ticketKeysSinceMs: number;
  /** What was last logged of each certificate in use, by listener and certificate. */
  #logged: ReadonlyMap<string, Validity> = new Map();

  constructor(current: Certificates, collaborators: CertificateWatcherCollaborators) {
    const { intervalMs, inTurn, log } = collaborators;
    this.#current = current;
    this.#ticketKeysSinceMs = collaborators.epochMs();
    this.#collaborators = collaborators;
    this.#checks = new RepeatedCheck({
      intervalMs,
      inTurn,
      check: () => this.#check(),
      onProblem: (problem) => log.error({ problem }, 'certificates refused: the former ones stay'),
    });
  }

  start(): void {
    this.#logCertificates();
    this.#checks.start();
  }

  stop(): void {
    this.#checks.stop();
  }

  /** Has certificates used by the listeners that a reload has read, if they differ from those in effect. */
  async adopt(next: Certificates): Promise<void> {
    const before = this.#current;
    this.#current = next;
    const nowMs = this.#collaborators.epochMs();
    const areTicketKeysOld = nowMs - this.#ticketKeysSinceMs >= TICKET_KEYS_MS;
    const isSame = areSame(before.listen, next.listen) && areSame(before.admin, next.admin);
    if (isSame && !areTicketKeysOld) return;
    this.#ticketKeysSinceMs = nowMs;
    await this.#collaborators.useForListeners(next);
    this.#logCertificates();
  }

  async #check(): Promise<void> {
    try {
      const next = await this.#collaborators.read();
      if (!this.#checks.isStopped) await this.#use(next);
    } finally {
      this.#logCertificates();
    }
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

  /** Logs each certificate of which something else was logged before, or nothing. */
  #logCertificates(): void {
    const { epochMs, log } = this.#collaborators;
    const logged = new Map<string, Validity>();
    for (const listener of ['listen', 'admin'] as const) {
      for (const { cert } of this.#current[listener]?.pairs ?? []) {
        const { subject, subjectAltName, validToDate } = new X509Certificate(cert);
        const validity = toValidity(validToDate.getTime() - epochMs());
        const key = `${listener} ${cert}`;
        logged.set(key, validity);
        if (this.#logged.get(key) === validity) continue;
        const fields = { listener, subject, names: subjectAltName, valid_to: validToDate.toISOString() };
        log[LEVELS[validity]](fields, MESSAGES[validity]);
      }
    }
    this.#logged = logged;
  }
}

type Validity = 'valid' | 'ends_soon' | 'ended';

const LEVELS = { valid: 'info', ends_soon: 'warn', ended: 'error' } as const satisfies Record<
  Validity,
  string
>;

const MESSAGES: Readonly<Record<Validity, string>> = {
  valid: 'certificate in use',
  ends_soon: 'certificate in use expires soon',
  ended: 'certificate in use has expired',
};

function toValidity(restMs: number): Validity {
  if (restMs <= 0) return 'ended';
  return restMs < ENDS_SOON_MS ? 'ends_soon' : 'valid';
}

/** Whether two readings have the same contents. Each reading makes new ticket keys. */
function areSame(a: TlsMaterial | null, b: TlsMaterial | null): boolean {
  const strip = (material: TlsMaterial | null) => material && { ...material, ticketKeys: null };
  return isDeepStrictEqual(strip(a), strip(b));
}
