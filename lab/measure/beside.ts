import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startChatClients, WARM_REQUESTS } from '#testkit/load/cpu-of-chats.ts';
import { PLAIN_BODY } from '#testkit/load/plain-exchange.ts';
import { startPlainReplica } from '#testkit/load/plain-replica.ts';
import { type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { type CpuReading, readCpu, toSpentUs } from '#testkit/programs/process-tree.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { ROOT, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { median } from '#testkit/programs/statistics.ts';

const USAGE = `npm run lab -- measure/beside [options]
  Measures the CPU time of two kinds of requests in turn, so that the speed of the machine does not matter. Linux only.
  --baseline DIR  requests through this gateway, and through one of another checkout
  --history       requests through a gateway, and through one with \`history: off\`: what the history costs
                  Without either: requests through one gateway to a replica with a gpu_count, and to one without: what
                  GPU time costs
  --pairs N       how often, with new processes (default 6); V8 compiles each process a little differently
  --requests N    requests of each kind in a pair (default 40000)
  --turn N        requests of one kind before those of the other (default 200): a machine that others share takes half
                  as long again at one moment as at another
  --write         writes what GPU time costs into docs/evidence/metrics.md, or what the history costs into
                  docs/evidence/history.md; not with --baseline`;

const { baseline, history, pairs, requests, turn, write } = startProgram(USAGE, {
  baseline: { type: 'string' },
  history: { type: 'boolean', default: false },
  pairs: { type: 'string', default: '6' },
  requests: { type: 'string', default: '40000' },
  turn: { type: 'string', default: '200' },
  write: { type: 'boolean', default: false },
});
if (baseline !== undefined && (write || history))
  throw new Error('--baseline goes neither with --write nor with --history');
const PAIRS = toCount(pairs);
const REQUESTS = toCount(requests);
const TURN = toCount(turn);

/** Requests of one kind. */
interface Kind {
  /** Resolves when so many are answered. */
  send(requestCount: number): Promise<void>;
  /** The CPU time in µs that the gateway has spent on them since the last call. */
  takeSpentUs(): number;
}

/** The two kinds of requests that are compared, and what is behind them. */
interface Pair extends AsyncDisposable {
  readonly kinds: readonly [Kind, Kind];
}

await measure();

async function measure(): Promise<void> {
  const { date, commit, machine } = readCircumstances();
  const others =
    baseline !== undefined ? resolve(baseline) : history ? 'without history' : 'without gpu_count';
  console.log(`${date}, commit ${commit} beside ${others}, ${machine}`);
  console.log(`${PAIRS} pairs, ${REQUESTS} requests of each kind, ${TURN} in turn\n`);
  console.log('| pair | CPU per request, µs | beside it, µs | ratio |\n|---:|---:|---:|---:|');
  const ratios: number[] = [];
  for (let number = 0; number < PAIRS; number++) {
    const [spent, besideIt] = await comparePair(number);
    ratios.push(spent / besideIt);
    const ratio = (spent / besideIt).toFixed(3);
    console.log(`| ${number + 1} | ${spent.toFixed(1)} | ${besideIt.toFixed(1)} | ${ratio} |`);
  }
  const [least, greatest] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(3));
  const result = `${median(ratios).toFixed(3)} (${least} to ${greatest})`;
  console.log(`\nmedian ratio ${result}`);
  if (!write) return;
  const what = history
    ? `A plain request takes ${result} times the CPU time that it takes with \`history: off\`, the history's thread included:`
    : `A plain request to a replica with a \`gpu_count\` takes ${result} times the CPU time of one to a replica without:`;
  const text = [
    what,
    `the median of ${PAIRS} gateways, and the least and greatest, on ${date} at commit ${commit}, ${machine}.`,
  ];
  replaceBetween(
    `docs/evidence/${history ? 'history' : 'metrics'}.md`,
    '<!-- measured: measure/beside -->',
    '<!-- end -->',
    text.join('\n'),
  );
}

