import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { type FakeApiServer, startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import { kubernetesSource } from '../../../../../src/config/schema/kubernetes.ts';
import { ApiError } from '../../../../../src/replicas/discovery/kubernetes/api-call.ts';
import { makeConditionTrue } from '../../../../../src/replicas/discovery/kubernetes/gate/pod-condition-api.ts';

const TYPE = 'spangate.dev/answers';
const POD = { name: 'vllm-0', address: '127.0.0.1', uid: 'u', gates: [TYPE] };

async function startApi(): Promise<FakeApiServer> {
  const api = await startFakeApiServer();
  api.pods.put([POD]);
  return api;
}

const confirm = (
  api: FakeApiServer,
  pod = { name: 'vllm-0', uid: 'u' },
  since: string | null = null,
  { signal } = new AbortController(),
) => {
  const section = { service: 'vllm', namespace: 'llm', api_server: api.url, readiness_gate: TYPE };
  const source = kubernetesSource.parse(section);
  return makeConditionTrue(source, pod, { type: TYPE, since }, signal);
};

test('the condition is merged into those that the pod has, and a repetition keeps its time', async () => {
  await using api = await startApi();
  const since = '2026-11-22T12:00:00.000Z';
  expect(await confirm(api, undefined, since)).toBe('written');
  expect(await confirm(api)).toBe('written');
  expect(api.pods.conditionsOf(POD)).toMatchObject([
    { type: TYPE, status: 'True', lastTransitionTime: since },
  ]);
});

test.each([
  ['has another uid', { name: 'vllm-0', uid: 'another' }],
  ['is gone', { name: 'vllm-1', uid: 'u' }],
])('a pod that %s is gone', async (_, pod) => {
  await using api = await startApi();
  expect(await confirm(api, pod)).toBe('gone');
  expect(api.pods.conditionsOf(POD)).toEqual([]);
});

test('a pod whose gates do not name the condition does not wait for it', async () => {
  await using api = await startApi();
  api.pods.put([{ ...POD, gates: ['example.com/other'] }]);
  expect(await confirm(api)).toBe('no_gate');
  api.pods.put([{ name: 'vllm-0', address: '127.0.0.1', uid: 'u' }]);
  expect(await confirm(api)).toBe('no_gate');
});

const answer = (status: number, body: string, headers: Readonly<Record<string, string>> = {}) => {
  return (response: ServerResponse) => void response.writeHead(status, headers).end(body);
};
const withCauses = (causes: unknown) => answer(422, JSON.stringify({ details: { causes } }));

test.each<readonly [name: string, expected: object, answer: (response: ServerResponse) => void]>([
  ['403', { code: 'refused', status: 403 }, answer(403, '{}')],
  ['401', { code: 'refused', status: 401 }, answer(401, '')],
  ['500', { code: 'bad_status', status: 500, retryAfterMs: 0 }, answer(500, '')],
  [
    '429 with a time',
    { code: 'bad_status', status: 429, retryAfterMs: 7_000 },
    answer(429, '', { 'Retry-After': '7' }),
  ],
  ['429 with a day', { retryAfterMs: 60_000 }, answer(429, '', { 'Retry-After': '86400' })],
  ['429 with nonsense', { retryAfterMs: 0 }, answer(429, '', { 'Retry-After': '-1e9' })],
  ['422 for another field', { code: 'bad_status', status: 422 }, withCauses([{ field: 'spec' }, null, 7])],
  ['422 without causes', { code: 'bad_status', status: 422 }, withCauses({ field: 'metadata.uid' })],
  ['422 that is no JSON', { code: 'bad_status', status: 422 }, answer(422, '<html>')],
  ['a redirection', { code: 'bad_status', status: 307 }, answer(307, '', { Location: 'http://127.0.0.1/' })],
  ['a cut connection', { code: 'unreachable' }, (response) => void response.destroy()],
  [
    'an answer that breaks off',
    { code: 'cut' },
    (response) => {
      response.writeHead(200, { 'Content-Length': '100' });
      response.write('{', () => response.destroy());
    },
  ],
  ['no JSON', { code: 'malformed_answer' }, answer(200, '<html>')],
  ['null', { code: 'malformed_answer' }, answer(200, 'null')],
  ['no pod', { code: 'malformed_answer' }, answer(200, '{"__proto__":{"metadata":{"uid":"u"}}}')],
  [
    'another pod',
    { code: 'malformed_answer' },
    answer(200, `{"metadata":{"uid":"v"},"status":{"conditions":[{"type":"${TYPE}","status":"True"}]}}`),
  ],
  [
    'a pod without the condition',
    { code: 'malformed_answer' },
    answer(200, '{"metadata":{"uid":"u"},"status":{"conditions":[null,{"type":"Ready","status":"True"}]}}'),
  ],
  [
    'a pod with the condition false',
    { code: 'malformed_answer' },
    answer(200, `{"metadata":{"uid":"u"},"status":{"conditions":[{"type":"${TYPE}","status":"False"}]}}`),
  ],
  ['5 MiB', { code: 'answer_too_large' }, answer(200, 'x'.repeat(5 * 1024 ** 2))],
])('%s is a failure', async (_, expected, script) => {
  await using api = await startApi();
  api.answer('patch', script);
  const error = await confirm(api).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ApiError);
  expect(error).toMatchObject(expected);
});

test('a write ends with its signal, and not with a deadline', async () => {
  await using api = await startApi();
  const stopped = new AbortController();
  api.answer('patch', () => stopped.abort());
  const error = await confirm(api, undefined, null, stopped).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'unreachable', cause: { name: 'AbortError' } });
});
