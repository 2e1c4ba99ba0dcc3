import { writeFile } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { parseSamples, sumBy } from '#testkit/reading/prometheus-text.ts';
import { startFakeApiServer } from '#testkit/servers/fake-api-server.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { turnsOf } from '#testkit/turns.ts';
import { NO_POLL, namesOf, startPods, startWith, toService, untilNames } from './pods.ts';

test('a watch resumes at its last bookmark, whether it ended or broke', async () => {
  const { pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] }); // 101
  await using gateway = await startWith(api);
  await api.untilWatched();
  api.bookmark(); // 102
  api.endWatches();
  await api.untilWatched(2);
  api.put({ name: 's', ports, pods: [pod(0), pod(1)] }); // 103
  await untilNames(gateway, ['vllm-0', 'vllm-1']);
  api.cutWatches();
  await api.untilWatched(3);
  const positions = (await api.untilCalls(3, ({ isWatch }) => isWatch)).map(({ search }) =>
    search.get('resourceVersion'),
  );
  expect(positions).toEqual(['101', '102', '103']);
  expect(api.calls.filter(({ isWatch }) => !isWatch)).toHaveLength(1);
  expect(gateway.logLines.join('')).not.toContain('service not watched');
});

test('a position that is too old is followed by a new list', async () => {
  const { pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  // The gateway misses this change.
  api.answer('watch', (response) => {
    api.answer('watch', null);
    api.put({ name: 's', ports, pods: [pod(1)] });
    api.compact();
    response.writeHead(410).end();
  });
  api.cutWatches();
  await untilNames(gateway, ['vllm-1']);
  expect(api.calls.filter(({ isWatch }) => !isWatch)).toHaveLength(2);
});

test.each([
  ['no JSON', 'garbage\n'],
  ['no event', '{"type":"ADDED","object":{}}\n'],
  ['an error without a code', '{"type":"ERROR","object":{}}\n'],
  ['an event that never ends', 'x'.repeat(5 * 1024 ** 2)],
])('a watch that sends %s leaves the replicas, and the list is read anew', async (_, bytes) => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  api.send(bytes);
  await api.untilCalls(2, ({ isWatch }) => !isWatch);
  await gateway.untilLogged('service watched again');
  expect(await namesOf(gateway)).toEqual(['vllm-0']);
});

test('while the API server fails, the last replicas serve; then its list counts again', async () => {
  const { pod, ports } = await startPods(2);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  for (const kind of ['list', 'watch'] as const)
    api.answer(kind, (response) => response.writeHead(500).end());
  api.cutWatches();
  expect(await gateway.untilLogged('service not watched')).toContain(
    '"service":"vllm","kubernetes_service":"vllm","error_code":"bad_status","status":500,"kept":1',
  );
  expect(await turnsOf(gateway, 2)).toEqual(['vllm-0', 'vllm-0']);
  for (const kind of ['list', 'watch'] as const) api.answer(kind, null);
  api.put({ name: 's', ports, pods: [pod(1)] });
  await untilNames(gateway, ['vllm-1']);
  await gateway.untilLogged('service watched again');
});

test('the admin API and the metrics say that the API server is away, since when and why, until it is back', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  const sourcesIn = async (path: string) =>
    ((await (await gateway.admin(path)).json()) as { sources: readonly { since: string }[] }).sources;
  const up = async () =>
    sumBy(
      parseSamples(await (await gateway.admin('/metrics')).text()),
      'gateway_discovery_up',
      'gateway_discovery_source',
    );
  const source = {
    name: 'vllm',
    kind: 'kubernetes',
    since: expect.any(String),
    readiness_gate: null,
    advice: null,
  };
  const ok = [{ ...source, state: 'ok', error_code: null, error_cause: null }];
  const [before] = await sourcesIn('/admin/replicas');
  expect([before]).toEqual(ok);
  expect(await up()).toEqual({ vllm: 1 });

  const destroy = (response: ServerResponse) => void response.destroy();
  for (const kind of ['list', 'watch'] as const) api.answer(kind, destroy);
  api.cutWatches();
  await gateway.untilLogged('service not watched');
  const [failing] = await sourcesIn('/admin/replicas');
  expect([failing]).toEqual([
    {
      ...source,
      state: 'failing',
      error_code: expect.stringMatching(/^(cut|unreachable)$/),
      error_cause: expect.stringMatching(/^[A-Z_]+$/),
    },
  ]);
  expect(Date.parse(failing?.since ?? '')).toBeGreaterThanOrEqual(Date.parse(before?.since ?? ''));
  expect(await sourcesIn('/admin/overview')).toMatchObject([{ name: 'vllm', state: 'failing' }]);
  expect(await up()).toEqual({ vllm: 0 });

  for (const kind of ['list', 'watch'] as const) api.answer(kind, null);
  await gateway.untilLogged('service watched again');
  const [after] = await sourcesIn('/admin/replicas');
  expect([after]).toEqual(ok);
  expect(Date.parse(after?.since ?? '')).toBeGreaterThanOrEqual(Date.parse(failing?.since ?? ''));
  expect(await up()).toEqual({ vllm: 1 });
});

