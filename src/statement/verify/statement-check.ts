import { AttributesDigester } from '#otel/otlp';
import { RECORD_FIELDS } from '#otel/record/registry';
import { readSpans, SpanValues } from '#records/files';
import type { BilledRecord } from '../billed-record.ts';
import { parseSeqTexts, toSeqTexts } from '../seq-texts.ts';
import type { Statement } from '../statement-schema.ts';
import { UsageRows } from '../usage-rows.ts';
import { FOUND, type ListedInstance } from './listed-records.ts';

/** More records that no statement lists than these are only counted. */
const MAX_UNLISTED = 1_000_000;

/** Numbers of records: how many, and which. */
export interface FoundNumbers {
  readonly count: number;
  readonly numbers: readonly string[];
}

/** What is wrong with the records of one instance. Absent: nothing of this kind. */
export interface InstanceFinding {
  readonly instance: string;
  /** The statement lists it, and there is no record. */
  readonly missing?: FoundNumbers;
  /** There are several records with this number. */
  readonly doubled?: FoundNumbers;
  /** The record is not the one that the statement was made of. */
  readonly changed?: FoundNumbers;
  /** The record is of another tenant, or of none. */
  readonly of_another_tenant?: FoundNumbers;
  /** The request did not arrive in the month. */
  readonly outside_month?: FoundNumbers;
  /** A record of the tenant and the month that the statement does not list. */
  readonly unlisted?: FoundNumbers;
  /** There is a record of which the statement says that it was not exported. */
  readonly unexpected?: FoundNumbers;
}

/** Compares the records in files with those that a statement lists, in whatever order they come. */
export class StatementCheck {
  readonly #statement: Statement;
  readonly #listed: ReadonlyMap<string, ListedInstance>;
  readonly #notExported: ReadonlyMap<string, (seq: number) => boolean>;
  readonly #unlisted = new Map<string, Set<number>>();
  #unlistedCount = 0;
  readonly #digester = new AttributesDigester();
  readonly #rows: UsageRows;
  /** Records that are as the statement says. */
  proven = 0;
  /** Lines that are neither OTLP JSON nor lines of a spool. */
  brokenLines = 0;
  /** Records without an instance or a number. */
  unidentified = 0;

  constructor(statement: Statement, listed: ReadonlyMap<string, ListedInstance>) {
    this.#statement = statement;
    this.#listed = listed;
    this.#rows = new UsageRows(statement.days);
    this.#notExported = new Map(
      [...Map.groupBy(statement.not_exported.records, ({ instance }) => instance)].map(([instance, all]) => [
        instance,
        createMembership(all.flatMap(({ numbers }) => parseSeqTexts(numbers) ?? [])),
      ]),
    );
  }

  /** The sums of the records that are as the statement says. */
  get rows(): UsageRows {
    return this.#rows;
  }

  /** Adds a line of a file. Null: a line that is too long. */
  addLine(line: Buffer | null): void {
    const spans = line === null ? null : readSpans(line);
    if (spans === null) this.brokenLines += 1;
    for (const span of spans ?? []) this.#add(span);
  }

  #add(span: unknown): void {
    const values = new SpanValues(span);
    if (!MARKS.some((name) => values.hasName(name))) return;
    const instance = values.text(RECORD_FIELDS.instance.name);
    const seq = values.count(RECORD_FIELDS.seq.name) ?? 0;
    if (instance === undefined || seq === 0) this.unidentified += 1;
    else this.#addRecord(toBilledRecord(values, instance, seq), values.text(RECORD_FIELDS.tenant.name), span);
  }

  #addRecord(record: BilledRecord, tenant: string | undefined, span: unknown): void {
    const { instance, seq, ts } = record;
    const { since, until } = this.#statement;
    const isOwn = tenant === this.#statement.tenant;
    const isInMonth = ts >= since && ts < until;
    const listed = this.#listed.get(instance);
    const place = listed?.placeOf(seq) ?? null;
    if (listed === undefined || place === null) {
      if (isOwn && isInMonth) this.#addUnlisted(instance, seq);
      return;
    }
    const isSame = listed.hasDigest(place, this.#digester.digestJsonSpan(span));
    const isFirst = (listed.flagsAt(place) & FOUND.seen) === 0;
    listed.mark(
      place,
      FOUND.seen |
        (isFirst ? 0 : FOUND.doubled) |
        (isSame ? 0 : FOUND.changed) |
        (isOwn ? 0 : FOUND.elsewhere) |
        (isInMonth ? 0 : FOUND.outside),
    );
    if (!isFirst || !isSame || !isOwn || !isInMonth) return;
    this.proven += 1;
    this.#rows.add(record);
  }

  #addUnlisted(instance: string, seq: number): void {
    this.#unlistedCount += 1;
    if (this.#unlistedCount > MAX_UNLISTED) return;
    const known = this.#unlisted.get(instance);
    if (known === undefined) this.#unlisted.set(instance, new Set([seq]));
    else known.add(seq);
  }

  /** What is wrong, by instance. */
  findings(): readonly InstanceFinding[] {
    const instances = [...new Set([...this.#listed.keys(), ...this.#unlisted.keys()])].sort();
    return instances
      .map((instance) => this.#findingOf(instance))
      .filter((finding) => Object.keys(finding).length > 1);
  }

  #findingOf(instance: string): InstanceFinding {
    const listed = this.#listed.get(instance);
    const of = (flag: number, isSet = true) => (listed === undefined ? [] : [...listed.seqs(flag, isSet)]);
    const others = [...(this.#unlisted.get(instance) ?? [])].sort((a, b) => a - b);
    const isDeclared = this.#notExported.get(instance) ?? (() => false);
    const lists = {
      missing: of(FOUND.seen, false),
      doubled: of(FOUND.doubled),
      changed: of(FOUND.changed),
      of_another_tenant: of(FOUND.elsewhere),
      outside_month: of(FOUND.outside),
      unlisted: others.filter((seq) => !isDeclared(seq)),
      unexpected: others.filter(isDeclared),
    };
    const found = Object.entries(lists).filter(([, seqs]) => seqs.length > 0);
    return {
      instance,
      ...Object.fromEntries(
        found.map(([name, seqs]) => [name, { count: seqs.length, numbers: toSeqTexts(seqs) }]),
      ),
    };
  }
}

/** A span with one of these attributes is a record: ledger spans have neither. */
const MARKS: readonly string[] = [RECORD_FIELDS.request_id.name, RECORD_FIELDS.seq.name];

function toBilledRecord(values: SpanValues, instance: string, seq: number): BilledRecord {
  const amount = values.double(RECORD_FIELDS.cost.name);
  return {
    instance,
    seq,
    ts: values.text(RECORD_FIELDS.ts.name) ?? '',
    model: values.text(RECORD_FIELDS.model.name) ?? null,
    promptTokens: values.count(RECORD_FIELDS.prompt_tokens.name) ?? 0,
    completionTokens: values.count(RECORD_FIELDS.completion_tokens.name) ?? 0,
    cachedTokens: values.count(RECORD_FIELDS.cached_tokens.name) ?? 0,
    reasoningTokens: values.count(RECORD_FIELDS.reasoning_tokens.name) ?? 0,
    gpuSeconds: values.double(RECORD_FIELDS.gpu_seconds.name) ?? 0,
    cost: amount === undefined ? null : { amount, currency: values.text(RECORD_FIELDS.currency.name) ?? '' },
  };
}

function createMembership(
  ranges: readonly { readonly first: number; readonly last: number }[],
): (seq: number) => boolean {
  return (seq) => ranges.some(({ first, last }) => first <= seq && seq <= last);
}
