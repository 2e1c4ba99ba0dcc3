import { readFileSync } from 'node:fs';
import { type Child, startChild } from '#testkit/programs/child.ts';
import { readCpu, toSpentUs } from '#testkit/programs/process-tree.ts';

/** A load on a port; native/load-driver.c describes the modes. */
export interface Load {
  readonly mode: 'closed' | 'open' | 'paced' | 'idle';
  readonly path: string;
  readonly bodyFile: string;
  readonly connections: number;
  readonly headers: readonly string[];
  readonly warmMs: number;
  readonly runMs: number;
  /** Requests per second; only of `open`. */
  readonly ratePerSecond?: number;
}

/** The counts of the load driver, and the CPU time of the measured process tree. */
export interface Outcome {
  readonly requests: number;
  readonly errors: number;
  readonly events: number;
  readonly seconds: number;
  readonly p50Us: number;
  readonly p99Us: number;
  readonly maxUs: number;
  readonly cpuUs: number;
}

/** The target of a load: the driver, a port, and the process tree whose CPU counts (0: none). */
export interface Aim {
  readonly driver: string;
  readonly port: number;
  readonly pid: number;
  readonly logPath: string;
}

/** Starts the load driver; its first line is "start". */
export function startLoad({ driver, port, logPath }: Aim, load: Load): Child {
  const args = [load.mode, port, '--path', load.path, '--body', load.bodyFile];
  args.push('--connections', load.connections, '--warm-ms', load.warmMs, '--run-ms', load.runMs);
  if (load.ratePerSecond !== undefined) args.push('--rate', load.ratePerSecond);
  for (const header of load.headers) args.push('--header', header);
  return startChild({ file: driver, args: args.map(String) }, { logPath, stdout: 'lines' });
}

/** Loads a port for the time of the load. Throws when more than 1% of the requests failed. */
export async function runLoad(aim: Aim, load: Load): Promise<Outcome> {
  await using child = startLoad(aim, load);
  await readDriverLine(child, aim.logPath);
  const cpuBefore = readCpu(aim.pid);
  const outcome: Omit<Outcome, 'cpuUs'> = JSON.parse(await readDriverLine(child, aim.logPath));
  const cpuUs = toSpentUs(cpuBefore, readCpu(aim.pid));
  if (outcome.errors > outcome.requests / 100)
    throw new Error(`${outcome.errors} requests failed, ${outcome.requests} did not`);
  if (outcome.requests + outcome.events === 0) throw new Error('nothing came back in time');
  return { ...outcome, cpuUs };
}

/** The last line of the driver's log is the reason of its failure, such as `a stream ended`. */
async function readDriverLine(child: Child, logPath: string): Promise<string> {
  try {
    return await child.nextLine();
  } catch (error) {
    const reason = readFileSync(logPath, 'utf8').trimEnd().split('\n').at(-1);
    throw new Error(reason || 'the load driver ended', { cause: error });
  }
}
