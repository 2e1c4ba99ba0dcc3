import { type ResponseFields, StoredResponseReader } from '#proxy';
import { type ProbeTarget, probe } from '#replicas/probes';

/** What a replica says of a response. */
export type ResponseState =
  | { readonly kind: 'open' }
  /** What its record has of it. */
  | { readonly kind: 'ended'; readonly fields: ResponseFields }
  /** It has no such response. */
  | { readonly kind: 'missing' }
  /** It answers something else: an error, or what is no response with this id. */
  | { readonly kind: 'unclear' }
  | { readonly kind: 'unreachable' };

/** A busy engine may take long to answer. */
const TIMEOUT_MS = 10_000;
/** The output of a response can be long. */
const MAX_ANSWER_BYTES = 64 * 1024 ** 2;

/** Asks a replica how far a response is, with the replica's own key and TLS. Never rejects. */
export async function askForResponse(replica: ProbeTarget, id: string): Promise<ResponseState> {
  const reader = new StoredResponseReader(id);
  const result = await probe(replica, {
    path: reader.path,
    accept: 'application/json',
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_ANSWER_BYTES,
    onLongBody: 'ignore' as const,
    isWanted: (status) => status === 200,
    onChunk: (chunk) => reader.push(chunk),
  });
  if (result.kind === 'failure') return { kind: 'unreachable' };
  if (result.status === 404) return { kind: 'missing' };
  const said = result.status === 200 ? reader.read() : null;
  if (said === null) return { kind: 'unclear' };
  return said === 'open' ? { kind: 'open' } : { kind: 'ended', fields: said };
}
