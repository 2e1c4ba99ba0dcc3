import { mkdir, mkdtempDisposable, readFile } from 'node:fs/promises';
import { Agent } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { post } from '#testkit/load/load.ts';
import { sendInOpenLoop } from '#testkit/load/loops.ts';
import { startChild } from '#testkit/programs/child.ts';
import {
  ADMIN_TOKEN,
  askAdmin,
  type GatewayProcess,
  startGateway,
} from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { ROOT, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { toRandom } from '#testkit/random.ts';
import { installEngine, makeModel, startEngine } from './engine.ts';

const { seconds, rate, into, write } = startProgram(
  `npm run lab -- llama/compare [--seconds N] [--rate N] [--into DIR] [--write]
  Compares quantizations of a model with gateway compare: five real llama.cpp servers behind a gateway, of which two serve
  and three are judged, one after the other, by copies of half of the requests. Exits with 1 if the same weights are found
  worse, or rougher ones as good. Installs llama.cpp on first use, about 10 minutes.
  --seconds   of each comparison (default 180)
  --rate      requests per second (default 8)
  --into      keeps the reports as HTML in this folder
  --write     writes docs/evidence/shadow.md`,
  {
    seconds: { type: 'string', default: '180' },
    rate: { type: 'string', default: '8' },
    into: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
);

/** As much for the one that is judged as for each of the two that serve. */
const SHARE = '50%';
const SERVING = ['f16-a', 'f16-b'] as const;
/** Who is judged: the types of the weights, and the exit codes of `gateway compare` that are right. */
const CANDIDATES = [
  { name: 'f16-again', type: 'F16', right: [0, 4] },
  { name: 'q8-0', type: 'Q8_0', right: [3] },
  { name: 'q4-0', type: 'Q4_0', right: [3] },
] as const;
/** An hour of what an engine runs on. */
const HOUR_PRICE = 0.05;

const WORDS = 'sea wind stone river night paper music engine letter garden winter copper'.split(' ');

interface Comparison {
  readonly name: string;
  readonly type: string;
  readonly exitCode: number | null;
  /** What the command printed: a sentence, and tables in Markdown. */
  readonly text: string;
}

installEngine();
await using cleanUp = new AsyncDisposableStack();
const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-compare-'))).path;
if (into !== undefined) await mkdir(into, { recursive: true });
const gateway = await startAll();
for (const { name } of CANDIDATES) await askAdmin(gateway.adminUrl, 'POST', `/admin/replicas/${name}/drain`);
const found: Comparison[] = [];
for (const candidate of CANDIDATES) {
  const comparison = await compare(candidate);
  found.push(comparison);
  const isRight = candidate.right.some((code) => code === comparison.exitCode);
  console.log(`${isRight ? 'ok    ' : 'WRONG '} ${candidate.type}\n${comparison.text}`);
  if (!isRight) process.exitCode = 1;
}
if (write && process.exitCode === undefined) writeDocument(found);

async function startAll(): Promise<GatewayProcess> {
  const replicas = [];
  for (const [name, type] of [
    ...SERVING.map((each) => [each, 'F16'] as const),
    ...CANDIDATES.map((each) => [each.name, each.type] as const),
  ]) {
    const model = makeModel(type);
    const engine = cleanUp.use(await startEngine('tiny', join(folder, `${name}.log`), ['-m', model]));
    replicas.push({ name, url: engine.url, engine: 'llamacpp', gpu_count: 1, gpu_hour_price: HOUR_PRICE });
  }
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: join(folder, 'state'),
    export: { to: 'file' },
    shadow: { max_inflight: 16 },
    replicas,
  };
  return cleanUp.use(await startGateway(folder, config));
}

/** Runs `gateway compare` while clients send requests. Rejects if a client's request fails. */
async function compare({ name, type }: (typeof CANDIDATES)[number]): Promise<Comparison> {
  const report = join(into ?? folder, `${name}.html`);
  const logPath = join(folder, `compare-${name}.log`);
  const args = ['compare', name, SERVING.join(), '--shadow', SHARE, '--for', `${toCount(seconds)}s`];
  await using command = startChild(
    {
      file: process.execPath,
      args: [join(ROOT, 'src/main.ts'), ...args, '--report', report, '--admin', gateway.adminUrl],
      env: { SVC_ADMIN_TOKEN: ADMIN_TOKEN },
      isIsolated: true,
    },
    { logPath },
  );
  const failures = await sendPrompts(() => command.hasExited);
  if (failures.length > 0) throw new Error(`${failures.length} requests failed: ${failures[0]}`);
  const printed = await readFile(logPath, 'utf8');
  const text = printed.replace(/\nThe report is in .*\n/, '').trim();
  return { name, type, exitCode: await command.exited, text };
}

/** Sends chats at temperature 0, streamed and not, and others that may come out differently. Returns what failed. */
async function sendPrompts(isOver: () => boolean): Promise<readonly string[]> {
  const random = toRandom(1);
  const word = () => WORDS[Math.floor(random() * WORDS.length)];
  const agent = new Agent({ keepAlive: true });
  const failures: string[] = [];
  const open = new Set<Promise<void>>();
  let count = 0;
  const send = async (body: object) => {
    try {
      const { problem } = await post(agent, `${gateway.url}/v1/chat/completions`, JSON.stringify(body));
      if (problem !== null) failures.push(problem);
    } catch (error) {
      failures.push(String(error));
    }
  };
  await sendInOpenLoop({
    perSecond: toCount(rate),
    maxBurst: 4,
    isStopped: isOver,
    hasRoom: () => open.size < 40,
    begin() {
      const content = `${count}: what do the ${word()}, the ${word()} and the ${word()} have in common?`;
      const body = {
        model: 'tiny',
        messages: [{ role: 'user', content }],
        max_tokens: 16 + (count % 3) * 8,
        stream: count % 4 !== 0,
        ...(count % 5 === 0 ? {} : { temperature: 0 }),
      };
      count += 1;
      const sent = send(body).finally(() => open.delete(sent));
      open.add(sent);
    },
  });
  await Promise.all(open);
  agent.destroy();
  return failures;
}

function writeDocument(comparisons: readonly Comparison[]): void {
  const { date, commit, machine } = readCircumstances();
  const text = [
    `Measured on ${date} at commit ${commit} on ${machine}, shared with other work: ${rate} requests per second, ` +
      `${seconds} s each.`,
    ...comparisons.map(
      ({ name, type, text: printed }) =>
        `### ${type}: \`gateway compare ${name} ${SERVING.join()}\`\n\n${printed}`,
    ),
  ].join('\n\n');
  replaceBetween('docs/evidence/shadow.md', '<!-- compared -->', '<!-- end of compared -->', text);
}