test('a source that has not answered yet is unknown, and has no metric', async () => {
  await using hung = await startFakeApiServer();
  hung.answer('list', () => undefined);
  await using gateway = await startWith(hung);
  const { sources } = (await (await gateway.admin('/admin/replicas')).json()) as { sources: unknown };
  expect(sources).toEqual([
    {
      name: 'vllm',
      kind: 'kubernetes',
      state: 'unknown',
      since: null,
      error_code: null,
      error_cause: null,
      advice: null,
      readiness_gate: null,
    },
  ]);
  expect(await (await gateway.admin('/metrics')).text()).not.toContain('gateway_discovery_up');
});

test('a list that is too large, or comes never, does not keep the gateway from its start', async () => {
  await using api = await startFakeApiServer();
  await using hung = await startFakeApiServer();
  api.answer('list', (response) => {
    response.writeHead(200);
    const more = () => {
      while (response.write('x'.repeat(1024 ** 2)));
    };
    response.on('drain', more);
    more();
  });
  hung.answer('list', () => undefined);
  const { pods } = await startPods(1);
  const services = [toService(api), toService(hung, {}, { name: 'other' })];
  const replicas = [{ name: 'own', url: pods[0].url }];
  await using gateway = await startGateway({ replicas, services, config: NO_POLL });
  expect(await gateway.untilLogged('service not watched')).toContain('answer_too_large');
  expect(await turnsOf(gateway, 1)).toEqual(['own']);
});

test('each call has the token that the file has then, over TLS that the authority in the file has signed', async () => {
  const directory = await temporaryFolder();
  await using authority = await createAuthority();
  let accepted = 'Bearer one';
  await using api = await startFakeApiServer({
    tls: await authority.issue('api'),
    isAllowed: (authorization) => authorization === accepted,
  });
  const { pod, ports } = await startPods(2);
  api.put({ name: 's', ports, pods: [pod(0)] });
  const tokenFile = join(directory, 'token');
  await writeFile(tokenFile, 'one\n');
  await writeFile(join(directory, 'namespace'), 'ours');
  const source = { namespace: undefined, token_file: tokenFile, ca_file: authority.ca.certPath };
  await using gateway = await startWith(api, source);
  await api.untilWatched();
  expect(await namesOf(gateway)).toEqual(['vllm-0']);
  expect(api.calls[0]?.path).toContain('/namespaces/ours/');

  accepted = 'Bearer two';
  api.endWatches();
  expect(await gateway.untilLogged('service not watched')).toContain('"error_code":"refused","status":401');
  await writeFile(tokenFile, 'two\n');
  await api.untilWatched(2);
  api.put({ name: 's', ports, pods: [pod(0), pod(1)] });
  await untilNames(gateway, ['vllm-0', 'vllm-1']);
});

test('an API server that another authority has signed gets no token', async () => {
  await using authority = await createAuthority();
  const other = await authority.issueAuthority('other');
  await using api = await startFakeApiServer({ tls: await other.issue('api') });
  const wrong = await authority.issue('wrong');
  const directory = await temporaryFolder();
  await writeFile(join(directory, 'token'), 'secret-token');
  const source = { token_file: join(directory, 'token'), ca_file: wrong.certPath };
  await using gateway = await startWith(api, source);
  const line = await gateway.untilLogged('service not watched');
  expect(line).toMatch(/"error_code":"unreachable","cause":"[A-Z_]+"/);
  const { sources } = (await (await gateway.admin('/admin/replicas')).json()) as { sources: unknown };
  expect(sources).toMatchObject([
    { state: 'failing', error_code: 'unreachable', error_cause: JSON.parse(line).cause },
  ]);
  expect(api.calls).toEqual([]);
  expect(gateway.logLines.join('')).not.toContain('secret-token');
});

test('the condition and the log name the rule that the service account lacks', async () => {
  const { pod, ports } = await startPods(1);
  await using api = await startFakeApiServer();
  api.put({ name: 's', ports, pods: [pod(0)] });
  await using gateway = await startWith(api);
  await api.untilWatched();
  const forbid = (response: ServerResponse) => void response.writeHead(403).end('{}');
  for (const kind of ['list', 'watch'] as const) api.answer(kind, forbid);
  api.cutWatches();
  const advice =
    'the service account needs the rule apiGroups [discovery.k8s.io], resources [endpointslices], verbs [get, list, watch] in the Role of the namespace';
  expect(JSON.parse(await gateway.untilLogged('service not watched'))).toMatchObject({
    error_code: 'refused',
    status: 403,
    advice,
  });
  const told = await gateway.untilLogged('kubernetes_failing');
  expect(told).toContain(`Kubernetes fails for vllm: refused: ${advice}`);
});
