import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { RECORD } from './client-hello.ts';

/** Opens a TCP connection to the host and port of a URL. Errors show as its end. */
export async function openTcp(url: string): Promise<Socket> {
  const { hostname: host, port } = new URL(url);
  const socket = connect({ host, port: Number(port), allowHalfOpen: true, noDelay: true });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** Resolves when a socket is closed, with or without an error. */
export async function untilClosed(socket: Socket): Promise<void> {
  if (!socket.closed) await new Promise((resolve) => socket.once('close', resolve));
}

/** Resolves with all that the gateway sends until it closes. Closes this side as soon as the gateway has answered. */
export async function readToClose(socket: Socket): Promise<Buffer> {
  const pieces: Buffer[] = [];
  socket.on('data', (piece: Buffer) => {
    pieces.push(piece);
    if (!socket.writableEnded) socket.end();
  });
  socket.once('end', () => socket.end());
  await untilClosed(socket);
  return Buffer.concat(pieces);
}

/** Sends bytes at once, and resolves with what the gateway says to them. */
export async function send(url: string, bytes: Buffer): Promise<string> {
  const socket = await openTcp(url);
  socket.write(bytes);
  return toWords(await readToClose(socket));
}

/**
 * What records say, as far as they can be read: `hello` for a ServerHello, `alert 70` for an alert (RFC 8446 6), and
 * `closed` for nothing.
 */
export function toWords(bytes: Buffer): string {
  const words: string[] = [];
  for (let at = 0; at + 5 <= bytes.length; at += 5 + bytes.readUInt16BE(at + 3)) {
    if (bytes[at] === RECORD.alert) words.push(`alert ${bytes[at + 6]}`);
    else if (bytes[at] === RECORD.handshake && words.length === 0) words.push('hello');
  }
  return words.length === 0 ? 'closed' : words.join(', ');
}
