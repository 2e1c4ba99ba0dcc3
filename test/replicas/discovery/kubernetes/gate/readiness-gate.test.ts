import { expect, test } from 'vitest';
import { parseConfig } from '#config';
import { settle, VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { ApiError, type ApiFailureCode } from '../../../../../src/replicas/discovery/kubernetes/api-call.ts';
import type {
  ConditionOutcome,
  PodCondition,
  PodReference,
} from '../../../../../src/replicas/discovery/kubernetes/gate/pod-condition-api.ts';
import { ReadinessGate } from '../../../../../src/replicas/discovery/kubernetes/gate/readiness-gate.ts';
import type { Endpoint } from '../../../../../src/replicas/discovery/resolver.ts';
import { splitServers } from '../../../../../src/replicas/discovery/servers.ts';

const TYPE = 'spangate.dev/answers';
const CONFIG = parseConfig(
  'replicas: [{ name: vllm, kubernetes: { service: vllm, readiness_gate: true, port: 8000 } }]',
  { path: 'gateway.yaml', env: {} },
);
const [SERVICE] = splitServers(CONFIG.replicas.map(({ tls: _, ...entry }) => entry)).services;

const endpointOf = (name: string, uid: string | null = `uid-of-${name}`): Endpoint => ({
  host: '10.0.0.1',
  port: 8000,
  server: { pod: { name, uid }, node: null },
});

interface Written {
  readonly pod: PodReference;
  readonly condition: PodCondition;
}

/** A gate whose pods all answer, and whose writes end as they are told. */
function openGate() {
  if (SERVICE === undefined) throw new Error('a service');
  const service = SERVICE;
  const clock = new VirtualClock();
  const writes: Written[] = [];
  const lines: string[] = [];
  const asked = { now: 0, most: 0 };
  const script = { problem: null as string | null, outcome: 'written' as ConditionOutcome | ApiError };
  const log = (fields: object, message: string) => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const gate = new ReadinessGate(service, TYPE, {
    clock,
    random: () => 1,
    log: { info: log, warn: log },
    async check() {
      asked.now += 1;
      asked.most = Math.max(asked.most, asked.now);
      await settle();
      asked.now -= 1;
      return script.problem;
    },
    async write(pod, condition) {
      writes.push({ pod, condition });
      if (script.outcome instanceof ApiError) throw script.outcome;
      return script.outcome;
    },
  });
  return {
    gate,
    clock,
    writes,
    lines,
    script,
    asked,
    fail: (code: ApiFailureCode, retryAfterMs = 0) => {
      script.outcome = new ApiError(code, { retryAfterMs });
    },
    /** Looks once per second at these pods. */
    async run(seconds: number, endpoints: readonly Endpoint[]) {
      for (let second = 0; second < seconds; second++) {
        gate.update(service, endpoints);
        // Until the last of those that are asked one after another has its answer.
        do await settle();
        while (asked.now > 0);
        await settle();
        await clock.advance(1_000);
      }
    },
  };
}

const A = endpointOf('a');

test('a confirmed pod that stays unready gets its condition again after a minute, with the time that it has', async () => {
  const { writes, run, gate, lines } = openGate();
  await run(59, [A]);
  expect(writes).toHaveLength(1);
  await run(2, [A]);
  expect(writes.map(({ condition }) => condition)).toEqual([
    { type: TYPE, since: expect.any(String) },
    { type: TYPE, since: null },
  ]);
  expect(gate.state).toMatchObject({ confirmedCount: 1, waitingCount: 0 });
  expect(lines.filter((line) => line.startsWith('pod confirmed'))).toHaveLength(1);
});

test('a pod that does not wait for the condition gets it only once', async () => {
  const { writes, run, script } = openGate();
  script.outcome = 'no_gate';
  await run(200, [A]);
  expect(writes).toHaveLength(1);
});

test('failed writes are repeated more and more seldom, and at once as often after a success', async () => {
  const { writes, run, fail, script, gate } = openGate();
  fail('bad_status');
  await run(300, [A]);
  // After 1.5, 1.5, 1.5, 2, 4, 8, 16 and 30 s, looked at once per second.
  expect(writes.length).toBeGreaterThan(10);
  expect(writes.length).toBeLessThan(20);
  script.outcome = 'written';
  await run(31, [A]);
  expect(gate.state).toMatchObject({ state: 'ok', confirmedCount: 1 });
  const before = writes.length;
  fail('cut');
  await run(4, [endpointOf('b')]);
  expect(writes.length).toBe(before + 2);
});

test('writes that fail at the same time count as one failure', async () => {
  const { writes, run, fail } = openGate();
  fail('bad_status');
  const pods = Array.from({ length: 10 }, (_, index) => endpointOf(`p${index}`));
  await run(1, pods);
  expect(writes).toHaveLength(10);
  await run(2, pods);
  expect(writes).toHaveLength(20);
});

test('the API server is left alone for as long as it says', async () => {
  const { writes, run, fail } = openGate();
  fail('bad_status', 20_000);
  await run(20, [A]);
  expect(writes).toHaveLength(1);
  await run(1, [A]);
  expect(writes).toHaveLength(2);
});

test('what a pod waits for is logged when it changes, at most once per minute for each pod', async () => {
  const { lines, run, script } = openGate();
  for (let round = 0; round < 30; round++) {
    script.problem = `problem ${round % 2}`;
    await run(2, [A, endpointOf('b')]);
  }
  expect(lines).toHaveLength(2);
  await run(10, [A, endpointOf('b')]);
  script.problem = 'another';
  await run(2, [A, endpointOf('b')]);
  expect(lines).toHaveLength(4);
});

test('a pod without a uid, or with a name that may not stand in a path, is left alone', async () => {
  const { writes, run, gate } = openGate();
  await run(5, [
    endpointOf('a', null),
    endpointOf('..'),
    endpointOf('a/b'),
    endpointOf('a?b'),
    endpointOf('A'),
  ]);
  expect(writes).toEqual([]);
  expect(gate.state.waitingCount).toBe(0);
});

test('a new pod under the same name is another one, and what was known of the old one is forgotten', async () => {
  const { writes, run, gate } = openGate();
  await run(2, [endpointOf('a', 'one')]);
  await run(2, [endpointOf('a', 'two')]);
  await run(2, []);
  expect(writes.map(({ pod }) => pod.uid)).toEqual(['one', 'two']);
  expect(gate.state).toMatchObject({ confirmedCount: 2, waitingCount: 0, waiting: [] });
});

test('of many waiting pods those are named that wait for the longest time', async () => {
  const { run, gate, script } = openGate();
  script.problem = 'connection refused';
  const pods = Array.from({ length: 40 }, (_, index) => endpointOf(`p${index}`));
  await run(1, pods.slice(20));
  await run(1, pods);
  const { waiting, waitingCount } = gate.state;
  expect(waitingCount).toBe(40);
  expect(waiting.map(({ pod }) => pod)).toEqual(Array.from({ length: 16 }, (_, index) => `p${index + 20}`));
});

test('only a few of many pods are asked at the same time, and all in the end', async () => {
  const { run, gate, asked } = openGate();
  await run(
    1,
    Array.from({ length: 500 }, (_, index) => endpointOf(`p${index}`)),
  );
  expect(asked.most).toBe(16);
  expect(gate.state).toMatchObject({ confirmedCount: 500, waitingCount: 0 });
});
