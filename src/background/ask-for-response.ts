import { EventScratch, JsonTap, RESPONSES, type ResponseFields } from '#proxy';
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
/** The output of a response can be long. It is read as it comes, and not kept. */
const MAX_ANSWER_BYTES = 64 * 1024 ** 2;

/** Asks a replica how far a response is, with the replica's own key and TLS. Never rejects. */
export async function askForResponse(replica: ProbeTarget, id: string): Promise<ResponseState> {
  const tap = new JsonTap({ endpoint: RESPONSES, scratch: new EventScratch() });
  const result = await probe(replica, {
    path: `${RESPONSES.path}/${encodeURIComponent(id)}`,
    accept: 'application/json',
    timeoutMs: TIMEOUT_MS,
    maxBytes: MAX_ANSWER_BYTES,
    onLongBody: 'ignore' as const,
    isWanted: (status) => status === 200,
    onChunk: (chunk) => tap.push(chunk),
  });
  if (result.kind === 'failure') return { kind: 'unreachable' };
  if (result.status === 404) return { kind: 'missing' };
  if (result.status !== 200 || tap.responseId !== id) return { kind: 'unclear' };
  if (tap.state === 'open') return { kind: 'open' };
  if (tap.state === null) return { kind: 'unclear' };
  const fields: ResponseFields = {};
  tap.fill(fields);
  return { kind: 'ended', fields };
}
