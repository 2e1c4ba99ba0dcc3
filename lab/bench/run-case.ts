import { mkdirSync, mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { type Child, startChild, untilListening } from '#testkit/programs/child.ts';
import type { Case, Sample } from './case.ts';
import { EMBEDDINGS_BYTES } from './cases.ts';
import type { Options } from './options.ts';
import type { Surroundings, Target } from './targets/target.ts';
import type { NativePrograms } from './workspace.ts';

const WARM_MS = 300;
const START_TIMEOUT_MS = 20_000;
const PORT_TRIES = 20;

/** The result of one target in one case: one sample per round, or the reason why there are none. */
export interface Row {
  readonly target: string;
  readonly samples: readonly Sample[];
  readonly failure: string | null;
}

interface Contender {
  readonly target: Target;
  readonly surroundings: Surroundings;
  readonly child: Child;
  readonly samples: Sample[];
  failure: string | null;
}

/** The mock replica, which is also the collector. */
export interface MockReplica {
  readonly child: Child;
  readonly ports: readonly number[];
}

/**
 * Measures the targets in one case. All run at once and are loaded in turn, A B C A B C …, so that other work on the
 * machine affects all of them; the first round has a longer warm-up. The row of a target that fails has the reason.
 */
export async function runCase(
  benchCase: Case,
  targets: readonly Target[],
  programs: NativePrograms,
  options: Options,
): Promise<readonly Row[]> {
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'spangate-bench-'));
  const folder = temporary.path;
  const rounds = benchCase.rounds ?? options.rounds;
  const contenders: Contender[] = [];
  const replica = await startReplica(programs.replica, benchCase.replicaCount ?? 1, folder);
  const [replicaPort = 0] = replica.ports;
  try {
    for (const target of targets)
      contenders.push(await startContender(target, replica.ports, folder, options));
    for (let round = 0; round < rounds; round++) {
      for (const contender of contenders) {
        if (contender.failure !== null) continue;
        if (process.stderr.isTTY)
          process.stderr.write(`\r\x1b[K${benchCase.name} ${round + 1}/${rounds} ${contender.target.name}`);
        await attempt(contender, async ({ target, surroundings, child, samples }) => {
          const sample = await benchCase.measure({
            driver: programs.driver,
            port: surroundings.port,
            pid: child.pid,
            logPath: join(folder, 'driver.log'),
            headers: ['X-Tenant: acme', 'X-Feature: bench', ...(target.toHeaders?.(surroundings) ?? [])],
            warmMs: round === 0 ? options.firstWarmMs : WARM_MS,
            runMs: options.runMs,
            replicaPort,
            folder,
          });
          samples.push(sample);
        });
      }
    }
  } finally {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
    await Promise.all([replica, ...contenders].map(({ child }) => child[Symbol.asyncDispose]()));
  }
  return contenders.map(({ target, samples, failure }) => ({ target: target.name, samples, failure }));
}

async function attempt(contender: Contender, act: (contender: Contender) => Promise<void>): Promise<void> {
  try {
    await act(contender);
  } catch (error) {
    contender.failure = error instanceof Error ? error.message : String(error);
  }
}

async function startContender(
  target: Target,
  replicaPorts: readonly number[],
  parent: string,
  { baseline, nodeFlags }: Options,
): Promise<Contender> {
  const folder = join(parent, target.name);
  mkdirSync(folder);
  const surroundings: Surroundings = {
    port: await findFreePort(),
    replicaPorts,
    collectorPort: replicaPorts[0] ?? 0,
    closedPort: await findFreePort(),
    sparePort: await findFreePort(),
    folder,
    baseline,
    nodeFlags,
  };
  const child = startChild(target.prepare(surroundings), { logPath: join(folder, 'output.log') });
  const contender: Contender = { target, surroundings, child, samples: [], failure: null };
  await attempt(contender, () =>
    untilListening(child, surroundings.port, target.startTimeoutMs ?? START_TIMEOUT_MS),
  );
  return contender;
}

/** The mock replica needs consecutive ports: if one is taken, another range is tried. */
export async function startReplica(program: string, portCount: number, folder: string): Promise<MockReplica> {
  for (let tries = 0; tries < PORT_TRIES; tries++) {
    const firstPort = 16_000 + Math.floor(Math.random() * 12_000); // below Linux's range for clients
    const args = [firstPort, portCount, EMBEDDINGS_BYTES].map(String);
    const child = startChild(
      { file: program, args },
      {
        logPath: join(folder, 'replica.log'),
        stdout: 'lines',
      },
    );
    try {
      await child.nextLine();
      return { child, ports: Array.from({ length: portCount }, (_, index) => firstPort + index) };
    } catch {
      await child[Symbol.asyncDispose]();
    }
  }
  throw new Error('no room for the mock replica: 20 port ranges were taken');
}
