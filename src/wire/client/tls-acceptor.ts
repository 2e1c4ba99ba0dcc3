import { constants, createPrivateKey, X509Certificate } from 'node:crypto';
import type { Socket } from 'node:net';
import { createSecureContext, createServer, type SecureContext, type Server, type TLSSocket } from 'node:tls';
import { BegunHandshakes } from './plain-http.ts';

/** A certificate, with its chain, and its key: PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
}

/** What handshakes use. Plain data, which can be sent to another thread. */
export interface TlsMaterial {
  /** The first pair is for clients that name no server, or one that no pair is for. */
  readonly pairs: readonly [CertificatePair, ...CertificatePair[]];
  /** The authorities (PEM) one of which must have signed the client's certificate; null: clients need none. */
  readonly clientCa: string | null;
  readonly minVersion: 'TLSv1.2' | 'TLSv1.3';
  /** 48 random bytes with which session tickets are encrypted: the same in all workers. */
  readonly ticketKeys: Uint8Array;
}

export interface TlsAcceptorOptions {
  readonly handshakeTimeoutMs: number;
  /** The handshake is complete. The socket allows half-open connections. */
  readonly onSecure: (socket: TLSSocket) => void;
  /**
   * A handshake failed, and its socket is closed. `code` is the error code of Node or OpenSSL; ECONNRESET if the client
   * left. `address`: the client's, if the system still knows it.
   */
  readonly onFailed: (code: string, address: string | undefined) => void;
}

/** At most as many names as this are remembered with their pair. Clients choose the names. */
const MAX_KNOWN_NAMES = 1_000;

/**
 * Only suites with forward secrecy and authenticated encryption. Node's list has others for old peers, such as AES-CBC
 * with RSA key exchange. The order of TLS 1.2 is Mozilla's (intermediate, 5.7), that of TLS 1.3 begins with the cheapest.
 */
const CIPHERS = [
  ...['TLS_AES_128_GCM_SHA256', 'TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256'],
  ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-RSA-AES128-GCM-SHA256'],
  ...['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-RSA-AES256-GCM-SHA384'],
  ...['ECDHE-ECDSA-CHACHA20-POLY1305', 'ECDHE-RSA-CHACHA20-POLY1305'],
].join(':');

interface Pair {
  readonly certificate: X509Certificate;
  readonly context: SecureContext;
}

/**
 * Makes TLS connections of accepted sockets. For other material or another time-out, create another one: handshakes that
 * have begun stay with theirs. It offers HTTP/1.1 only, and picks the certificate by the server name that the client
 * sends (SNI).
 */
export class TlsAcceptor {
  readonly #server: Server;
  readonly #pairs: CertificateChoice;
  readonly #handshakes = new BegunHandshakes();

  /** Throws the error of OpenSSL if the material cannot be used. */
  constructor(material: TlsMaterial, { handshakeTimeoutMs, onSecure, onFailed }: TlsAcceptorOptions) {
    this.#pairs = new CertificateChoice(material);
    const asksForCertificate = material.clientCa !== null;
    this.#server = createServer({
      ...toContextOptions(material),
      ALPNProtocols: ['http/1.1'],
      SNICallback: this.#pairs.sniCallback,
      requestCert: asksForCertificate,
      rejectUnauthorized: asksForCertificate,
      handshakeTimeout: handshakeTimeoutMs,
    });
    this.#server.on('secureConnection', (socket) => {
      socket.allowHalfOpen = true;
      onSecure(socket);
    });
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, socket) => {
      const { code = 'unknown' } = error;
      const { remoteAddress } = socket;
      this.#handshakes.fail(socket, code);
      // Some errors close the socket, others leave that to the server.
      socket.destroy();
      // The code of a certificate that was refused; Node reports such a socket as one that was closed.
      const refusal: unknown = socket.authorizationError;
      onFailed(typeof refusal === 'string' ? refusal : code, remoteAddress);
    });
  }

  /** Starts the handshake of a socket. `onSecure` or `onFailed` follows, exactly once. */
  accept(socket: Socket): void {
    // The TLS socket takes this over: a client that closes its side during the handshake has given up.
    socket.allowHalfOpen = false;
    this.#handshakes.begin(socket);
    this.#server.emit('connection', socket);
  }
}

/** Picks the certificate by the server name that a client sends (SNI). */
export class CertificateChoice {
  #pairs: readonly Pair[];
  #pairByName = new Map<string, Pair>();

  /** Throws the error of OpenSSL if the material cannot be used. */
  constructor(material: TlsMaterial) {
    this.#pairs = toPairs(material);
  }

  /** The option `SNICallback` of a server. */
  readonly sniCallback = (name: string, callback: (error: null, context?: SecureContext) => void): void =>
    callback(null, this.#pairOf(name)?.context);

  /** Picks from this material from now on. Throws the error of OpenSSL, and changes nothing, if it cannot be used. */
  use(material: TlsMaterial): void {
    this.#pairs = toPairs(material);
    this.#pairByName = new Map();
  }

  #pairOf(name: string): Pair | undefined {
    const known = this.#pairByName.get(name);
    if (known !== undefined) return known;
    const pair = this.#pairs.find(({ certificate }) => certificate.checkHost(name) !== undefined);
    const chosen = pair ?? this.#pairs[0];
    if (chosen !== undefined && this.#pairByName.size < MAX_KNOWN_NAMES) this.#pairByName.set(name, chosen);
    return chosen;
  }
}

/** Checks that every pair can be used: both parts are PEM and belong together. Throws the error of OpenSSL. */
export function checkTlsMaterial(material: TlsMaterial): void {
  toPairs(material);
}

function toPairs(material: TlsMaterial): readonly Pair[] {
  // OpenSSL takes an empty text for an absent one, and then trusts Node's own authorities.
  if (material.clientCa !== null) new X509Certificate(material.clientCa);
  return material.pairs.map((pair) => {
    createPrivateKey(pair.key);
    return {
      certificate: new X509Certificate(pair.cert),
      context: createSecureContext(toContextOptions(material, pair)),
    };
  });
}

/** The options of `node:tls` for one pair, by default the first. */
export function toContextOptions(
  { pairs, clientCa, minVersion, ticketKeys }: TlsMaterial,
  { cert, key }: CertificatePair = pairs[0],
) {
  return {
    cert,
    key,
    minVersion,
    ciphers: CIPHERS,
    // Renegotiation costs the server far more than the client.
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
    ticketKeys: Buffer.from(ticketKeys),
    ...(clientCa === null ? {} : { ca: clientCa }),
  };
}
