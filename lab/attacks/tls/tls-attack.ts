import type { IssuedCertificate } from '../../../test/support/certificates.ts';

/** One attack below or around TLS, and what must come of it. */
export interface TlsAttack {
  readonly name: string;
  /** Where it is described: RFC section, CVE, paper. */
  readonly source: string;
  /** What the client does. Resolves with what came of it, once the gateway has closed the connections it used. */
  readonly act: (target: TlsTarget) => Promise<string>;
  /** What `act` must resolve with. */
  readonly outcome: string;
  /** How many chats reach the replica. Default: 0. */
  readonly forwarded?: number;
}

/** What is attacked, and what an attacker may have. */
export interface TlsTarget {
  /** A listener that asks for no certificates. */
  readonly url: string;
  /** A listener that asks for certificates. */
  readonly strictUrl: string;
  /** A listener without TLS. */
  readonly plainUrl: string;
  /** The authority of the gateway. */
  readonly ca: string;
  /** Certificates for clients, by name. */
  readonly clients: ClientCertificates;
}

/** Sound and unsound certificates of clients. */
export type ClientCertificates = Readonly<
  Record<
    'sound' | 'expired' | 'selfSigned' | 'foreign' | 'forServers' | 'longChain' | 'huge',
    Pick<IssuedCertificate, 'cert' | 'key'>
  >
>;
