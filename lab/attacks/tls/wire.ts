import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls';
import { openTcp, untilClosed } from './send.ts';

/** What happens to bytes on their way to the gateway: what this returns is sent instead. */
export type Change = (bytes: Buffer, tcp: Socket) => Buffer;

/** A client's TLS connection whose encrypted bytes can be changed after the handshake. */
export interface Wire extends Disposable {
  readonly tls: TLSSocket;
  readonly tcp: Socket;
  /** Changes the bytes of each write from now on. */
  change(next: Change): void;
  /**
   * Resolves with what came of it when the connection is closed: the status of the answer, else the code of the error
   * that the client got, else `closed`.
   */
  untilClosed(): Promise<string>;
}

/** Opens one. Rejects if the handshake fails. */
export async function openWire(url: string, options: ConnectionOptions): Promise<Wire> {
  const tcp = await openTcp(url);
  let change: Change = (bytes) => bytes;
  const duplex = new Duplex({
    read: () => tcp.resume(),
    write(bytes: Buffer, _encoding, done) {
      const changed = change(bytes, tcp);
      if (changed.length > 0 && tcp.writable) tcp.write(changed);
      done();
    },
    final(done) {
      tcp.end();
      done();
    },
  });
  tcp.on('data', (bytes) => void (duplex.push(bytes) || tcp.pause()));
  tcp.once('end', () => duplex.push(null));
  // What the gateway has sent before it closed is read first.
  tcp.once('close', () => setImmediate(() => duplex.destroy()));
  const tls = connect({ socket: duplex, host: new URL(url).hostname, ...options });
  let received = '';
  let code: string | null = null;
  tls.on('error', (error: NodeJS.ErrnoException) => {
    code ??= error.code ?? 'unknown';
  });
  await new Promise<void>((resolve, reject) => {
    tls.once('secureConnect', resolve).once('close', () => reject(new Error('the handshake failed')));
  });
  tls.once('end', () => tls.end());
  tls.setEncoding('latin1').on('data', (text: string) => {
    received += text;
  });
  return {
    tls,
    tcp,
    change: (next) => {
      change = next;
    },
    async untilClosed() {
      await untilClosed(tls);
      tcp.destroy();
      return /^HTTP\/1\.1 (\d{3})/.exec(received)?.[1] ?? code ?? 'closed';
    },
    [Symbol.dispose]() {
      tls.destroy();
      tcp.destroy();
    },
  };
}
