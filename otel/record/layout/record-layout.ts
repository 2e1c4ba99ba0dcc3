import { type FieldValue, type RequestRecord, SEMCONV } from '#otel/record/registry';
import {
  attributeValuesOf,
  GEN_AI_ATTRIBUTES,
  type HttpFacts,
  LATEST_ATTRIBUTES,
  latestValuesOf,
  REQUEST_ATTRIBUTES,
  type RecordAttribute,
} from '../attributes.ts';

/** Which names of GenAI's conventions: the pinned version that backends read, or the newest text. */
export type GenAiNames = 'pinned' | 'latest';

/** An attribute, and where its value is among those of the record. */
export interface PlacedAttribute extends RecordAttribute {
  /** Its place in what `valuesOf` returns. */
  readonly index: number;
}

/** Some attributes of a record, and how their values are found. */
export interface AttributeSet {
  readonly attributes: readonly PlacedAttribute[];
  readonly valuesOf: (record: Readonly<RequestRecord>, http: HttpFacts) => readonly FieldValue[];
}

/** Which span has which attributes of a record. */
export interface RecordLayout {
  readonly request: AttributeSet;
  /** Those of the operation's span; null: the request's span has them. Only one has them: backends add up their usage. */
  readonly operation: AttributeSet | null;
}

/** The new names of pinned ones (semantic-conventions-genai, docs/gen-ai/non-normative/migration.md). */
const RENAMED: ReadonlyMap<string, string> = new Map([
  [SEMCONV.genAiUsageCacheCreationInputTokens, SEMCONV.genAiUsageCacheWriteInputTokens],
]);

/** Creates the layout. `hasOperation`: whether a request has a span of its operation. */
export function createRecordLayout(names: GenAiNames, hasOperation: boolean): RecordLayout {
  const isLatest = names === 'latest';
  const request = REQUEST_ATTRIBUTES.map(place);
  const genAi = (isLatest ? [...GEN_AI_ATTRIBUTES.map(rename), ...LATEST_ATTRIBUTES] : GEN_AI_ATTRIBUTES).map(
    (attribute, index) => place(attribute, request.length + index),
  );
  const valuesOf = isLatest ? allValuesOf : attributeValuesOf;
  return hasOperation
    ? { request: { attributes: request, valuesOf }, operation: { attributes: genAi, valuesOf } }
    : { request: { attributes: [...request, ...genAi], valuesOf }, operation: null };
}

/** One span, and the pinned names. */
export const DEFAULT_LAYOUT: RecordLayout = createRecordLayout('pinned', false);

function allValuesOf(record: Readonly<RequestRecord>, http: HttpFacts): readonly FieldValue[] {
  return [...attributeValuesOf(record, http), ...latestValuesOf(record)];
}

function place(attribute: RecordAttribute, index: number): PlacedAttribute {
  return { ...attribute, index };
}

function rename(attribute: RecordAttribute): RecordAttribute {
  return { ...attribute, name: RENAMED.get(attribute.name) ?? attribute.name };
}
