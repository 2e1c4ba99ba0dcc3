import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import type { Server } from '#testkit/programs/child.ts';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { createRecordedClient } from '../llama/client.ts';
import { Report } from '../llama/report.ts';
import { checkAbandoned } from './abandoned.ts';
import { installEngine, startEngine } from './engine.ts';
import { checkExchanges } from './exchanges.ts';
import { checkRestart } from './restart.ts';
import { checkTraces } from './traces.ts';

const USAGE = `npm run lab -- vllm [--write]
  Puts the gateway in front of two real vLLM servers that compute on the CPU. Compares what clients get with what the
  engine sends, records with the engine's figures, tokens of abandoned streams with its counters; restarts both under
  load. Exits with 1 if anything differs or a request fails. Installs vLLM on first use: a few minutes, 7 GB.
  --write  writes the result into docs/evidence/engines.md`;

const { write } = startProgram(USAGE, { write: { type: 'boolean', default: false } });
installEngine();
await using cleanUp = new AsyncDisposableStack();
const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-vllm-'))).path;
const collector = cleanUp.use(await startFakeCollector());
const logPath = join(folder, 'vllm.log');
const engines = new Map<string, Server>();
cleanUp.defer(async () => {
  for (const engine of engines.values()) await engine[Symbol.asyncDispose]();
});
for (const name of ['vllm-a', 'vllm-b'])
  engines.set(name, await startEngine({ logPath, tracesUrl: collector.url }));

const engineUrl = engines.get('vllm-a')?.url ?? '';
const start = async (name: string, replicas: readonly string[], more: object = {}) => {
  await mkdir(join(folder, name));
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    endpoints: ['responses', 'messages'],
    state_dir: join(folder, name, 'state'),
    replicas: replicas.map((each) => ({ name: each, url: engines.get(each)?.url })),
    export: { endpoint: collector.url, interval: '10ms' },
    ...more,
  };
  return cleanUp.use(await startGateway(join(folder, name), config));
};
const plain = await start('plain', ['vllm-a']);
const progressive = await start('progressive', ['vllm-a'], { progressive_usage: true });
const both = await start('both', [...engines.keys()]);

const report = new Report();
const client = createRecordedClient(plain.url, collector);
const progressiveClient = createRecordedClient(progressive.url, collector);
await checkExchanges('By default', client, engineUrl, report);
await checkExchanges('With progressive_usage', progressiveClient, engineUrl, report);
const abandoned = await checkAbandoned(progressiveClient, engineUrl, report);
await checkTraces(client, collector, report);
const restart = await checkRestart(both, engines, { folder, logPath }, report);
const isRight = report.finish();
process.exitCode = isRight ? 0 : 1;
if (write && isRight) writeDocument();

function writeDocument(): void {
  const { date, commit, machine } = readCircumstances();
  const rows = [
    ['Comparisons of answers, errors, records and spans, and differences', `${report.compared}, none`],
    [
      'Tokens of abandoned streams: recorded, and counted by the engine',
      `${abandoned.recorded} and ${abandoned.counted}, of ${abandoned.streams} streams; the same of ${abandoned.equal}`,
    ],
    [
      'Requests while both servers were restarted by `gateway rollout`, and those that failed',
      `${restart.requests}, ${restart.failed}`,
    ],
  ];
  const table = rows.map((row) => `| ${row.join(' | ')} |`);
  const text = [
    `${date}, commit ${commit}; vLLM 0.32.0, ${machine}.`,
    '',
    '| What | Result |',
    '|---|---|',
    ...table,
  ];
  replaceBetween('docs/evidence/engines.md', '<!-- begin: vllm -->', '<!-- end -->', text.join('\n'));
}
