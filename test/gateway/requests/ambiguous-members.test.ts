import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');
const CLIENTS = [
  { name: 'free', key_sha256: digestOf('free') },
  { name: 'narrow', key_sha256: digestOf('narrow'), models: ['m'] },
  { name: 'limited', key_sha256: digestOf('limited'), requests_per_minute: 1000 },
  { name: 'shared', key_sha256: digestOf('shared'), tenant: 't' },
];
const ENDPOINTS = ['responses', 'messages', 'rerank', 'tokenize'];
const withKey = (key: string) => ({ headers: { 'x-api-key': key } });

const CHAT = '/v1/chat/completions';
const MESSAGES = '"messages":[{"role":"user","content":"Hi"}]';
/** More than is read without a thread. */
const LONG = 'x'.repeat(200_000);

/** Bodies with a member that differs only in case from this one, which the gateway reads. */
const LOOKALIKES: readonly (readonly [member: string, path: string, body: string])[] = [
  ['model', CHAT, `{"model":"m","Model":"b",${MESSAGES}}`],
  ['model', CHAT, `{"MODEL":"b","model":"m",${MESSAGES}}`],
  ['model', CHAT, `{"model":"m","\\u004dodel":"b",${MESSAGES}}`],
  ['model', CHAT, `{"Model":"m",${MESSAGES}}`],
  ['model', CHAT, `{"model":"m","Model":"b","messages":[{"role":"user","content":"${LONG}"}]}`],
  ['stream', CHAT, `{"model":"m","STREAM":true,${MESSAGES}}`],
  ['stream', CHAT, `{"model":"m","\u017ftream":true,${MESSAGES}}`],
  ['stream', CHAT, `{"model":"m","\\u017ftream":true,${MESSAGES}}`],
  ['max_tokens', CHAT, `{"model":"m","max_to\u212aens":9,${MESSAGES}}`],
  ['max_tokens', CHAT, `{"model":"m","Max_Tokens":9,${MESSAGES}}`],
  ['n', CHAT, `{"model":"m","N":9,${MESSAGES}}`],
  ['messages', CHAT, `{"model":"m",${MESSAGES},"Messages":[]}`],
  ['tools', CHAT, `{"model":"m","Tools":[],${MESSAGES}}`],
  ['reasoning_effort', CHAT, `{"model":"m","Reasoning_Effort":"high",${MESSAGES}}`],
  ['include_usage', CHAT, `{"model":"m","stream":true,"stream_options":{"Include_Usage":true},${MESSAGES}}`],
  ['effort', CHAT, `{"model":"m","reasoning":{"EFFORT":"high"},${MESSAGES}}`],
  ['content', CHAT, '{"model":"m","messages":[{"role":"user","content":"Hi","Content":"more"}]}'],
  ['role', CHAT, `{"model":"m","messages":[{"Role":"user","content":"${LONG}"}]}`],
  ['text', CHAT, '{"model":"m","messages":[{"role":"user","content":[{"type":"text","Text":"more"}]}]}'],
  ['url', CHAT, '{"model":"m","messages":[{"role":"user","content":[{"image_url":{"URL":"x"}}]}]}'],
  ['prompt', '/v1/completions', '{"model":"m","prompt":"a","Prompt":"b"}'],
  ['input', '/v1/embeddings', '{"model":"m","input":"a","INPUT":"b"}'],
  ['previous_response_id', '/v1/responses', '{"model":"m","input":"a","Previous_Response_Id":"r"}'],
  ['max_output_tokens', '/v1/responses', '{"model":"m","input":"a","max_output_toKens":1}'],
  ['id', '/v1/responses', '{"model":"m","input":"a","conversation":{"ID":"c"}}'],
  ['output', '/v1/responses', '{"model":"m","input":[{"type":"x","Output":"more"}]}'],
  ['system', '/v1/messages', `{"model":"m","System":"s",${MESSAGES}}`],
  ['query', '/v1/rerank', '{"model":"m","query":"q","documents":["d"],"Query":"r"}'],
];

