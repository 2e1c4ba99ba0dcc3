import { toShownName } from '#otel/base';
import type { RequestRecord } from '#otel/record/registry';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { RequestTextDescription } from '../request/inspection/request-text.ts';

/** What a form that is sent as it comes says of itself, so far. */
export interface FormFacts {
  readonly sizeBytes: number;
  /** What an alias stands for, if the form has one. */
  readonly model: string | null;
  readonly alias: string | null;
  readonly promptChars: number | undefined;
}

/** Fills in what a JSON body says. */
export function fillFromBody(
  record: RequestRecord,
  facts: RequestFacts,
  { promptChars, prefixHashes }: RequestTextDescription,
): void {
  if (facts.model !== null) record.model = toShownName(facts.model);
  if (facts.alias !== null) record.model_requested = toShownName(facts.alias.name);
  setIfName(record, 'previous_response_id', facts.previousResponseId ?? undefined);
  setIfName(record, 'reasoning_level', facts.reasoningLevel);
  if (record.conversation_id === undefined) setIfName(record, 'conversation_id', facts.conversation);
  if (facts.maxTokens !== undefined) record.max_tokens = facts.maxTokens;
  if (promptChars !== undefined) record.prompt_chars = promptChars;
  if (prefixHashes !== undefined) record.prefix_hashes = prefixHashes;
}

/** Fills in what a form says. */
export function fillFromForm(
  record: RequestRecord,
  { sizeBytes, model, alias, promptChars }: FormFacts,
): void {
  record.request_bytes = sizeBytes;
  if (model !== null) record.model = toShownName(model);
  if (alias !== null) record.model_requested = toShownName(alias);
  if (promptChars !== undefined) record.prompt_chars = promptChars;
}

/** Records a name from the body. One that has nothing to show is not recorded. */
function setIfName(
  record: RequestRecord,
  field: 'previous_response_id' | 'conversation_id' | 'reasoning_level',
  name: string | undefined,
): void {
  const shown = name === undefined ? '' : toShownName(name).trim();
  if (shown !== '') record[field] = shown;
}
