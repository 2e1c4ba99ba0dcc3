import { isDeepStrictEqual } from 'node:util';
import { findRecordedEndpoint } from '../../src/proxy/endpoints/table.ts';
import { Failure } from '../../src/proxy/failure.ts';
import { createPrefixHasher } from '../../src/proxy/record/prefix-hashes.ts';
import { readFlag } from '../../src/proxy/request/inspection/engine-flags.ts';
import { findRefusedName, type Readers } from '../../src/proxy/request/inspection/member-names.ts';
import { type RequestFacts, readRequestFacts } from '../../src/proxy/request/inspection/request-facts.ts';
import { describeRequestText } from '../../src/proxy/request/inspection/request-text.ts';
import type { GeneratedBody } from './generate.ts';

/** A key with models or limits: whatever may be read in two ways is refused. */
export const RESTRICTED: Readers = { isRestricted: true, mayFoldCase: true };

/** A key for everything, before an engine that tells upper case from lower case: all bodies pass. */
export const UNRESTRICTED: Readers = { isRestricted: false, mayFoldCase: false };

/** Blocks so short that each change of the text shows in the hashes. */
const HASHER = { salt: Buffer.from('salt'), blockChars: 2, maxBlocks: 32 };

/** What the gateway does with a body: `refused` with a failure of its own, or read in the form of the program in Go. */
export function readWithGateway(
  { path, bytes }: GeneratedBody,
  readers: Readers,
): { readonly refused: string } | { readonly read: object } {
  const endpoint = findRecordedEndpoint(path);
  if (endpoint === undefined) throw new Error(`no endpoint has the path ${path}`);
  try {
    const facts = readRequestFacts(bytes, endpoint);
    const text = describeRequestText(bytes, facts, endpoint, createPrefixHasher(HASHER));
    const refused =
      findRefusedName(facts.names, readers) ?? (text.names && findRefusedName(text.names, readers));
    if (refused) return { refused: 'ambiguous_member' };
    return facts.model === null ? { refused: 'missing_model' } : { read: toComparable(facts, text) };
  } catch (error) {
    if (error instanceof Failure) return { refused: error.code };
    throw error;
  }
}

/** What the gateway reads of a body as the program in Go has read it: all names are in order there. */
export function toComparableOfGo(request: object, path: string): object {
  const given = readWithGateway({ path, bytes: Buffer.from(JSON.stringify(request)) }, UNRESTRICTED);
  return 'read' in given ? given.read : given;
}

function toComparable(facts: RequestFacts, text: object): object {
  const { model, stream, n, maxTokens, streamOptions, previousResponseId, reasoningLevel, conversation } =
    facts;
  const { kind, includeUsage, continuousUsageStats } = streamOptions;
  const isRead = kind === 'object';
  return {
    model: toUnicode(model ?? ''),
    stream: readFlag(stream, 'ollama'),
    n,
    maxTokens,
    includeUsage: isRead && readFlag(includeUsage, 'ollama'),
    continuousUsageStats: isRead && readFlag(continuousUsageStats, 'ollama'),
    previousResponseId: toUnicode(previousResponseId ?? undefined),
    reasoningLevel: toUnicode(reasoningLevel),
    conversation: toUnicode(conversation),
    text,
  };
}

/** Go has no lone surrogates, and a text without characters for none. */
function toUnicode(text = ''): string {
  return text.toWellFormed();
}

/** Whether two readings are the same. */
export function areSame(one: object, other: object): boolean {
  return isDeepStrictEqual(one, other);
}
