import { isUtf8 } from 'node:buffer';
import type { MemberAllowance, Span } from '#json';
import type { RecordedEndpoint } from '../../endpoints/recorded-endpoint.ts';
import type { PrefixHasher } from '../../record/prefix-hashes.ts';
import type { NameDoubts } from './member-names.ts';
import { TextReader } from './text-reader.ts';

/** What must be known of a request to find its text: `RequestFacts` has it. */
export interface RequestTextFacts {
  /** The whole model name. Null: the request has none, and gets no hashes. */
  readonly model: string | null;
  /** The values of the endpoint's text members, in their order; empty if there are none. */
  readonly texts: readonly (Span | undefined)[];
  /** The value of `tools`. */
  readonly tools: Span | undefined;
}

/** What the record holds of a request's text. */
export interface RequestTextDescription {
  /** Unicode code points; absent if there is no text, or not all of it is strings. */
  readonly promptChars?: number;
  /** 16 hex digits per block; absent when no block is complete. */
  readonly prefixHashes?: readonly string[];
  /** Names of members that an engine might read otherwise; absent if there are none. */
  readonly names?: NameDoubts;
}

/**
 * Counts and hashes the text of a request as docs/internals/prefix-hashes.md defines, in one pass over a body that is known to be
 * JSON. Call it after the request has gone upstream, since it is slow for a large body. Keeps nothing of the text.
 *
 * @param allowance asked as members and elements are read
 */
export function describeRequestText(
  body: Buffer,
  { model, texts, tools }: RequestTextFacts,
  endpoint: RecordedEndpoint,
  hasher: PrefixHasher,
  allowance?: MemberAllowance,
): RequestTextDescription {
  // Bytes that are not UTF-8 have no code points to count.
  if (texts.length === 0 || !isUtf8(body)) return {};
  const chain = hasher.begin(model ?? '', tools && body.subarray(tools.start, tools.end));
  const reader = new TextReader(body, hasher, chain, allowance);
  const isText = endpoint.readText(reader, texts);
  const prefixHashes = chain.finish();
  const { lookalike, repeated } = reader.names;
  const hasDoubts = lookalike !== null || repeated !== null;
  const names = hasDoubts ? { names: { lookalike, repeated } } : null;
  if (!isText) return { ...names };
  if (model === null) return { promptChars: reader.chars, ...names };
  return { promptChars: reader.chars, ...(prefixHashes.length > 0 && { prefixHashes }), ...names };
}
