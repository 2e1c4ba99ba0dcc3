import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { pino } from 'pino';
import { expect, onTestFinished, test } from 'vitest';
import { parseConfig } from '#config';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { NO_SECRETS } from '../../../src/config/secrets/environment-secrets.ts';
import { createGateway } from '../../../src/gateway/create-gateway.ts';

test('a start that fails after the workers have begun ends them, and gives state_dir back', async () => {
  const folder = await temporaryFolder();
  const text = `gateway: { listen: "127.0.0.1:0", admin_listen: "127.0.0.1:0", workers: 2 }
replicas: [{ name: a, url: "http://127.0.0.1:9" }]
export: { to: file }`;
  const config = parseConfig(text, { path: join(folder, 'gateway.yaml'), env: {} });
  const seen = { started: 0, ended: 0 };
  const onWorker = (worker: Worker) => {
    seen.started += 1;
    worker.once('exit', () => {
      seen.ended += 1;
    });
  };
  process.on('worker', onWorker);
  onTestFinished(() => void process.off('worker', onWorker));

  const late = new Error('late');
  const secrets = {
    ...NO_SECRETS,
    // They are read after the workers are started.
    get tokens(): never {
      throw late;
    },
  };
  const collaborators = { log: pino({ level: 'silent' }), pid: process.pid };
  await expect(createGateway(config, { ...collaborators, secrets }).start()).rejects.toBe(late);
  expect(seen).toEqual({ started: 2, ended: 2 });

  const next = createGateway(config, { ...collaborators, secrets: NO_SECRETS });
  await next.start();
  await next.close();
});
