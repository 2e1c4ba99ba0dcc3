import { z } from 'zod';

/** Which form a statement has. A change that a verifier of today would misread is another number. */
export const STATEMENT_VERSION = 1;

const text = z.string();
const time = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const count = z.int().min(0);
const currency = z.string().regex(/^[A-Z]{0,16}$/);
const decimal = z.string().regex(/^\d{1,30}\.\d{9,12}$/);
const numbers = z.array(z.string().max(40)).readonly();

const sums = {
  requests: count,
  prompt_tokens: count,
  completion_tokens: count,
  cached_tokens: count,
  reasoning_tokens: count,
  gpu_seconds: decimal,
  costs: z.record(currency, decimal).readonly(),
};

const why = z.enum(['dropped', 'lost', 'unencodable', 'rejected']);

/** What nobody can say of the time, and why. */
const lack = z.discriminatedUnion('what', [
  /** The month had not ended when the statement was made. */
  z.strictObject({ what: z.literal('month_not_over') }),
  /** Requests that arrived in the month, the first of them at this time, were still running. */
  z.strictObject({ what: z.literal('requests_running'), gateway: text, since: time }),
  /** The history begins after the month. */
  z.strictObject({ what: z.literal('records_not_kept'), gateway: text, before: time }),
  /** Of an earlier time it is not known which records were not exported. */
  z.strictObject({ what: z.literal('losses_not_kept'), gateway: text, before: time }),
  /** Records are missing in the history (docs/history.md); null: nobody knows how many. */
  z.strictObject({
    what: z.literal('gap'),
    gateway: text,
    since: time,
    until: time,
    records: count.nullable(),
    reason: text,
  }),
  z.strictObject({ what: z.literal('damaged_blocks'), gateway: text, blocks: count }),
  /** Records without a number: they cannot be proven, and are in no sum. */
  z.strictObject({ what: z.literal('unnumbered'), gateway: text, records: count }),
  /** Records that were lost before anybody knew whose they were. */
  z.strictObject({ what: z.literal('whose_unknown'), gateway: text, instance: text, why, numbers }),
]);

/** What is signed of a statement. It has no fractions: amounts are texts. */
const statementBodySchema = z.strictObject({
  version: z.literal(STATEMENT_VERSION),
  tenant: text,
  month: z.string().regex(/^\d{4}-\d\d$/),
  time_zone: text,
  since: time,
  until: time,
  made_at: time,
  days: z.array(z.strictObject({ day: z.iso.date(), since: time })).readonly(),
  gateways: z.array(z.strictObject({ name: text, instance_id: text, records_since: time })).readonly(),
  rows: z.array(z.strictObject({ day: z.iso.date(), model: text.nullable(), ...sums })).readonly(),
  total: z.strictObject(sums),
  /** The numbers of the records, and the first 16 bytes of the digest of each, in their order, in base64. */
  records: z.array(z.strictObject({ instance: text, numbers, digests: text })).readonly(),
  /** Records of the tenant that are in no sum, because they were not exported. */
  not_exported: z.strictObject({
    records: z.array(z.strictObject({ instance: text, why, numbers })).readonly(),
    total: z.strictObject(sums),
  }),
  complete: z.boolean(),
  lacks: z.array(lack).readonly(),
});

/** A statement: the body with its signature. */
export const statementSchema = statementBodySchema.extend({
  /** The key that it is signed with: 32 bytes in base64. */
  public_key: text.optional(),
  /** Ed25519 over the canonical JSON of everything else: 64 bytes in base64. */
  signature: text.optional(),
});

/** What a statement says, without its signature. */
export type StatementBody = Readonly<z.output<typeof statementBodySchema>>;

/** A statement, signed or not. */
export type Statement = Readonly<z.output<typeof statementSchema>>;

/** What is missing in a statement. */
export type Lack = StatementBody['lacks'][number];
