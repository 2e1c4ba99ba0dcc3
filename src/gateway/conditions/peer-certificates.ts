import type { CertificateEnd } from '#access/certificates';
import { shakeHands } from '#replicas/probes';
import type { RegisteredReplica } from '#replicas/registry';

/** How often the certificate of a replica is looked at; if it did not answer; and if the certificate ends soon. */
const LOOK_EVERY_MS = 3_600_000;
const TRY_AGAIN_MS = 60_000;
const LOOK_FOR_NEW_MS = 10_000;
/** From here on it is told that a certificate ends. */
const SOON_MS = 30 * 24 * 3_600_000;
/** Handshakes at the same time: after a start all replicas are new. */
const MAX_LOOKS = 4;

/** `nowMs`: monotonic milliseconds. `epochMs`: those since 1970. */
interface Clock {
  readonly nowMs: () => number;
  readonly epochMs: () => number;
}

interface Peer {
  readonly url: string;
  nextLookMs: number;
  end: CertificateEnd | null;
}

/**
 * Knows when the certificates end that replicas with https show, by a handshake with each of them every hour, and every
 * ten seconds once it ends soon: that of a replica to which no request goes, too.
 */
export class PeerCertificates {
  readonly #replicas: () => readonly Pick<RegisteredReplica, 'name' | 'config'>[];
  readonly #clock: Clock;
  readonly #peers = new Map<string, Peer>();
  #looks = 0;

  constructor(replicas: () => readonly Pick<RegisteredReplica, 'name' | 'config'>[], clock: Clock) {
    this.#replicas = replicas;
    this.#clock = clock;
  }

  /** The ends that are known, those that come first before the others. Begins the handshakes that are due. */
  list(): readonly CertificateEnd[] {
    const nowMs = this.#clock.nowMs();
    const seen = new Set<string>();
    for (const { name, config } of this.#replicas()) {
      if (!config.url.startsWith('https:')) continue;
      seen.add(name);
      let peer = this.#peers.get(name);
      if (peer === undefined || peer.url !== config.url) {
        peer = { url: config.url, nextLookMs: nowMs, end: null };
        this.#peers.set(name, peer);
      }
      if (peer.nextLookMs <= nowMs && this.#looks < MAX_LOOKS) void this.#look(name, peer, config);
    }
    for (const name of this.#peers.keys()) if (!seen.has(name)) this.#peers.delete(name);
    const ends = [...this.#peers.values()].flatMap(({ end }) => end ?? []);
    return ends.toSorted((a, b) => a.endMs - b.endMs);
  }

  async #look(name: string, peer: Peer, config: RegisteredReplica['config']): Promise<void> {
    peer.nextLookMs = Number.POSITIVE_INFINITY;
    this.#looks += 1;
    const certificate = await shakeHands(config);
    this.#looks -= 1;
    const endMs = Date.parse(certificate?.valid_to ?? '');
    const { nowMs, epochMs } = this.#clock;
    if (certificate === null || Number.isNaN(endMs)) {
      peer.nextLookMs = nowMs() + TRY_AGAIN_MS;
      return;
    }
    peer.nextLookMs = nowMs() + (endMs - epochMs() < SOON_MS ? LOOK_FOR_NEW_MS : LOOK_EVERY_MS);
    const commonName = certificate.subject?.CN;
    const shown =
      commonName === undefined ? `serial ${certificate.serialNumber}` : `CN=${String(commonName)}`;
    peer.end = { subject: `server ${name} (${shown})`, endMs };
  }
}
