import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { toShownName } from '#otel/base';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { invoke } from '../cli/invoke.ts';

/** What a terminal would obey, what turns the direction of writing, and what ends a line. */
const CONTROLS = [
  '\u0007',
  '\u001b[31m',
  '\u009b31m',
  '\u202e',
  '\u2066',
  '\u200f',
  '\u061c',
  '\u2028',
  '\u2029',
];
const SIGNS = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/u;
const MODEL = `m${CONTROLS.join('')}x`;
const SHOWN = 'm[31m31mx';

/** All but the line feeds that part lines. */
const withoutLineFeeds = (text: string) => text.replaceAll('\n', '');

describe('a name that would control a terminal or turn the direction of writing', () => {
  test('is looked up as it is, and shown and exported without that', async () => {
    await using collector = await startFakeCollector();
    await using replica = await startFakeReplica({ list: { models: [MODEL] } });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: 'auto', engine: 'auto' }],
      collector,
      config: { log: { requests: true } },
    });
    const response = await gateway.chat(
      { model: MODEL },
      { headers: { 'X-Tenant': Buffer.from(`t${CONTROLS[3]}`).toString('latin1'), 'X-Feature': 'f\u009b' } },
    );
    expect(response.status).toBe(200);
    expect(JSON.parse((await (await replica.nextRequest()).body).toString()).model).toBe(MODEL);
    expect(await gateway.nextRecord()).toMatchObject({ model: SHOWN, tenant: 't', feature: 'f' });

    const reason = encodeURIComponent(`why${CONTROLS.join('')}`);
    const drained = await gateway.admin(`/admin/replicas/a/drain?reason=${reason}`, { method: 'POST' });
    const shown = [
      await drained.text(),
      await (await gateway.admin('/admin/replicas')).text(),
      await (await gateway.admin('/admin/records')).text(),
      await (await gateway.admin('/admin/overview')).text(),
      await (await gateway.admin('/metrics')).text(),
    ];
    const env = { SVC_ADMIN_TOKEN: 'test-admin-token' };
    for (const command of ['replicas', 'top']) {
      shown.push((await invoke([command, '--admin', gateway.adminUrl], env)).stdout);
    }
    await gateway.close();
    shown.push(...gateway.logLines, ...collector.calls.map(({ body }) => body));
    for (const text of shown) {
      expect(withoutLineFeeds(text)).not.toMatch(SIGNS);
      expect(text).not.toMatch(/\\u00[0189]|\\u20[26]/);
    }
    expect(shown.join()).toContain(`gen_ai_request_model="${SHOWN}"`);
  });

  test('has its own series of metrics when a replica is known to serve it', async () => {
    await using replica = await startFakeReplica({ list: { models: [MODEL] } });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: replica.url, models: 'auto', engine: 'auto' }],
      config: { metrics: { max_names: 0 } },
    });
    expect((await gateway.chat({ model: MODEL })).status).toBe(200);
    await gateway.nextRecord();
    expect(await (await gateway.admin('/metrics')).text()).toContain(`gen_ai_request_model="${SHOWN}"`);
  });

  test('does not come by way of a collector that refuses records either', async () => {
    await using collector = await startFakeCollector();
    collector.answerAlways({ status: 400, body: JSON.stringify({ message: `no${CONTROLS.join('')}` }) });
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], collector });
    await gateway.chat();
    expect(await gateway.untilLogged('records_rejected')).toContain('"collector_message":"no[31m31m"');
  });
});

test('a name in any script stays as it is', async () => {
  for (const name of ['مدل\u200cفارسی', 'דגם', '模型', 'modèle', '👩‍💻'])
    expect(toShownName(name)).toBe(name);
});

test('records in files are without it as well', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [{ ...replica, models: [MODEL] }],
    config: { export: { interval: '10ms' } },
  });
  await gateway.chat({ model: MODEL });
  await gateway.nextRecord();
  await expect.poll(async () => (await gateway.stats()).exported).toBe(1);
  const lines = await readFile(join(gateway.stateDir, 'records.jsonl'), 'utf8');
  expect(lines).toContain(SHOWN);
  expect(withoutLineFeeds(lines)).not.toMatch(SIGNS);
});
