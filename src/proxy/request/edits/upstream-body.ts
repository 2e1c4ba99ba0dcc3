import type { RequestFacts } from '../inspection/request-facts.ts';
import { applyEdits } from './body-edits.ts';
import { editsOfUsage, type UsageOption } from './include-usage.ts';

/**
 * The body as a replica gets it: with the model's name if the client wrote an alias, and with what
 * asks for usage. All other bytes are the client's.
 *
 * @returns the pieces to send, in order; the client's pieces are views of `body` and good as long as it is
 */
export function toUpstreamBody(
  body: Buffer,
  facts: RequestFacts,
  options: readonly UsageOption[],
): readonly Buffer[] {
  if (options.length === 0 && facts.alias === null) return [body];
  const edits = options.length === 0 ? [] : editsOfUsage(body, facts, options);
  if (facts.alias !== null) edits.push({ ...facts.alias.span, text: JSON.stringify(facts.model) });
  return applyEdits(
    body,
    edits.sort((a, b) => a.start - b.start),
  );
}
