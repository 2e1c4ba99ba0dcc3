import { MAX_KEY_CHARS, MAX_STRING_CHARS } from '../../../otel/record/attribute-values.ts';
import { GapRecorder } from '../../../src/proxy/response/stream-tap.ts';
import { answerJson } from '../../fake-replica.ts';
import { LEAST_RECORD, toAttributes } from '../../records/records.ts';
import { recordOf } from '../exchange.ts';
import { inFile, inKey, type Limit, testedBy } from '../limit.ts';

const HTTP = { scheme: 'http' } as const;
/** A name of this length whose last character is another one. */
const nameOfSize = (size: number) => `${'n'.repeat(size - 1)}!`;
/** What is left of such a name: how long it is, and whether it is whole. */
const toKept = (name: unknown) => {
  const text = String(name);
  return `${text.length} characters, ${text.endsWith('!') ? 'whole' : 'cut'}`;
};

const HISTORY = 'test/history/store/history-store.test.ts';

/** What a record holds. */
export const RECORDS: readonly Limit[] = [
  {
    what: 'a name in a record: tenant, feature, conversation, model, client, ids of responses and of clients',
    source: inFile('otel/base/base.ts', 'MAX_NAME_CHARS'),
    past: 'it is cut',
    proof: {
      send: async (size, world) => {
        const name = nameOfSize(size);
        const fields = ['X-Tenant', 'X-Feature', 'X-Session-Id', 'X-Request-Id'].map(
          (field) => `${field}: ${name}`,
        );
        const record = await recordOf(world, { members: { model: name }, fields });
        const kept = [
          record.tenant,
          record.feature,
          record.conversation_id,
          record.client_request_id,
          record.model,
        ].map(toKept);
        return [...new Set(kept)].join(' and ');
      },
      at: '256 characters, whole',
      past: '256 characters, cut',
    },
  },
  {
    what: 'any other text in a span',
    source: inFile('otel/record/attribute-values.ts', 'MAX_STRING_CHARS'),
    past: 'it is cut',
    proof: {
      send: async (size) =>
        toKept(toAttributes({ ...LEAST_RECORD, error_type: nameOfSize(size) }, HTTP)['gateway.error_type']),
      at: `${MAX_STRING_CHARS} characters, whole`,
      past: `${MAX_STRING_CHARS} characters, cut`,
    },
  },
  {
    what: 'the items of a list in a span',
    source: inFile('otel/record/attribute-values.ts', 'MAX_ITEMS'),
    past: 'the rest is left out',
    proof: testedBy(
      'test/otel/record/attributes.test.ts',
      'are limited to 4,096 items of a list and 32 timings',
    ),
  },
  {
    what: 'the timings of an engine in a record',
    source: inFile('otel/record/attribute-values.ts', 'MAX_TIMINGS'),
    past: 'the rest is left out',
    proof: testedBy(
      'test/otel/record/attributes.test.ts',
      'are limited to 4,096 items of a list and 32 timings',
    ),
  },
  {
    what: 'the name of a timing',
    source: inFile('otel/record/attribute-values.ts', 'MAX_KEY_CHARS'),
    past: 'it is cut',
    proof: {
      send: async (size) => {
        const attributes = toAttributes({ ...LEAST_RECORD, timings: { [nameOfSize(size)]: 1 } }, HTTP);
        const name = Object.keys(attributes).find((key) => key.startsWith('gateway.timings.'));
        return toKept(name?.slice('gateway.timings.'.length));
      },
      at: `${MAX_KEY_CHARS} characters, whole`,
      past: `${MAX_KEY_CHARS} characters, cut`,
    },
  },
  {
    what: 'choices of an answer whose finish reasons are recorded',
    source: inFile('src/proxy/response/response-fields.ts', 'MAX_CHOICES'),
    past: 'the rest is left out',
    proof: {
      send: async (size, world) => {
        const { replica } = await world.gateway();
        const choices = Array.from({ length: size }, (_, index) => ({ index, finish_reason: 'stop' }));
        replica.answerOnce(answerJson({ choices }));
        return `${(await recordOf(world, {})).finish_reasons?.length} reasons`;
      },
      at: '128 reasons',
      past: '128 reasons',
    },
  },
  {
    what: 'gaps of a stream that count for `gap_p50_ms` and `gap_p95_ms`',
    source: inFile('src/proxy/response/stream-tap.ts', 'MAX_GAPS'),
    past: 'the rest is left out',
    proof: {
      send: async (size) => {
        const gaps = new GapRecorder();
        for (let count = 0; count <= size; count++) gaps.add(count);
        return `${gaps.chunkCount} chunks`;
      },
      at: '262145 chunks',
      past: '262145 chunks',
    },
  },
  {
    what: 'prefix hashes of a request',
    source: inKey('prefix_hash.max_blocks'),
    past: 'further blocks are not hashed',
    proof: testedBy('test/proxy/record/prefix-hashes.test.ts', 'end after the configured number of blocks'),
  },
  {
    what: 'the `tracestate` of a client',
    source: inFile('otel/span/incoming-context.ts', 'MAX_TRACESTATE_CHARS'),
    past: 'members longer than 128 characters are left out, then the last ones',
    proof: testedBy(
      'test/otel/span/incoming-context.test.ts',
      'of more than 512 characters loses large members first, then the last ones',
    ),
  },
  {
    what: 'an event of a stream that is read for the record',
    source: inKey('limits.event'),
    past: 'it is relayed unread',
    proof: testedBy(
      'test/gateway/responses/streaming.test.ts',
      'an event longer than limits.event is relayed as it is, unread',
    ),
  },
  {
    what: 'the history database',
    source: inKey('history.max_size'),
    unit: 'bytes',
    past: 'the oldest records are removed, then the oldest usage',
    proof: testedBy(HISTORY, 'a file stays below its limit, and the oldest records go first'),
  },
  {
    what: 'the age of a record in the history',
    source: inKey('history.max_age'),
    unit: 'ms',
    past: 'it is removed',
    proof: testedBy(HISTORY, 'removes records, minutes and hours when they are as old as they may be'),
  },
  {
    what: 'combinations of tenant, client, model, replica and endpoint in the usage of a minute or hour',
    source: inFile('src/history/store/usage-store.ts', 'MAX_USAGE_KEYS'),
    past: 'further ones are summed without replica and endpoint; beyond as many of tenant, client and model, as `other`',
    proof: testedBy(HISTORY, 'sums in one row what is beyond the most names of a minute'),
  },
  {
    what: 'clients that ask for their usage at once, with `history.client_usage`',
    source: inFile('src/admin/history/client-usage.ts', 'MAX_ASKING'),
    past: '503 `history_unavailable`',
    proof: testedBy(
      'test/admin/history/client-usage.test.ts',
      'lets four clients ask at the same time, and tells further ones to try again',
    ),
  },
];
