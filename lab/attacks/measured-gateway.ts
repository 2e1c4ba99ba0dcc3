import { readdir, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChild } from '#testkit/programs/child.ts';
import { readPeakBytes, resetPeak } from '#testkit/programs/process-memory.ts';

const MAIN = join(import.meta.dirname, '../../src/main.ts');
/** On SIGUSR2 it prints the longest turn of the event loop since the last time. */
const WATCH_LOOP = `
const delays = process.getBuiltinModule('perf_hooks').monitorEventLoopDelay({ resolution: 1 });
delays.enable();
process.on('SIGUSR2', () => {
  process.stdout.write(JSON.stringify({ msg: 'stall', ms: delays.max / 1e6 }) + '\\n');
  delays.reset();
});`;

/** What an attack has cost, and whether it has shown a defect. */
export interface Cost {
  /** How much the resident memory of the gateway grew at its peak, against that before the attack. */
  readonly grownBytes: number;
  readonly longestTurnMs: number;
  /** What the log says of errors that nobody has foreseen. */
  readonly defects: readonly string[];
}

/** A gateway in a process of its own. */
export interface MeasuredGateway extends AsyncDisposable {
  readonly listen: string;
  readonly adminListen: string;
  /** How often the log says this message. */
  countMessages(message: string): number;
  /** How many sockets it has open. */
  countSockets(): Promise<number>;
  /** Acts, and measures what that costs the gateway. */
  measure<T>(act: () => Promise<T>): Promise<Cost & { readonly result: T }>;
}

/** The token of its admin API. */
export const ADMIN_TOKEN = 'token-of-the-attacked-admin-api';

/** Starts one with a configuration, which is written into a folder. Linux only. */
export async function startMeasuredGateway(config: object, folder: string): Promise<MeasuredGateway> {
  await using stack = new AsyncDisposableStack();
  const path = join(folder, 'gateway.yaml');
  await writeFile(path, JSON.stringify(config));
  const preload = `data:text/javascript,${encodeURIComponent(WATCH_LOOP)}`;
  const gateway = stack.use(
    startChild(
      {
        file: process.execPath,
        args: ['--import', preload, MAIN, '-config', path],
        env: { SVC_ADMIN_TOKEN: ADMIN_TOKEN },
        isIsolated: true,
      },
      { stdout: 'lines' },
    ),
  );
  const { listen, adminListen } = JSON.parse(
    await gateway.untilLine((line) => line.includes('"msg":"serving"')),
  );
  const { pid } = gateway;
  const takeLongestTurn = async (): Promise<number> => {
    const line = gateway.untilLine((each) => each.includes('"msg":"stall"'));
    process.kill(pid, 'SIGUSR2');
    return JSON.parse(await line).ms;
  };
  const started = stack.move();
  return {
    listen,
    adminListen,
    countMessages: (message) =>
      gateway.lines.filter((line) => line.includes(`"msg":${JSON.stringify(message)}`)).length,
    countSockets: () => countSockets(pid),
    async measure(act) {
      await takeLongestTurn();
      await resetPeak(pid);
      const before = readPeakBytes(pid);
      const from = gateway.lines.length;
      const result = await act();
      const grownBytes = readPeakBytes(pid) - before;
      const longestTurnMs = await takeLongestTurn();
      // A condition tells what is wrong around the gateway: that is no defect of its own.
      const isDefect = (line: string) => line.includes('"level":"error"') && !line.includes('"condition":');
      const defects = gateway.lines.slice(from).filter(isDefect);
      return { result, grownBytes, longestTurnMs, defects };
    },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function countSockets(pid: number): Promise<number> {
  const path = `/proc/${pid}/fd`;
  const targets = (await readdir(path)).map((fd) => readlink(join(path, fd)).catch(() => ''));
  return (await Promise.all(targets)).filter((target) => target.startsWith('socket:')).length;
}
