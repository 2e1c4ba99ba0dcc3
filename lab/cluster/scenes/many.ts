import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { ensure, type Scene, toSeconds } from '../scene.ts';
import { NAMESPACE, type Replicas, type Stage } from '../stage.ts';

const SLICES = `/apis/discovery.k8s.io/v1/namespaces/${NAMESPACE}/endpointslices`;
const PER_SLICE = 100; // as the controller makes them
const PORT = 8001;
const RATE = 40;

function toSlice(index: number): object {
  const endpoints = Array.from({ length: PER_SLICE }, (_, position) => {
    const number = index * PER_SLICE + position;
    return {
      addresses: [`10.99.${20 + (number >> 7)}.${1 + (number & 127)}`],
      conditions: { ready: true, serving: true, terminating: false },
      targetRef: { kind: 'Pod', name: `many-${number}`, namespace: NAMESPACE, uid: `uid-${number}` },
    };
  });
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    addressType: 'IPv4',
    metadata: { name: `many-${index}`, labels: { 'kubernetes.io/service-name': 'many' } },
    ports: [{ name: 'http', port: PORT, protocol: 'TCP' }],
    endpoints,
  };
}

/** CPU seconds and resident MiB of a process. */
async function readCost(pid: number) {
  const [stat, status] = await Promise.all([
    readFile(`/proc/${pid}/stat`, 'utf8'),
    readFile(`/proc/${pid}/status`, 'utf8'),
  ]);
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const ticks = Number(fields[11]) + Number(fields[12]);
  return { cpuSeconds: ticks / 100, mebibytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1_024 };
}

async function countKnown(stage: Stage): Promise<number> {
  const { replicas } = await stage.admin<Replicas>(stage.gateway, '/admin/replicas');
  return replicas.filter(({ name }) => name.startsWith('many-')).length;
}

/** Adds slices until there are so many endpoints. */
async function grow(stage: Stage, from: number, count: number): Promise<void> {
  for (let index = from / PER_SLICE; index < count / PER_SLICE; index++)
    await stage.plane.api.create(SLICES, toSlice(index));
}

const many: Scene = {
  id: 'many-endpoints',
  promise:
    '5,000 endpoints are replicas soon; of 7,000 so many as a gateway takes, and the log says that the rest is left out.',
  isSlow: true,
  async play(stage) {
    const list = JSON.stringify({ object: 'list', data: [{ id: 'many', object: 'model' }] });
    const server = createServer((_, response) => {
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(list);
    });
    await listen(server, PORT, '0.0.0.0');
    try {
      await stage.startEngines({ kind: 'Deployment', name: 'chat', replicas: 3, hasGate: true });
      const before = await readCost(stage.gateway.pid);
      let [writtenMs, knownMs, toldMs, known] = [0, 0, 0, 0];
      let after = before;
      const { requests } = await stage.underLoad(RATE, async () => {
        const startedMs = performance.now();
        await grow(stage, 0, 5_000);
        writtenMs = performance.now() - startedMs;
        const areKnown = async () => (await countKnown(stage)) === 5_000;
        // An answer with so many replicas takes the gateway, and this program, more than a moment.
        await stage.until('5,000 endpoints are replicas', areKnown, 60_000, 2_000);
        knownMs = performance.now() - startedMs;
        after = await readCost(stage.gateway.pid);
        await grow(stage, 5_000, 7_000);
        toldMs = await stage.until('the log says that 7,000 are too many', async () =>
          stage.gateway.lines.some((line) => line.includes('"msg":"too many replicas"')),
        );
        known = await countKnown(stage);
      });
      ensure(known >= 5_000 && known < 7_000, `${known} replicas`);
      const [cpu, more] = [after.cpuSeconds - before.cpuSeconds, after.mebibytes - before.mebibytes];
      return [
        `5,000 written in ${toSeconds(writtenMs)}, all known after ${toSeconds(knownMs)}, for ${cpu.toFixed(1)} s of CPU and ${Math.round(more)} MiB (${Math.round(after.mebibytes)} in all)`,
        `of 7,000 ${known.toLocaleString('en')} are kept, said ${toSeconds(toldMs)} after they were written; ${requests} requests to others meanwhile, none failed`,
      ].join('; ');
    } finally {
      const query = new URLSearchParams({ labelSelector: 'kubernetes.io/service-name=many' });
      await stage.plane.api.delete(`${SLICES}?${query}`);
      await stage.until('none of them is left', async () => (await countKnown(stage)) === 0);
      await closeServer(server);
    }
  },
};

/** Very many endpoints. */
export const MANY_SCENES: readonly Scene[] = [many];
