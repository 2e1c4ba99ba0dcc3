import { itemsOf, memberOf, parseJson } from '#base/parsed';
import { generateInstance, toLine } from '#testkit/records/generated-records.ts';
import type { Random } from '../../../fuzz-http/random.ts';

const RECORD_COUNT = 3;
/** What the digests cover: the attributes with these names. */
const COVERED = 'gateway.';
/** A span with one of these is a record, or with the other a ledger span. */
const RECORD_MARKS = ['gateway.request_id', 'gateway.seq'];
const LEDGER_MARK = 'gateway.ledger.number';

const generated = generateInstance(
  'a',
  Array.from({ length: RECORD_COUNT }, () => 'queued' as const),
);
const RECORDS = generated.records.map(({ json }) => json);
/** The spans of an instance of which `gateway verify` proves every record, in OTLP JSON. */
const PROVEN_SPANS: readonly string[] = [...RECORDS, ...generated.ledgers];

/** A file of records, in most cases one that is proven: a line for each of one or more spans. */
export function provenFile(random: Random): string {
  const spans = [...PROVEN_SPANS];
  if (random.chance(5)) spans.push(random.pick(PROVEN_SPANS));
  if (random.chance(5)) spans.push(strange(random));
  if (random.chance(20)) spans.reverse();
  const lines: string[] = [];
  while (spans.length > 0) lines.push(toLine(spans.splice(0, 1 + random.below(4))));
  return lines.join('');
}

/** A further record or ledger span that does not say which one it is, or a span that is none of these. */
function strange(random: Random): string {
  const json = random.pick(PROVEN_SPANS);
  switch (random.below(4)) {
    case 0:
      return json.replaceAll('"gateway.', '"gatew.');
    case 1:
      return json.replace('"gateway.instance"', '"gateway.instances"');
    case 2:
      return json.replace('"key":"gateway.seq","value":{"intValue":"', '$&0');
    default:
      return json.replace('"gateway.instance","value":{"stringValue":"', '$&b');
  }
}

const EXPECTED_RECORDS = RECORDS.map((json) => coveredOf(JSON.parse(json))).sort();
const EXPECTED_LEDGERS = generated.ledgers.map((json) => coveredOf(JSON.parse(json))).sort();

/**
 * Whether lines have the records that were made, each once, and the ledger spans, each with its covered attributes, and
 * no other records and ledger spans. What a line that cannot be read was, nobody knows.
 */
export function hasAllSpans(lines: readonly (Buffer | null)[]): boolean {
  const spans = lines.map((line) => (line === null ? null : spansOf(line.toString())));
  if (spans.includes(null)) return false;
  const found = spans.flatMap((each) => each ?? []).map(coveredOf);
  const has = (text: string, key: string) => text.includes(`["${key}",`);
  const ledgers = found.filter((text) => has(text, LEDGER_MARK));
  const records = found
    .filter((text) => !has(text, LEDGER_MARK))
    .filter((text) => RECORD_MARKS.some((key) => has(text, key)));
  return (
    areEqual(records.sort(), EXPECTED_RECORDS) && areEqual([...new Set(ledgers)].sort(), EXPECTED_LEDGERS)
  );
}

function areEqual(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((text, index) => text === other[index]);
}

/** Null: the line is no TracesData message. Lists in it that are none have nothing. */
function spansOf(line: string): readonly ExportedSpan[] | null {
  const resourceSpans = memberOf(parseJson(line), 'resourceSpans');
  if (!Array.isArray(resourceSpans)) return null;
  const scopeSpans = resourceSpans.flatMap((each) => itemsOf(each, 'scopeSpans'));
  return scopeSpans.flatMap((each) => itemsOf(each, 'spans')).filter(isSpan);
}

function isSpan(value: unknown): value is ExportedSpan {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface ExportedSpan {
  readonly attributes?: readonly { readonly key: string; readonly value?: unknown }[];
}

/** The covered attributes of a span in the order of their names. Members that OTLP does not know say nothing. */
function coveredOf(span: ExportedSpan): string {
  const attributes = Array.isArray(span?.attributes) ? span.attributes : [];
  const covered = attributes.filter(({ key }) => typeof key === 'string' && key.startsWith(COVERED));
  const texts = covered.map(({ key, value }) => JSON.stringify([key, value], toWrittenForm));
  return `[${texts.sort().join(',')}]`;
}

/** An int64 may be a number or a text, and an empty list may have no member. */
function toWrittenForm(key: string, value: unknown): unknown {
  if (key === 'intValue' && typeof value === 'number') return String(value);
  return key === 'arrayValue' && JSON.stringify(value) === '{}' ? { values: [] } : value;
}
