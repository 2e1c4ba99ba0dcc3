import { expect, it } from 'vitest';
import { toMonth } from '../../src/statement/calendar.ts';
import {
  composeStatement,
  type DigestedBilledRecord,
  type FactsOfLoss,
  type GatewayFacts,
  SameRecordsError,
} from '../../src/statement/compose-statement.ts';
import {
  createStatementKey,
  hasValidSignature,
  readStatementKey,
  signStatement,
} from '../../src/statement/statement-key.ts';

const MONTH = toMonth('2026-11', 'UTC') ?? { days: [], since: '', until: '' };
const SUBJECT = { tenant: 'acme', month: '2026-11', timeZone: 'UTC', madeAt: '2026-12-01T08:00:00.000Z' };
const DIGEST = Buffer.alloc(16, 7).toString('base64');

const record = (seq: number, fields: Partial<DigestedBilledRecord> = {}): DigestedBilledRecord => ({
  instance: 'i',
  seq,
  ts: '2026-11-05T00:00:00.000Z',
  model: 'm',
  promptTokens: 3,
  completionTokens: 5,
  cachedTokens: 1,
  reasoningTokens: 2,
  gpuSeconds: 0.5,
  cost: { amount: 0.001, currency: 'EUR' },
  digest: DIGEST,
  ...fields,
});

const facts = (fields: Partial<GatewayFacts> = {}): GatewayFacts => ({
  name: 'gw',
  instanceId: 'id',
  records: [],
  unnumbered: 0,
  losses: [],
  gaps: [],
  damagedBlocks: 0,
  recordsSince: '2026-10-01T00:00:00.000Z',
  lossesSince: '2026-10-01T00:00:00.000Z',
  endedUntil: MONTH.until,
  ...fields,
});

const loss = (first: number, last: number, fields: Partial<FactsOfLoss> = {}): FactsOfLoss => ({
  instance: 'i',
  first,
  last,
  why: 'dropped',
  isKnown: true,
  since: '2026-11-05T00:00:00.000Z',
  until: '2026-11-05T00:00:01.000Z',
  ...fields,
});

it('has the sums of each day and model, and each currency apart', () => {
  const { rows, total, complete, lacks } = composeStatement(
    [
      facts({
        records: [
          record(9),
          record(2, { model: null, cost: null }),
          record(3, { ts: '2026-11-06T00:00:00.000Z', cost: { amount: 0.25, currency: 'USD' } }),
          record(4, { ts: '2026-11-05T23:59:59.999Z' }),
        ],
      }),
    ],
    SUBJECT,
    MONTH,
  );
  expect(rows.map(({ day, model, requests, costs }) => [day, model, requests, costs])).toEqual([
    ['2026-11-05', null, 1, {}],
    ['2026-11-05', 'm', 2, { EUR: '0.002000000000' }],
    ['2026-11-06', 'm', 1, { USD: '0.250000000000' }],
  ]);
  expect(total).toEqual({
    requests: 4,
    prompt_tokens: 12,
    completion_tokens: 20,
    cached_tokens: 4,
    reasoning_tokens: 8,
    gpu_seconds: '2.000000000',
    costs: { EUR: '0.002000000000', USD: '0.250000000000' },
  });
  expect([complete, lacks]).toEqual([true, []]);
});

it('lists numbers of each instance, of all gateways, and takes a number once', () => {
  const { records, gateways } = composeStatement(
    [
      facts({ records: [record(3), record(1), record(2), record(3)] }),
      facts({ name: 'gw2', records: [record(7, { instance: 'a.1' })] }),
    ],
    SUBJECT,
    MONTH,
  );
  expect(records.map(({ instance, numbers, digests }) => [instance, numbers, digests.length])).toEqual([
    ['a.1', ['7'], 24],
    ['i', ['1-3'], 64],
  ]);
  expect(gateways.map(({ name }) => name)).toEqual(['gw', 'gw2']);
});

it('refuses records that two gateways have', () => {
  const twice = [facts({ records: [record(1)] }), facts({ records: [record(2)] })];
  expect(() => composeStatement(twice, SUBJECT, MONTH)).toThrow(SameRecordsError);
});

