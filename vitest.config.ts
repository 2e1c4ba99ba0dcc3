import { join, matchesGlob, relative } from 'node:path';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

// Gateways that tests start, as processes or worker threads, share the code that Node has stripped and compiled once.
process.env.NODE_COMPILE_CACHE ??= join(import.meta.dirname, 'node_modules/.cache/node-compile');

// Each gateway has 20 MB of tables, of which it touches a little. From 1 MB on, glibc has memory from the kernel, which fills
// pages with zeros when they are touched, and does not fill all that a gateway before it has freed.
process.env.MALLOC_MMAP_THRESHOLD_ ??= String(1024 ** 2);

/** What all projects have. Only an event that never comes, and a test that hangs, takes so long, even on a busy machine. */
const COMMON = {
  // No module has state, so that test files can share the modules that one of them has loaded.
  isolate: false,
  expect: { poll: { timeout: 60_000 } },
  testTimeout: 180_000,
  hookTimeout: 180_000,
};

/**
 * Tests that need a program which is installed or built for them (a collector, a browser, Redis, Helm), that take minutes by
 * nature, or that do in small what a program of the lab does at length in the same night: `npm run test:tools`.
 */
const TOOLS = [
  'test/deploy/**/*.test.ts',
  'test/e2e/{collector,dashboard,packages,privacy,rollout}/**/*.test.ts',
  'test/e2e/{backends,engine-trace,history/kill}.test.ts',
  'lab/test/e2e/**/*.test.ts',
  'lab/test/{fuzz,simulation/simulation}.test.ts',
];

/**
 * The gateway gives its Redis a second for a command, Prometheus 100 ms for a scrape, and a rollout under load has to
 * keep up with it, which five of these at once do not on two cores.
 */
const FLEET = [
  'test/deploy/scaling-recipes.test.ts',
  'test/e2e/{fleet/**/*,prometheus}.test.ts',
  'lab/test/e2e/{fleet-rollout,rollout/**/*}.test.ts',
];

/** Files that wait most of their time, by the rules of what they test. */
const WAITING = [
  'test/cli/drains/drain.test.ts',
  'test/export/{logs,silent-ends}.test.ts',
  'test/gateway/admin/verdict.test.ts',
  'test/gateway/conditions/{certificate,clients,config,export,limit,machine}-conditions.test.ts',
  'test/gateway/conditions/{held-limits,whole-gateway}.test.ts',
  'test/gateway/discovery/readiness-gate.test.ts',
  'test/gateway/peers.test.ts',
  'test/gateway/replicas/silent-streams.test.ts',
  'test/main/{file-descriptors,full-disk}.test.ts',
  'test/rollout/{corrections,rollout-command,shadow,steering,two-rollouts}.test.ts',
];

/** Spreads those over the first half, so that others have something to do beside them. */
class Spread extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isWaiting = ({ moduleId }: TestSpecification): boolean =>
      WAITING.some((pattern) => matchesGlob(relative(import.meta.dirname, moduleId), pattern));
    const sorted = await super.sort(files);
    const waiting = sorted.filter(isWaiting);
    const spread = sorted.filter((file) => !isWaiting(file));
    const step = Math.ceil(sorted.length / 2 / waiting.length);
    for (const [index, file] of waiting.entries()) spread.splice(index * step, 0, file);
    return spread;
  }
}

export default defineConfig({
  test: {
    sequence: { sequencer: Spread },
    globalSetup: 'testkit/bundle/global-setup.ts',
    // Node loads the sources itself, as in a gateway: it takes a fifth less CPU than to have Vite rewrite each import.
    experimental: { viteModuleRunner: false, nodeLoader: false },
    // Most tests wait for sockets, processes and timers: one worker per core would leave the cores idle.
    maxWorkers: 8,
    // As above: on a starved machine a worker needs more than the default 10 s to write its compile cache and to end.
    teardownTimeout: 60_000,
    projects: [
      {
        test: {
          ...COMMON,
          name: 'unit',
          include: ['test/**/*.test.ts', 'lab/test/**/*.test.ts'],
          exclude: ['test/e2e/**', ...TOOLS],
        },
      },
      {
        test: {
          ...COMMON,
          name: 'e2e',
          include: ['test/e2e/**/*.test.ts'],
          exclude: [...TOOLS, ...FLEET],
        },
      },
      {
        test: {
          ...COMMON,
          name: 'tools',
          include: TOOLS,
          exclude: FLEET,
        },
      },
      {
        test: {
          ...COMMON,
          name: 'fleet',
          include: FLEET,
          sequence: { groupOrder: 1 },
          maxWorkers: 2,
        },
      },
    ],
  },
});
