import type { Socket } from 'node:net';

/** Up to this size, a message is copied into one Buffer. Above it, copying costs more than a vectored write. */
const JOINED_BYTES = 32 * 1024;

/** The total size in bytes. */
export function sizeOf(pieces: readonly Buffer[]): number {
  let sizeBytes = 0;
  for (const { length } of pieces) sizeBytes += length;
  return sizeBytes;
}

/**
 * Writes text, pieces and text; in one write if they are small. `sizeBytes`: the total size of the pieces. The texts
 * are latin-1. Returns what the last `socket.write` returned.
 */
export function writeMessage(
  socket: Socket,
  before: string,
  pieces: readonly Buffer[],
  sizeBytes: number,
  after: string,
): boolean {
  if (sizeBytes === 0) return socket.write(before + after, 'latin1');
  if (before === '' && after === '' && pieces.length === 1) return socket.write(pieces[0] as Buffer);
  if (sizeBytes > JOINED_BYTES) return writeSeparately(socket, before, pieces, after);
  const message = Buffer.allocUnsafe(before.length + sizeBytes + after.length);
  let at = before === '' ? 0 : message.write(before, 0, 'latin1');
  for (const piece of pieces) {
    message.set(piece, at);
    at += piece.length;
  }
  if (after !== '') message.write(after, at, 'latin1');
  return socket.write(message);
}

function writeSeparately(socket: Socket, before: string, pieces: readonly Buffer[], after: string): boolean {
  socket.cork();
  let canTakeMore = true;
  if (before !== '') canTakeMore = socket.write(before, 'latin1');
  for (const piece of pieces) canTakeMore = socket.write(piece);
  if (after !== '') canTakeMore = socket.write(after, 'latin1');
  socket.uncork();
  return canTakeMore;
}
