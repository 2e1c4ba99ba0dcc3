import { parseJson } from '#base/parsed';
import { type RecordSource, readSources, UnreadableError } from '#records/files';
import { hasValidSignature, type StatementKey } from '../statement-key.ts';
import { type Statement, statementSchema } from '../statement-schema.ts';
import type { StatedSums, UsageRows } from '../usage-rows.ts';
import { readListed } from './listed-records.ts';
import { type InstanceFinding, StatementCheck } from './statement-check.ts';

/** The digests of twelve million records; V8 takes no text of more than 512 MiB. */
const MAX_STATEMENT_BYTES = 256 * 1024 ** 2;

/** A sum of the statement that is not that of its records. */
export interface StatedDifference {
  /** Null: of the total. */
  readonly day: string | null;
  readonly model: string | null;
  readonly what: string;
  readonly stated: string | number | null;
  readonly found: string | number | null;
}

/** What verifying a statement has found. */
export interface StatementReport {
  /** Whether the statement is signed, and is what the records give. */
  readonly proven: boolean;
  /** Whether the statement says that nothing is missing in it. */
  readonly complete: boolean;
  readonly tenant: string;
  readonly month: string;
  readonly time_zone: string;
  readonly signature: 'valid' | 'wrong' | 'absent';
  readonly public_key: string | null;
  /** `another`: not the key that was given. `unchecked`: none was given. */
  readonly key: 'as_given' | 'another' | 'unchecked';
  readonly requests: number;
  readonly costs: Readonly<Record<string, string>>;
  /** Records that are as the statement says. */
  readonly proven_records: number;
  readonly instances: readonly InstanceFinding[];
  /** Only if every record is there once and unchanged. */
  readonly sums_differ: readonly StatedDifference[];
  readonly lacks: Statement['lacks'];
  readonly broken_lines: number;
  readonly unidentified: number;
}

/**
 * Whether exported records give a statement. `key`: of the seller, as it is known from elsewhere. Rejects with an
 * UnreadableError, or with what the chunks of a file reject with.
 */
export async function verifyStatement(
  source: RecordSource,
  files: readonly RecordSource[],
  key: StatementKey | null,
): Promise<StatementReport> {
  const { statement, signature } = await readStatement(source);
  const listed = readListed(statement);
  if (listed === null)
    throw new UnreadableError(`cannot use ${source.name}: its numbers and digests do not fit each other`);
  const check = new StatementCheck(statement, listed);
  await readSources(files, (line) => check.addLine(line));
  const instances = check.findings();
  const sumsDiffer = instances.length === 0 ? compareSums(statement, check.rows) : [];
  const { tenant, month, time_zone, complete, lacks, total, public_key = null } = statement;
  const keyState = key === null ? 'unchecked' : key.publicKey === public_key ? 'as_given' : 'another';
  const { brokenLines, unidentified } = check;
  return {
    proven:
      signature === 'valid' &&
      keyState !== 'another' &&
      instances.length + sumsDiffer.length + brokenLines + unidentified === 0,
    complete,
    tenant,
    month,
    time_zone,
    signature,
    public_key,
    key: keyState,
    requests: total.requests,
    costs: total.costs,
    proven_records: check.proven,
    instances,
    sums_differ: sumsDiffer,
    lacks,
    broken_lines: brokenLines,
    unidentified,
  };
}

async function readStatement({ name, chunks }: RecordSource) {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > MAX_STATEMENT_BYTES) throw new UnreadableError(`${name} is too large to be a statement`);
    pieces.push(chunk);
  }
  const json = parseJson(Buffer.concat(pieces).toString());
  const read = statementSchema.safeParse(json);
  if (!read.success)
    throw new UnreadableError(`cannot use ${name}: ${toMistake(json, read.error.issues[0]?.path)}`);
  return { statement: read.data, signature: toSignatureState(json, read.data) };
}

/** What is signed is what the file says, not what was understood of it. */
function toSignatureState(json: unknown, { signature }: Statement): StatementReport['signature'] {
  if (signature === undefined) return 'absent';
  return hasValidSignature(json as Readonly<Record<string, unknown>>) ? 'valid' : 'wrong';
}

function toMistake(json: unknown, path: readonly PropertyKey[] = []): string {
  if (typeof json !== 'object' || json === null) return 'it is no statement';
  return path.length === 0 ? 'it is no statement' : `it is no statement: ${path.map(String).join('.')}`;
}

function compareSums(statement: Statement, found: UsageRows): readonly StatedDifference[] {
  const rows = new Map(statement.rows.map((row) => [JSON.stringify([row.day, row.model]), row]));
  const foundRows = new Map(found.rows.map((row) => [JSON.stringify([row.day, row.model]), row]));
  const keys = [...new Set([...rows.keys(), ...foundRows.keys()])];
  const places = keys.flatMap((key) => {
    const [day, model]: [string, string | null] = JSON.parse(key);
    return compareRow({ day, model }, rows.get(key), foundRows.get(key));
  });
  // A row that is there twice has the sums of one.
  const repeated =
    statement.rows.length === rows.size
      ? []
      : [difference({ day: null, model: null }, 'rows', statement.rows.length, rows.size)];
  return [...places, ...repeated, ...compareRow({ day: null, model: null }, statement.total, found.total)];
}

function compareRow(
  place: Pick<StatedDifference, 'day' | 'model'>,
  stated: StatedSums | undefined,
  found: StatedSums | undefined,
): readonly StatedDifference[] {
  const [a, b] = [flatten(stated), flatten(found)];
  return [...new Set([...a.keys(), ...b.keys()])]
    .filter((what) => a.get(what) !== b.get(what))
    .map((what) => difference(place, what, a.get(what) ?? null, b.get(what) ?? null));
}

function difference(
  { day, model }: Pick<StatedDifference, 'day' | 'model'>,
  what: string,
  stated: StatedDifference['stated'],
  found: StatedDifference['found'],
): StatedDifference {
  return { day, model, what, stated, found };
}

/** The sums by name; `cost EUR` for each currency. */
function flatten(sums: StatedSums | undefined): ReadonlyMap<string, string | number> {
  if (sums === undefined) return new Map();
  const { requests, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, gpu_seconds } = sums;
  const plain = { requests, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens, gpu_seconds };
  const costs = Object.entries(sums.costs).map(([currency, cost]) => [`cost ${currency}`, cost] as const);
  return new Map<string, string | number>([...Object.entries(plain), ...costs]);
}
