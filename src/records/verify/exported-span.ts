import { AttributesDigester } from '#otel/otlp';
import { LEDGER, RECORD_FIELDS } from '#otel/record/registry';
import { readSpans, SpanValues } from '#records/files';

/** Sums of tokens. */
export interface TokenSums {
  readonly prompt: number;
  readonly completion: number;
  readonly cached: number;
}

/** A record in a file. */
export interface ExportedRecord {
  readonly kind: 'record';
  readonly instance: string;
  readonly seq: number;
  /** The SHA-256 of its canonical attributes; null if it holds a value that the gateway never sends. */
  readonly digest: Uint8Array | null;
  readonly tokens: TokenSums;
}

/** Numbers from `first` to `last`, both included. */
export interface SeqRange {
  readonly first: number;
  readonly last: number;
}

/** A ledger span in a file. */
export interface ExportedLedger {
  readonly kind: 'ledger';
  readonly instance: string;
  readonly number: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly count: number;
  readonly tokens: TokenSums;
  readonly dropped: readonly SeqRange[];
  readonly lost: readonly SeqRange[];
  readonly unencodable: readonly SeqRange[];
  /** With their instances. */
  readonly rejected: readonly (SeqRange & { readonly instance: string })[];
  readonly digests: Uint8Array;
  readonly previous: string;
  readonly chain: string;
  readonly isFinal: boolean;
  /** Whether `chain` is what its other attributes give. */
  readonly isIntact: boolean;
}

/** A record or a ledger span that does not say which one it is: that of no instance, or without a number. */
export interface UnidentifiedSpan {
  readonly kind: 'unidentified';
}

/** What a file says of one span. */
export type ExportedSpan = ExportedRecord | ExportedLedger | UnidentifiedSpan;

/** What is kept of a ledger span. */
export type LedgerEntry = Omit<ExportedLedger, 'digests'>;

/** Why a record is not there, as the gateway itself has declared. */
export type Declared = 'dropped' | 'lost' | 'unencodable' | 'rejected';

const MAX_INSTANCE_CHARS = 256;
const RANGE = /^(?:(.+):)?(\d{1,15})(?:-(\d{1,15}))?$/;
/** A span with one of these names, whatever its value, is a record or a ledger span. */
const MARKS: readonly string[] = [RECORD_FIELDS.request_id.name, RECORD_FIELDS.seq.name, LEDGER.number];

/** Reads the records and ledger spans in lines of files. */
export class SpanReader {
  readonly #digester = new AttributesDigester();

  /** Reads a line of OTLP JSON or of a spool. Null for anything else, such as half a line. */
  readLine(line: Buffer): readonly ExportedSpan[] | null {
    return readSpans(line)?.flatMap((span) => this.readSpan(span) ?? []) ?? null;
  }

  /** Reads a span of OTLP JSON. Null: it is neither a record nor a ledger span. */
  readSpan(span: unknown): ExportedSpan | null {
    const values = new SpanValues(span);
    const isOurs = MARKS.some((name) => values.hasName(name));
    const instance = values.text(RECORD_FIELDS.instance.name);
    const isLedger = values.has(LEDGER.number);
    const none = isOurs ? ({ kind: 'unidentified' } as const) : null;
    if (instance === undefined || instance.length > MAX_INSTANCE_CHARS) return none;
    if (isLedger) return this.#readLedger(instance, values, span);
    const seq = values.count(RECORD_FIELDS.seq.name);
    if (seq === undefined || seq === 0) return none;
    return {
      kind: 'record',
      instance,
      seq,
      digest: this.#digester.digestJsonSpan(span),
      tokens: {
        prompt: values.count(RECORD_FIELDS.prompt_tokens.name) ?? 0,
        completion: values.count(RECORD_FIELDS.completion_tokens.name) ?? 0,
        cached: values.count(RECORD_FIELDS.cached_tokens.name) ?? 0,
      },
    };
  }

  /** A ledger span that lacks something is one that was changed. */
  #readLedger(instance: string, values: SpanValues, span: unknown): ExportedLedger {
    const count = (name: string) => values.count(name) ?? 0;
    const chain = values.text(LEDGER.chain) ?? '';
    const digest = this.#digester.digestJsonSpan(span, LEDGER.chain);
    const own = (name: string) => rangesOf(values, name, instance);
    return {
      kind: 'ledger',
      instance,
      chain,
      number: count(LEDGER.number),
      firstSeq: count(LEDGER.firstSeq),
      lastSeq: count(LEDGER.lastSeq),
      count: count(LEDGER.count),
      tokens: {
        prompt: count(LEDGER.promptTokens),
        completion: count(LEDGER.completionTokens),
        cached: count(LEDGER.cachedTokens),
      },
      dropped: own(LEDGER.dropped),
      lost: own(LEDGER.lost),
      unencodable: own(LEDGER.unencodable),
      rejected: own(LEDGER.rejected),
      digests: Buffer.from(values.text(LEDGER.digests) ?? '', 'base64'),
      previous: values.text(LEDGER.previous) ?? '',
      isFinal: values.isTrue(LEDGER.final),
      isIntact: digest !== null && Buffer.from(digest).toString('hex') === chain,
    };
  }
}

/** What is no range is left out: the chain of its ledger span is wrong then. */
function rangesOf(values: SpanValues, name: string, instance: string) {
  return values.texts(name).flatMap((text) => {
    const [, elsewhere = instance, first, last = first] = RANGE.exec(text) ?? [];
    if (first === undefined || Number(last) < Number(first)) return [];
    return [{ instance: elsewhere, first: Number(first), last: Number(last) }];
  });
}
