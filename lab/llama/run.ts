import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeCollector } from '../../test/support/fake-collector.ts';
import { checkAnswers, checkErrors, checkPython, checkStreams } from './answers.ts';
import { createBench } from './client.ts';
import { findFreePort, installEngine, startEngine, startGatewayProcess } from './engine.ts';
import { Report } from './report.ts';
import { checkAbort, checkKeepAlive, checkTimes } from './times.ts';

/**
 * The gateway, as its own process, before two real llama.cpp servers, asked through OpenAI's SDKs: `npm run
 * e2e:llama`. Exits with 1 if a record differs from what the engine sent or its client measured.
 */

installEngine();
await using cleanUp = new AsyncDisposableStack();
const directory = await mkdtemp(join(tmpdir(), 'spangate-e2e-'));
cleanUp.defer(() => rm(directory, { recursive: true }));
const collector = cleanUp.use(await startFakeCollector());
const engine = cleanUp.use(await startEngine('tiny'));
const embedder = cleanUp.use(await startEngine('tiny-embed', ['--embeddings', '--pooling', 'mean']));

const port = await findFreePort();
const configPath = join(directory, 'gateway.yaml');
const config = {
  gateway: { listen: `127.0.0.1:${port}`, admin_listen: `127.0.0.1:${await findFreePort()}` },
  state_dir: join(directory, 'state'),
  replicas: [
    { name: 'tiny', url: engine.url },
    { name: 'tiny-embed', url: embedder.url },
  ],
  export: { endpoint: collector.url, interval: '10ms' },
};
// JSON is YAML.
await writeFile(configPath, JSON.stringify(config));
const gateway = cleanUp.use(await startGatewayProcess(configPath, port));

const bench = createBench(gateway.url, collector);
const report = new Report();
await checkAnswers(bench, report);
await checkStreams(bench, report);
await checkTimes(bench, report);
await checkAbort(bench, engine, report);
await checkErrors(bench, engine.url, report);
await checkPython(bench, report);
await checkKeepAlive(bench, report);
process.exitCode = report.finish() ? 0 : 1;
