import { hash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { FORM_TYPE, type FormPart, formOf } from '#testkit/reading/form.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const PATH = '/v1/audio/transcriptions';
const ON = { endpoints: ['audio/transcriptions'] };
const CLIENTS = [
  { name: 'free', key_sha256: hash('sha256', 'free') },
  { name: 'narrow', key_sha256: hash('sha256', 'narrow'), models: ['m'] },
  { name: 'limited', key_sha256: hash('sha256', 'limited'), requests_per_minute: 1000 },
];

const MODEL: FormPart = { name: 'model', value: 'm' };
const FILE: FormPart = { name: 'file', value: Buffer.alloc(300_000, 1), filename: 'a.wav' };
const field = (name: string): FormPart => ({ name, value: 'b' });

/** Forms with a field that differs only in case from this one, which the gateway reads. */
const LOOKALIKES: readonly (readonly [field: string, parts: readonly FormPart[]])[] = [
  ['model', [MODEL, field('Model'), FILE]],
  ['model', [field('MODEL'), MODEL, FILE]],
  ['model', [FILE, field('mOdel'), MODEL]],
  ['model', [MODEL, FILE, field('Model')]],
  ['model', [MODEL, { ...field('Model'), filename: 'b' }]],
  ['prompt', [MODEL, field('Prompt'), FILE]],
  ['_charset_', [MODEL, field('_CHARSET_'), FILE]],
  ['_charset_', [MODEL, field('_char\u017fet_'), FILE]],
];

/** Fields with other names that are not in lower case: none that the gateway reads resembles them. */
const UNRELATED = [field('Models'), field('Language'), field('mödel'), field('timestamp_granularities[]')];

const postTo = (gateway: StartedGateway, parts: readonly FormPart[], key = '') =>
  gateway.post(PATH, formOf(parts), { headers: { 'Content-Type': FORM_TYPE, 'x-api-key': key } });

async function expectRefusal(response: Response, name: string) {
  expect(response.status).toBe(400);
  expect(await response.json()).toEqual({
    error: {
      message: `The request body has a member whose name differs from \`${name}\` only in case: engines disagree about which one counts.`,
      type: 'invalid_request_error',
      param: name,
      code: 'ambiguous_member',
    },
  });
}

/** That the replica got none of its forms as a whole. */
async function expectNoWholeForm(replica: FakeReplica) {
  for (const request of replica.requests) await request.untilAborted();
}

describe('before an engine that tells upper case from lower case', () => {
  let replica: FakeReplica;
  let gateway: StartedGateway;

  beforeAll(async () => {
    replica = await startFakeReplica();
    gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: ['m', 'b'], engine: 'vllm' }],
      config: { ...ON, clients: CLIENTS },
    });
  });
  afterAll(() => Promise.all([gateway.close(), replica.close()]));

  test.each(LOOKALIKES)('a key with models may not send another field `%s`', async (name, parts) => {
    await expectRefusal(await postTo(gateway, parts, 'narrow'), name);
    expect(await gateway.nextRecord()).toMatchObject({ status: 400, error_type: 'ambiguous_member' });
    await expectNoWholeForm(replica);
  });

  test('nor may a key with limits', async () => {
    await expectRefusal(await postTo(gateway, [MODEL, field('Model')], 'limited'), 'model');
    await gateway.nextRecord();
  });

  test('a key for everything sends them, byte for byte', async () => {
    for (const [, parts] of LOOKALIKES) {
      const seen = replica.requests.length;
      expect((await postTo(gateway, parts, 'free')).status).toBe(200);
      expect((await replica.requests[seen]?.body)?.equals(formOf(parts))).toBe(true);
      await gateway.nextRecord();
    }
  });

  test('names that resemble none pass with every key', async () => {
    for (const { name } of CLIENTS) {
      expect((await postTo(gateway, [MODEL, ...UNRELATED, FILE], name)).status).toBe(200);
      await gateway.nextRecord();
    }
  });
});

describe('without keys', () => {
  test.each(['ollama', 'auto'])('an engine that may fold case gets no doubtful field: %s', async (engine) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: ['m'], engine }],
      config: ON,
    });
    for (const [name, parts] of LOOKALIKES) await expectRefusal(await postTo(gateway, parts), name);
    // The only model that is served is meant, if the form names none.
    await expectRefusal(await postTo(gateway, [field('Model'), FILE]), 'model');
    await expectNoWholeForm(replica);
    expect((await postTo(gateway, [MODEL, ...UNRELATED])).status).toBe(200);
  });

  test('one candidate that may fold case is enough, and only those of the model count', async () => {
    await using one = await startFakeReplica();
    await using other = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: one.url, models: ['m', 'b'], engine: 'vllm' },
        { name: 'b', url: other.url, models: ['b'], engine: 'ollama' },
      ],
      config: ON,
    });
    for (let turn = 0; turn < 2; turn++) {
      expect((await postTo(gateway, [MODEL, field('Model')])).status).toBe(200);
      await expectRefusal(await postTo(gateway, [{ ...MODEL, value: 'b' }, field('Model')]), 'model');
    }
  });

  test('a field that comes when the replica already has a part of the form ends it there', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: ['m'], engine: 'ollama' }],
      config: ON,
    });
    const form = formOf([MODEL, FILE, field('Model')]);
    const cut = 200_000;
    using client = await RawConnection.open(gateway.url);
    const bytes = postBytes(PATH, form, [`Content-Type: ${FORM_TYPE}`]);
    client.write(bytes.subarray(0, cut - form.length));
    const received = await replica.nextRequest();
    client.write(form.subarray(cut));
    expect((await client.readResponse()).status).toBe(400);
    await received.untilAborted();
  });
});