/** The mean CPU time of a request of each kind, in µs. */
async function comparePair(number: number): Promise<readonly [number, number]> {
  const isSwapped = number % 2 === 1;
  await using pair = await (baseline !== undefined || history
    ? startBeside(resolve(baseline ?? ROOT), history ? { history: 'off' } : {}, isSwapped)
    : startKinds(isSwapped));
  const [one, other] = pair.kinds;
  // In turn: a gateway that idles for seconds gives memory back, and then spends more on garbage.
  const sendInTurn = async (count: number) => {
    for (let sent = 0; sent < count; sent += TURN) {
      // Who is first may find another machine than who is second.
      const isFirst = (sent / TURN + number) % 2 === 0;
      for (const kind of isFirst ? [one, other] : [other, one]) await kind.send(TURN);
    }
  };
  await sendInTurn(WARM_REQUESTS);
  for (const kind of pair.kinds) kind.takeSpentUs();
  await sendInTurn(REQUESTS);
  const sent = Math.ceil(REQUESTS / TURN) * TURN;
  return [one.takeSpentUs() / sent, other.takeSpentUs() / sent];
}

/** All that a gateway does is for these requests: also what it does later, as writing records. */
function toWholeKind(started: AsyncDisposableStack, { url, pid }: GatewayProcess): Kind {
  const clients = started.use(startChatClients(url));
  let before: CpuReading = readCpu(pid);
  return {
    send: (count) => clients.send(count),
    takeSpentUs: () => {
      const now = readCpu(pid);
      const spentUs = toSpentUs(before, now);
      before = now;
      return spentUs;
    },
  };
}

/** What a gateway does while these requests are sent is for them. */
function toSharedKind(started: AsyncDisposableStack, { url, pid }: GatewayProcess, body: string): Kind {
  const clients = started.use(startChatClients(url, { body }));
  let spentUs = 0;
  return {
    send: async (count) => {
      const before = readCpu(pid);
      await clients.send(count);
      spentUs += toSpentUs(before, readCpu(pid));
    },
    takeSpentUs: () => {
      const taken = spentUs;
      spentUs = 0;
      return taken;
    },
  };
}

/** Requests through one gateway, to replicas with and without a gpu_count. `isSwapped`: the second one has it. */
async function startKinds(isSwapped: boolean): Promise<Pair> {
  const started = new AsyncDisposableStack();
  const models = ['m', 'n'];
  const replicas = [];
  for (const [index, model] of models.entries()) {
    const { url } = started.use(await startPlainReplica());
    const gpus = (index === 1) === isSwapped ? { gpu_count: 8 } : {};
    replicas.push({ name: model, url, models: [model], engine: 'vllm', ...gpus });
  }
  const gateway = await startIn(started, ROOT, replicas);
  const [withGpus, without] = (isSwapped ? models.toReversed() : models).map((model) =>
    toSharedKind(started, gateway, PLAIN_BODY.replace('"model":"m"', `"model":"${model}"`)),
  );
  if (withGpus === undefined || without === undefined) throw new Error('there are two kinds');
  return { kinds: [withGpus, without], [Symbol.asyncDispose]: () => started.disposeAsync() };
}

/**
 * The same requests through a gateway of this checkout, and through one of another, or with another configuration.
 * `isSwapped`: the other one is started first. Of two equal gateways, the first takes 6 % more.
 */
async function startBeside(other: string, otherConfig: object, isSwapped: boolean): Promise<Pair> {
  const started = new AsyncDisposableStack();
  const { url } = started.use(await startPlainReplica());
  const replicas = [{ name: 'a', url, models: ['m'], engine: 'vllm', gpu_count: 8 }];
  const start = (isOther: boolean) =>
    isOther ? startIn(started, other, replicas, otherConfig) : startIn(started, ROOT, replicas);
  const first = await start(isSwapped);
  const second = await start(!isSwapped);
  const [gateway, theirs] = isSwapped ? [second, first] : [first, second];
  return {
    kinds: [toWholeKind(started, gateway), toWholeKind(started, theirs)],
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

/** Starts a gateway of a checkout, whose first replica is the collector too. */
async function startIn(
  started: AsyncDisposableStack,
  checkout: string,
  replicas: readonly { readonly url: string; readonly [key: string]: unknown }[],
  settings: object = {},
): Promise<GatewayProcess> {
  const folder = started.use(await mkdtempDisposable(join(tmpdir(), 'spangate-beside-'))).path;
  const config = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: join(folder, 'state'),
    replicas,
    export: { endpoint: replicas[0]?.url },
    ...settings,
  };
  return started.use(await startGateway(folder, config, {}, { checkout }));
}