it('names what was not exported apart, in no sum, and whose nobody knows as lacking', () => {
  const { total, not_exported, records, lacks, complete } = composeStatement(
    [
      facts({
        records: [1, 2, 3, 4, 5, 6].map((seq) => record(seq)),
        losses: [
          loss(2, 3),
          loss(1, 100, { instance: 'of another' }),
          loss(5, 5, { why: 'rejected', until: '2026-12-01T00:00:00.000Z' }),
          loss(20, 22, { why: 'lost', isKnown: false }),
          loss(30, 30, {
            why: 'lost',
            isKnown: false,
            since: '2026-12-01T00:00:00.000Z',
            until: '2026-12-01T00:00:01.000Z',
          }),
        ],
      }),
    ],
    SUBJECT,
    MONTH,
  );
  expect(total.requests).toBe(3);
  expect(records[0]?.numbers).toEqual(['1', '4', '6']);
  expect(not_exported).toMatchObject({
    records: [
      { instance: 'i', why: 'dropped', numbers: ['2-3'] },
      { instance: 'i', why: 'rejected', numbers: ['5'] },
    ],
    total: { requests: 3, prompt_tokens: 9 },
  });
  expect(lacks).toEqual([
    { what: 'whose_unknown', gateway: 'gw', instance: 'i', why: 'lost', numbers: ['20-22'] },
  ]);
  expect(complete).toBe(false);
});

it('says what its gateways do not keep, or could not keep', () => {
  const gap = {
    since: '2026-11-02T00:00:00.000Z',
    until: '2026-11-02T00:00:01.000Z',
    records: 7,
    reason: 'behind',
  };
  const { lacks } = composeStatement(
    [
      facts({
        recordsSince: '2026-11-03T00:00:00.000Z',
        lossesSince: '2026-11-04T00:00:00.000Z',
        gaps: [gap],
        damagedBlocks: 2,
        unnumbered: 1,
      }),
    ],
    { ...SUBJECT, madeAt: '2026-11-20T00:00:00.000Z' },
    MONTH,
  );
  expect(lacks).toEqual([
    { what: 'month_not_over' },
    { what: 'records_not_kept', gateway: 'gw', before: '2026-11-03T00:00:00.000Z' },
    { what: 'losses_not_kept', gateway: 'gw', before: '2026-11-04T00:00:00.000Z' },
    { what: 'gap', gateway: 'gw', ...gap },
    { what: 'damaged_blocks', gateway: 'gw', blocks: 2 },
    { what: 'unnumbered', gateway: 'gw', records: 1 },
  ]);
});

it('is not complete while requests of the month still run', () => {
  const running = facts({ name: 'gw2', endedUntil: '2026-11-30T23:59:59.999Z' });
  const { complete, lacks } = composeStatement([facts(), running], SUBJECT, MONTH);
  expect(lacks).toEqual([{ what: 'requests_running', gateway: 'gw2', since: '2026-11-30T23:59:59.999Z' }]);
  expect(complete).toBe(false);
  const early = { ...SUBJECT, madeAt: '2026-11-20T00:00:00.000Z' };
  expect(composeStatement([running], early, MONTH).lacks).toEqual([{ what: 'month_not_over' }]);
});

it('is signed by a key alone that can sign, and over all of it', () => {
  const { pem, publicKey } = createStatementKey();
  const key = readStatementKey(pem);
  if (key === null) throw new Error('the key is one');
  const body = composeStatement([facts({ records: [record(1, { model: 'ünï 😀' })] })], SUBJECT, MONTH);
  const signed = signStatement(body, key);
  expect(hasValidSignature({ ...signed })).toBe(true);
  expect(hasValidSignature({ ...signed, made_at: '2026-12-01T08:00:00.001Z' })).toBe(false);
  expect(hasValidSignature({ ...signed, more: 1 })).toBe(false);
  expect(hasValidSignature({ ...signed, public_key: createStatementKey().publicKey })).toBe(false);
  expect(hasValidSignature({ ...signed, signature: `${signed.signature} ` })).toBe(false);
  expect(readStatementKey(publicKey)).toEqual({ publicKey, sign: null });
  expect(() => signStatement(body, { publicKey, sign: null })).toThrow(TypeError);
  for (const none of ['', 'x', 'AAAA', '-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----']) {
    expect(readStatementKey(none)).toBeNull();
  }
});
