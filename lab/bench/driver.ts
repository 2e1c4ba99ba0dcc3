import { readFileSync } from 'node:fs';
import { type Child, startChild } from './child.ts';
import { readCpu, toSpentUs } from './process-tree.ts';

/** What load to put on a port; see native/load-driver.c for what the modes do. */
export interface Load {
  readonly mode: 'closed' | 'open' | 'paced' | 'idle';
  readonly path: string;
  readonly bodyFile: string;
  readonly connections: number;
  readonly headers: readonly string[];
  readonly warmMs: number;
  readonly runMs: number;
  /** Requests a second; only of `open`. */
  readonly ratePerSecond?: number;
}

/** What the load driver counted, and what the measured process tree spent meanwhile. */
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

/** Where a load goes: the driver, a port, and the process tree whose CPU counts (0: none). */
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
  return startChild({ file: driver, args: args.map(String) }, logPath, true);
}

/** The next line of a program of ours; throws when it has ended instead. */
export async function readLine(child: Child): Promise<string> {
  const next = await child.lines?.next();
  if (next === undefined || next.done) throw new Error('it ended before it had counted');
  return next.value;
}

/** Puts a load on a port for the time it asks for. Throws when more than one request in a hundred failed. */
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

/** The driver's last words, in its log, say what was wrong: `a stream ended`. */
async function readDriverLine(child: Child, logPath: string): Promise<string> {
  try {
    return await readLine(child);
  } catch (error) {
    const lastWords = readFileSync(logPath, 'utf8').trimEnd().split('\n').at(-1);
    throw new Error(lastWords || 'the load driver ended', { cause: error });
  }
}
