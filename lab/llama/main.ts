import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { checkAnswers, checkErrors, checkPython, checkStreams } from './answers.ts';
import { createRecordedClient } from './client.ts';
import { installEngine, startEngine } from './engine.ts';
import { checkFurther, TOOLS_MODEL } from './further.ts';
import { checkProgressive } from './progressive.ts';
import { Report } from './report.ts';
import { checkAbort, checkKeepAlive, checkTimes } from './times.ts';

const USAGE = `npm run e2e:llama
  Puts the gateway in front of three real llama.cpp servers and sends requests with the SDKs of OpenAI and Anthropic.
  Exits with 1 if a record differs from what the engine sent or the client measured, or an object from what the engine
  sends without the gateway. Installs llama.cpp on first use, about 10 minutes.`;

startProgram(USAGE, {});
installEngine();
await using cleanUp = new AsyncDisposableStack();
const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-e2e-')));
const collector = cleanUp.use(await startFakeCollector());
const logPath = join(folder.path, 'llama.log');
const engine = cleanUp.use(await startEngine('tiny', logPath));
const embedder = cleanUp.use(await startEngine('tiny-embed', logPath, ['--embeddings', '--pooling', 'mean']));
const template = ['--chat-template-file', join(import.meta.dirname, 'tools.jinja')];
const toolCaller = cleanUp.use(await startEngine(TOOLS_MODEL, logPath, template));
const config = {
  endpoints: ['responses', 'messages'],
  gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
  state_dir: join(folder.path, 'state'),
  replicas: [
    { name: 'tiny', url: engine.url },
    { name: 'tiny-embed', url: embedder.url },
    { name: TOOLS_MODEL, url: toolCaller.url },
  ],
  export: { endpoint: collector.url, interval: '10ms' },
};
const gateway = cleanUp.use(await startGateway(folder.path, config, { SVC_HASH_SALT: 'e2e' }));

const secondFolder = join(folder.path, 'progressive');
await mkdir(secondFolder);
const progressive = cleanUp.use(
  await startGateway(secondFolder, {
    ...config,
    progressive_usage: true,
    state_dir: join(secondFolder, 'state'),
  }),
);

const client = createRecordedClient(gateway.url, collector);
const report = new Report();
await checkAnswers(client, report);
await checkStreams(client, report);
await checkTimes(client, report);
await checkAbort(client, engine.url, report);
await checkProgressive(createRecordedClient(progressive.url, collector), client, report);
await checkErrors(client, engine.url, report);
await checkPython(client, report);
await checkFurther(client, toolCaller.url, report);
await checkKeepAlive(client, report);
process.exitCode = report.finish() ? 0 : 1;
