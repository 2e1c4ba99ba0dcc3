import type { IssuedCertificate } from '#testkit/certificates.ts';
import { BODY } from '../attack.ts';

/** One attack below or around TLS, and what must come of it. */
export interface TlsAttack {
  readonly name: string;
  /** Where it is described: RFC section, CVE, paper. */
  readonly source: string;
  /** What the client does. Resolves with what came of it, once the gateway has closed the connections it used. */
  readonly act: (target: TlsTarget) => Promise<string>;
  /** What `act` must resolve with. */
  readonly outcome: string;
  /** What it must resolve with on the admin listener, which has another reader of HTTP. Default: `outcome`. */
  readonly adminOutcome?: string;
  /** How many of its calls take effect. Default: 0. */
  readonly effects?: number;
}

/** One kind of listener under attack, and what an attacker may have. */
export interface TlsTarget {
  /** How many connections at one time it takes in any case. */
  readonly connectionCount: number;
  /** The first lines, each with its CRLF, of a POST that it answers with 200. A body may follow. */
  readonly call: string;
  /** The path of a GET that it answers with 200, and that has no effect. */
  readonly page: string;
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
    | 'sound'
    | 'expired'
    | 'notYetValid'
    | 'selfSigned'
    | 'unknown'
    | 'foreign'
    | 'byLeaf'
    | 'forServers'
    | 'longChain'
    | 'huge',
    Pick<IssuedCertificate, 'cert' | 'key'>
  >
>;

/** A POST that the target answers with 200, with these further header lines; the body follows as it is. */
export const callWith = ({ call }: TlsTarget, lines: readonly string[], body: string): string =>
  `${call}${lines.map((line) => `${line}\r\n`).join('')}\r\n${body}`;

/** A whole one with a body, on a connection that is kept. */
export const keptCall = (target: TlsTarget): string =>
  callWith(target, [`Content-Length: ${BODY.length}`], BODY);

/** A whole one, after whose answer the connection ends. */
export const lastCall = (target: TlsTarget): string =>
  callWith(target, ['Connection: close', `Content-Length: ${BODY.length}`], BODY);

/** A GET of the target's page, after whose answer the connection ends. */
export const lastGet = ({ page }: TlsTarget): string =>
  `GET ${page} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`;
