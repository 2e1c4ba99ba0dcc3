/** Pieces of up to this many bytes are joined, to be sent with the head in one write. */
const JOINED_BYTES = 64 * 1024;

/**
 * The body as undici takes it. A large one stays in pieces: joining 20 MB stalls everything else for up to 20 ms.
 * undici writes the elements of an iterable with the Content-Length it is given, though its types do not tell.
 */
export function toWritable(
  headers: readonly string[],
  body: readonly Buffer[] | null,
): { readonly headers: string[]; readonly body: Buffer | null } {
  if (body === null) return { headers: [...headers], body };
  if (body.length === 1) return { headers: [...headers], body: body[0] as Buffer };
  const sizeBytes = body.reduce((sum, piece) => sum + piece.length, 0);
  if (sizeBytes <= JOINED_BYTES) return { headers: [...headers], body: Buffer.concat(body, sizeBytes) };
  const pieces: unknown = body;
  return { headers: [...headers, 'Content-Length', String(sizeBytes)], body: pieces as Buffer };
}
