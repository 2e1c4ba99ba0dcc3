import type { Socket } from 'node:net';

/** OpenSSL's codes for a client that speaks HTTP without TLS. It knows GET, POST, HEAD, PUT and CONNECT. */
const PLAIN_HTTP_CODES: ReadonlySet<string> = new Set([
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_HTTPS_PROXY_REQUEST',
]);

const TEXT = 'This port speaks TLS: use https://\n';
const ANSWER =
  'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\n' +
  `Content-Length: ${TEXT.length}\r\n\r\n${TEXT}`;

/**
 * The sockets whose handshake has begun, by their addresses. The TLS socket that Node makes of a socket has the same
 * addresses, and nothing else in common with it.
 */
export class BegunHandshakes {
  readonly #sockets = new Map<string, Socket>();

  /** The handshake of a socket begins. */
  begin(socket: Socket): void {
    const key = toKey(socket);
    this.#sockets.set(key, socket);
    socket.once('close', () => {
      if (this.#sockets.get(key) === socket) this.#sockets.delete(key);
    });
  }

  /**
   * The handshake of this TLS socket has failed, and its connection closes when this has returned. Tells a client that
   * speaks plain HTTP what is wrong, as nginx and Go do.
   */
  fail(tls: Socket, code: string): void {
    if (PLAIN_HTTP_CODES.has(code)) this.#sockets.get(toKey(tls))?.write(ANSWER);
  }
}

function toKey({ localAddress, remoteAddress, remotePort }: Socket): string {
  return `${localAddress} ${remoteAddress} ${remotePort}`;
}
