import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startGateway } from '../support/gateway-process.ts';
import { spendOnChats, WARM_REQUESTS } from '../support/load/cpu-of-chats.ts';
import { startPlainReplica } from '../support/load/plain-replica.ts';
import { startProgram, toCount } from '../support/program.ts';
import { ROOT, readCircumstances, replaceBetween } from '../support/results.ts';
import { median } from '../support/statistics.ts';

const USAGE = `npm run lab -- measure/beside [options]
  Measures the CPU time of a request through two gateways that differ in one thing, in turn, so that the speed of the
  machine does not matter. Linux only.
  --baseline DIR  the other gateway is of this checkout; without it, it differs by having no gpu_count
  --pairs N       pairs of processes (default 6); V8 compiles each process a little differently
  --rounds N      turns of each process (default 8)
  --requests N    requests of a turn (default 2000)
  --write         writes what GPU time costs into docs/metrics.md; not with --baseline`;

const { baseline, pairs, rounds, requests, write } = startProgram(USAGE, {
  baseline: { type: 'string' },
  pairs: { type: 'string', default: '6' },
  rounds: { type: 'string', default: '8' },
  requests: { type: 'string', default: '2000' },
  write: { type: 'boolean', default: false },
});
if (write && baseline !== undefined)
  throw new Error('--write is for the cost of GPU time, without --baseline');
const PAIRS = toCount(pairs);
const ROUNDS = toCount(rounds);
const REQUESTS = toCount(requests);

await measure();

async function measure(): Promise<void> {
  await using replica = await startPlainReplica();
  const { date, commit, machine } = readCircumstances();
  const others = baseline === undefined ? 'without gpu_count' : resolve(baseline);
  console.log(`${date}, commit ${commit} beside ${others}, ${machine}`);
  console.log(`${PAIRS} pairs of processes, ${ROUNDS} rounds of ${REQUESTS} requests each\n`);
  console.log('| pair | CPU per request, µs | beside it, µs | ratio |\n|---:|---:|---:|---:|');
  const ratios: number[] = [];
  for (let pair = 0; pair < PAIRS; pair++) {
    const [spent, besideIt] = await comparePair(replica.url, pair);
    ratios.push(spent / besideIt);
    const ratio = (spent / besideIt).toFixed(3);
    console.log(`| ${pair + 1} | ${spent.toFixed(1)} | ${besideIt.toFixed(1)} | ${ratio} |`);
  }
  const [least, greatest] = [Math.min(...ratios), Math.max(...ratios)].map((ratio) => ratio.toFixed(3));
  const result = `${median(ratios).toFixed(3)} (${least} to ${greatest})`;
  console.log(`\nmedian ratio ${result}`);
  if (!write) return;
  const text = [
    `A plain request took ${result} times the CPU time that it takes without a \`gpu_count\`: the median of ${PAIRS} pairs of`,
    `gateways, and the least and greatest, on ${date} at commit ${commit}, ${machine}.`,
  ];
  replaceBetween('docs/metrics.md', '<!-- measured: measure/beside -->', '<!-- end -->', text.join('\n'));
}

/** The median CPU time of a request in µs, of this gateway and of the other one. */
async function comparePair(replicaUrl: string, pair: number): Promise<readonly [number, number]> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-beside-'));
  const start = async (isOther: boolean) => {
    const own = await mkdtempDisposable(join(folder.path, 'gateway-'));
    const gpus = baseline === undefined && isOther ? {} : { gpu_count: 8 };
    const config = {
      gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
      state_dir: join(own.path, 'state'),
      replicas: [{ name: 'a', url: replicaUrl, models: ['m'], engine: 'vllm', ...gpus }],
      export: { endpoint: replicaUrl },
    };
    const checkout = isOther && baseline !== undefined ? resolve(baseline) : ROOT;
    return await startGateway(own.path, config, {}, checkout);
  };
  await using gateway = await start(false);
  await using other = await start(true);
  const spentUs: [number[], number[]] = [[], []];
  await spendOnChats(gateway, WARM_REQUESTS);
  await spendOnChats(other, WARM_REQUESTS);
  for (let round = 0; round < ROUNDS; round++) {
    // Who is first in a round may find another machine than who is second.
    const isFirst = (round + pair) % 2 === 0;
    for (const isOther of isFirst ? [false, true] : [true, false]) {
      spentUs[isOther ? 1 : 0].push((await spendOnChats(isOther ? other : gateway, REQUESTS)) / REQUESTS);
    }
  }
  return [median(spentUs[0]), median(spentUs[1])];
}