/** Bodies in which a member that the gateway reads comes twice. */
const REPEATED: readonly (readonly [member: string, path: string, body: string])[] = [
  ['model', CHAT, `{"model":"b","model":"m",${MESSAGES}}`],
  ['stream', CHAT, `{"model":"m","stream":true,"stream":null,${MESSAGES}}`],
  ['messages', CHAT, `{"model":"m",${MESSAGES},"messages":[{}]}`],
  [
    'stream_options',
    CHAT,
    `{"model":"m","stream_options":{"include_usage":true},"stream_options":{},${MESSAGES}}`,
  ],
  [
    'include_usage',
    CHAT,
    `{"model":"m","stream_options":{"include_usage":true,"include_usage":null},${MESSAGES}}`,
  ],
  ['content', CHAT, '{"model":"m","messages":[{"role":"user","content":"a","content":"b"}]}'],
];

/** Bodies with other names that are not in lower case: no member that the gateway reads resembles them. */
const UNRELATED: readonly (readonly [path: string, body: string])[] = [
  [CHAT, `{"model":"m","Models":["b"],"Temperature":1,"mödel":2,${MESSAGES}}`],
  [CHAT, `{"model":"m","metadata":{"Session_ID":"a","MODEL":"b"},"tools":[{"Model":"b"}],${MESSAGES}}`],
  [CHAT, '{"model":"m","messages":[{"role":"user","content":"{\\"Model\\":1}","Name":"x"}]}'],
  ['/v1/embeddings', '{"model":"m","input":"a","Messages":[],"Prompt":"b"}'],
  ['/v1/rerank', '{"model":"m","query":"q","documents":[{"Text":"d","Content":"c"}]}'],
];

function toSentence(member: string, isRepeated: boolean): string {
  return isRepeated
    ? `The request body has \`${member}\` more than once in an object: engines disagree about which one counts.`
    : `The request body has a member whose name differs from \`${member}\` only in case: engines disagree about which one counts.`;
}

async function expectRefusal(response: Response, member: string, path: string, isRepeated = false) {
  expect(response.status).toBe(400);
  const message = toSentence(member, isRepeated);
  const type = 'invalid_request_error';
  expect(await response.json()).toEqual(
    path === '/v1/messages'
      ? { type: 'error', error: { type, message, code: 'ambiguous_member' } }
      : { error: { message, type, param: member, code: 'ambiguous_member' } },
  );
}

describe('behind an engine that tells upper case from lower case', () => {
  let replica: FakeReplica;
  let gateway: StartedGateway;

  beforeAll(async () => {
    replica = await startFakeReplica();
    gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: ['m', 'b'], engine: 'vllm' }],
      config: {
        clients: CLIENTS,
        endpoints: ENDPOINTS,
        tenant_limits: { t: { max_inflight: 9 } },
      },
    });
  });
  afterAll(() => Promise.all([gateway.close(), replica.close()]));

  const relay = async (key: string, path: string, body: string) => {
    const response = await gateway.post(path, body, withKey(key));
    expect(response.status).toBe(200);
    await response.text();
    expect((await (await replica.nextRequest()).body).toString()).toBe(body);
  };

  test.each(LOOKALIKES)('a key with models may not send another `%s` to %s', async (member, path, body) => {
    const seen = replica.requests.length;
    await expectRefusal(await gateway.post(path, body, withKey('narrow')), member, path);
    expect(replica.requests).toHaveLength(seen);
  });

  test.each(REPEATED)('a key with models may not send `%s` twice', async (member, path, body) => {
    const seen = replica.requests.length;
    await expectRefusal(await gateway.post(path, body, withKey('narrow')), member, path, true);
    expect(replica.requests).toHaveLength(seen);
  });

  test.each(['limited', 'shared'])('nor may a key whose client or tenant has limits: %s', async (key) => {
    const [, , body] = LOOKALIKES[0] ?? ['', '', ''];
    await expectRefusal(await gateway.post(CHAT, body, withKey(key)), 'model', CHAT);
  });

  test('the record of a refused request says why, and has the model that was read', async () => {
    const before = gateway.records.length;
    await gateway.post(CHAT, `{"model":"m","Model":"b",${MESSAGES}}`, withKey('narrow'));
    const record = (await gateway.waitForRecords(before + 1)).at(-1);
    expect(record).toMatchObject({ status: 400, error_type: 'ambiguous_member', model: 'm' });
    expect(record).not.toHaveProperty('replica');
  });

  test.each([...LOOKALIKES.filter(([, , body]) => body.includes('"model"')), ...REPEATED.slice(0, 3)])(
    'a key for everything sends another `%s` to %s, byte for byte',
    async (_, path, body) => relay('free', path, body.replace('"stream":true,', '')),
  );

  test.each(UNRELATED)('names that resemble none pass with every key: %s %s', async (path, body) => {
    for (const { name } of CLIENTS) await relay(name, path, body);
  });
});

