import type { RequestFacts } from '../inspection/request-facts.ts';
import { applyEdits } from './body-edits.ts';
import { editsOfIncludeUsage } from './include-usage.ts';

/**
 * The body as a replica gets it: with the model's name if the client wrote an alias, and with `include_usage` if
 * `asksUsage`. All other bytes are the client's.
 *
 * @returns the pieces to send, in order; the client's pieces are views of `body` and good as long as it is
 */
export function toUpstreamBody(body: Buffer, facts: RequestFacts, asksUsage: boolean): readonly Buffer[] {
  if (!asksUsage && facts.alias === null) return [body];
  const edits = asksUsage ? editsOfIncludeUsage(body, facts) : [];
  if (facts.alias !== null) edits.push({ ...facts.alias.span, text: JSON.stringify(facts.model) });
  return applyEdits(
    body,
    edits.sort((a, b) => a.start - b.start),
  );
}
