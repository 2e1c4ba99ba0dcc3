import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CANARY } from '#testkit/canaries/canary.ts';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { answerJson, COMPLETION, hang, refusedUrlBeside } from '#testkit/fake-replica.ts';
import type { StartedGateway } from '#testkit/start-gateway.ts';
import { startShadowScene, toConfigured, words } from './scene.ts';

const post = { method: 'POST' };

/** The counters `gateway_shadow_<name>_total`, by their outcome or reason. */
async function readSeries(gateway: StartedGateway, name: string): Promise<Record<string, number>> {
  const metrics = await (await gateway.admin('/metrics')).text();
  const line = new RegExp(`^gateway_shadow_${name}_total\\{.*(?:outcome|reason)="(\\w+)".*\\} (\\d+)$`, 'gm');
  return Object.fromEntries(
    [...metrics.matchAll(line)].map(([, label = '', value]) => [label, Number(value)]),
  );
}

describe('a shadow', () => {
  test.for([1, 2])(
    'gets the bytes that its primary gets, and its answer no client, with %d workers',
    async (workers) => {
      await using scene = await startShadowScene({ workers });
      const { gateway, a, s } = scene;
      a.answer(words('from', 'a'));
      s.answer(words('from', 's'));

      const answer = await (await gateway.chat({ stream: true })).text();
      await scene.untilCopied(1, { stream: true });

      expect(answer).toContain('"a"');
      const [copy] = s.requests;
      const body = String(await copy?.body);
      expect(body).toBe(String(await a.requests[0]?.body));
      expect(body).toContain('include_usage');
      const ids = a.requests.flatMap(({ header }) => header('x-request-id'));
      expect(ids).not.toContain(copy?.header('x-request-id')[0]);
      expect(gateway.records.every(({ replica }) => replica === 'a')).toBe(true);
    },
  );

  test('that never answers delays no client, and has no more in flight than it may', async () => {
    await using scene = await startShadowScene({ shadow: { max_inflight: 2 } });
    const { gateway, s } = scene;
    s.answer(hang);

    await scene.untilCopied(2);
    for (let count = 0; count < 10; count++) expect((await gateway.chat()).status).toBe(200);

    expect(s.requests).toHaveLength(2);
    const shown = (await gateway.replicas()).find(({ name }) => name === 's');
    expect(shown?.inflight).toBe(2);
  });

  test('gets a copy anew if it has closed the kept connection, as a client would', async () => {
    await using scene = await startShadowScene();
    const { gateway, s } = scene;
    const used = new Set<unknown>();
    let resets = 0;
    s.answer(async (exchange) => {
      const { connection } = exchange.request;
      if (!used.has(connection)) {
        used.add(connection);
        await answerJson(COMPLETION)(exchange);
        return;
      }
      await exchange.request.body;
      resets++;
      exchange.reset();
    });
    const copies = () => readSeries(gateway, 'copies');
    while (((await copies()).ok ?? 0) < 5) await (await gateway.chat()).text();
    expect(resets).toBeGreaterThan(0);
    expect(await copies()).not.toHaveProperty('error');
  });

  test('gets a share of the requests', async () => {
    await using scene = await startShadowScene({ shadow: { requests: '20%', max_inflight: 100 } });
    await scene.untilCopied(10);

    const { a } = scene;
    expect(a.requests.length).toBeGreaterThan(15);
  });

  test.for([
    ['stores', '/v1/chat/completions', { messages: [], store: true }],
    ['stores as usual', '/v1/responses', { input: 'Hi' }],
    ['runs in the background', '/v1/responses', { input: 'Hi', store: false, background: true }],
    ['continues a response', '/v1/responses', { input: 'Hi', store: false, previous_response_id: 'resp_1' }],
    ['lets the engine run tools', '/v1/responses', { input: 'Hi', store: false, tools: [{ type: 'mcp' }] }],
    ['is of a passed path', '/v1/files', {}],
  ] as const)('gets no copy of a request that %s', async ([, path, members]) => {
    await using scene = await startShadowScene({
      config: { endpoints: ['responses'], pass: ['POST /v1/files'] },
    });
    const { gateway, a, s } = scene;

    const answer = await gateway.post(path, { model: 'm', ...members });
    await scene.untilCopied(1);

    expect(answer.status).toBe(200);
    expect(a.requests[0]?.url).toBe(path);
    expect(s.requests.map(({ url }) => url)).toEqual(['/v1/chat/completions']);
  });

  test('that cannot be reached is no trouble of the model', async () => {
    await using scene = await startShadowScene();
    const { gateway, a, s } = scene;
    gateway.writeConfig({
      replicas: [toConfigured(a), { name: 's', url: refusedUrlBeside(s), role: 'shadow' }],
    });
    await gateway.reload();

    for (let count = 0; count < 5; count++) expect((await gateway.chat()).status).toBe(200);
    await gateway.untilReachability('s', 'unreachable');
    await expect
      .poll(async () => (await gateway.admin('/admin/conditions')).text())
      .toContain('"replica_unreachable"');

    const conditions = (await (await gateway.admin('/admin/conditions')).json()) as {
      readonly conditions: readonly { readonly id: string; readonly subject: string }[];
    };
    const ofOthers = conditions.conditions.filter(({ subject }) => subject !== 's').map(({ id }) => id);
    expect(ofOthers).not.toContain('model_on_last_replica');
    expect(ofOthers).not.toContain('health_checks_off');
    expect(await (await gateway.admin('/metrics')).text()).toContain('gateway_model_replicas');
  });

  test('that is drained gets no copies, and gets them again when it is undrained', async () => {
    await using scene = await startShadowScene();
    const { gateway, s } = scene;
    await scene.untilCopied(1);

    const drained = await gateway.admin('/admin/replicas/s/drain?wait=10s', post);
    const count = s.requests.length;
    for (let more = 0; more < 5; more++) await (await gateway.chat()).text();

    expect(((await drained.json()) as { replica: object }).replica).toMatchObject({ safe_to_stop: true });
    expect(s.requests).toHaveLength(count);
    await gateway.admin('/admin/replicas/s/undrain', post);
    await scene.untilCopied(count + 1);
  });

  test('goes on with its answer when the client leaves, or is cut if that is asked for', async () => {
    for (const isCut of [false, true]) {
      await using scene = await startShadowScene({ shadow: { cut_with_client: isCut } });
      const { gateway, a, s } = scene;
      a.answer(hang);
      s.answer(hang);
      const leaving = new AbortController();
      const answers: Promise<unknown>[] = [];
      while (s.requests.length === 0) {
        answers.push(gateway.chat({}, { signal: leaving.signal }).catch(() => undefined));
        await a.untilRequests(answers.length);
        await new Promise(setImmediate);
      }

      leaving.abort();
      await Promise.all(answers);
      await Promise.all(a.requests.map((request) => request.untilAborted()));

      if (isCut) await s.requests[0]?.untilAborted();
      else expect(s.requests[0]?.isAborted).toBe(false);
    }
  });

  test('leaves spans of its own and no records', async () => {
    await using collector = await startFakeCollector();
    await using scene = await startShadowScene({ collector });
    const { gateway, a, s } = scene;
    for (const replica of [a, s]) replica.answer(words('one', 'two'));
    await scene.untilCopied(1, { stream: true });
    const isOfShadow = ({ name }: { readonly name: string }) => name === 'gateway.shadow';

    await collector.waitFor(({ spans }) => spans.some(isOfShadow));
    await gateway.waitForRecords(a.requests.length);

    const span = collector.spans.find(isOfShadow);
    expect(span?.attributes).toMatchObject({
      'gateway.shadow.replica': 's',
      'gateway.shadow.primary': 'a',
      'gateway.shadow.model': 'm',
      'gateway.shadow.outcome': 'ok',
      'gateway.shadow.completion_tokens': 2,
      'http.route': '/v1/chat/completions',
    });
    const links = span?.links.map(({ traceId }) => traceId) ?? [];
    expect(gateway.records.map(({ trace_id }) => trace_id)).toContain(links[0]);
    expect(s.requests[0]?.header('traceparent')[0]).toContain(span?.spanId);
    expect((await gateway.stats()).recorded).toBe(a.requests.length);
  });

  test.for([1, 2])(
    'is counted in metrics, with what was not copied and why, with %d workers',
    async (workers) => {
      await using scene = await startShadowScene({ workers, shadow: { max_inflight: 1 } });
      const { gateway, s } = scene;
      expect(await readSeries(gateway, 'copies')).toEqual({});
      await scene.untilCopied(1);
      await expect.poll(() => readSeries(gateway, 'copies')).toEqual({ ok: s.requests.length });

      s.answer(hang);
      const copied = s.requests.length;
      await scene.untilCopied(copied + 1);
      // On a busy machine some are skipped for that.
      await expect
        .poll(async () => {
          await (await gateway.chat()).text();
          return await readSeries(gateway, 'skipped');
        })
        .toMatchObject({ shadow_full: expect.any(Number) });
      expect(await readSeries(gateway, 'copies')).toEqual({ ok: copied });
      await s.close();
      // Its kept connection was closed, and it takes no other one. Of two workers, the other one may have sent this copy, on a
      // first connection.
      const outcomes = workers === 1 ? ['not_connected'] : ['not_connected', 'error'];
      const expected = outcomes.map((outcome) => ({ ok: copied, [outcome]: 1 }));
      await expect.poll(() => readSeries(gateway, 'copies')).toBeOneOf(expected);
    },
  );

  test('leaves no text anywhere', async () => {
    await using collector = await startFakeCollector();
    await using scene = await startShadowScene({
      collector,
      config: { log: { level: 'trace', requests: true } },
    });
    const { gateway, a, s } = scene;
    const call = {
      id: CANARY,
      type: 'function',
      function: { name: CANARY, arguments: JSON.stringify({ [CANARY]: CANARY }) },
    };
    const message = { role: 'assistant', content: CANARY, tool_calls: [call] };
    a.answer(answerJson({ ...COMPLETION, choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }));
    s.answer(
      answerJson({ ...COMPLETION, choices: [{ index: 0, message: { ...message, content: `${CANARY}2` } }] }),
    );
    const request = { temperature: 0, messages: [{ role: 'user', content: CANARY }] };
    await scene.untilCopied(2, request);
    a.answer(words(CANARY, CANARY));
    s.answer(answerJson({ error: { message: CANARY } }, { status: 500 }));
    await scene.untilCopied(4, { ...request, stream: true });
    await collector.waitFor(({ spans }) => spans.filter(({ name }) => name === 'gateway.shadow').length >= 4);

    const paths = ['/admin/verdict?candidate=s', '/admin/replicas', '/admin/conditions', '/metrics'];
    const admin = await Promise.all(paths.map(async (path) => (await gateway.admin(path)).text()));
    const files = await readFiles(gateway.stateDir);

    expect(admin[0]).toContain('"outputs"');
    const kept = {
      records: JSON.stringify(gateway.records),
      exported: collector.calls.map((call) => call.body).join('\n'),
      log: gateway.logLines.join('\n'),
      admin: admin.join('\n'),
      files: files.join('\n'),
    };
    for (const [where, text] of Object.entries(kept)) expect(text, where).not.toContain(CANARY);
  });
});

/** Names and contents of all files in a directory. */
async function readFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return await Promise.all(
    files.map(async ({ parentPath, name }) => `${name}\n${await readFile(join(parentPath, name), 'latin1')}`),
  );
}