describe('without keys', () => {
  test.each(['ollama', 'auto'])('an engine that may fold case gets no doubtful name: %s', async (engine) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: ['m'], engine }],
      config: { endpoints: ENDPOINTS },
    });
    for (const [member, path, body] of LOOKALIKES) {
      if (body.includes('"model"')) await expectRefusal(await gateway.post(path, body), member, path);
    }
    expect(replica.requests).toHaveLength(0);
    for (const [path, body] of UNRELATED) {
      expect((await gateway.post(path, body)).status).toBe(200);
      expect((await (await replica.nextRequest()).body).toString()).toBe(body);
    }
  });

  test('one candidate that may fold case is enough, and only those of the model count', async () => {
    await using one = await startFakeReplica();
    await using other = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: one.url, models: ['m', 'b'], engine: 'vllm' },
        { name: 'b', url: other.url, models: ['b'], engine: 'ollama' },
      ],
    });
    for (let turn = 0; turn < 2; turn++) {
      expect((await gateway.post(CHAT, `{"model":"m","Model":"b",${MESSAGES}}`)).status).toBe(200);
      await expectRefusal(await gateway.post(CHAT, `{"model":"b","Model":"m",${MESSAGES}}`), 'model', CHAT);
    }
  });

  test('an engine that a probe recognises gets what its clients write', async () => {
    await using replica = await startFakeReplica();
    replica.list({ models: ['m'], ownedBy: 'vllm' });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: 'auto', engine: 'auto' }],
    });
    await replica.untilProbes(1);
    await gateway.untilReachability('a', 'reachable');
    expect((await gateway.post(CHAT, `{"model":"m","Model":"b",${MESSAGES}}`)).status).toBe(200);
  });

  test('an alias is no way around: the name beside it counts as well', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: ['m'], engine: 'ollama' }],
      config: { aliases: { small: 'm' } },
    });
    await expectRefusal(await gateway.post(CHAT, `{"model":"small","Model":"b",${MESSAGES}}`), 'model', CHAT);
  });
});

test('bodies that wait for the thread are judged each by its own names, whatever else is read meanwhile', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: replica.url, models: ['m', 'b'], engine: 'vllm' }],
    config: { clients: CLIENTS },
  });
  const long = `"messages":[{"role":"user","content":"${LONG}"}]`;
  const kinds = [
    [`{"model":"m",${long}}`, 200],
    [`{"model":"m",${long},"Model":"b"}`, 400],
    [`{"model":"m",${MESSAGES}}`, 200],
    [`{"Model":"b","model":"m",${MESSAGES}}`, 400],
    [`{"model":"m",${long},"messages":[]}`, 400],
  ] as const;
  const sent = Array.from({ length: 60 }, async (_, index) => {
    const [body, status] = kinds[index % kinds.length] ?? ['', 0];
    const response = await gateway.post(CHAT, body, withKey('narrow'));
    await response.text();
    return [response.status, status];
  });
  for (const [status, expected] of await Promise.all(sent)) expect(status).toBe(expected);
  const records = await gateway.waitForRecords(60);
  const refused = records.filter(({ error_type }) => error_type === 'ambiguous_member');
  expect([records.length, refused.length]).toEqual([60, 36]);
  expect(refused.every(({ replica: name }) => name === undefined)).toBe(true);
});
