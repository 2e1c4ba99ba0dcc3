import { ConfigError } from '../config/config-error.ts';
import { StartError } from '../start-error.ts';
import { type Command, type Invocation, UsageError } from './command-line/command.ts';
import { normalizeArgs } from './command-line/options.ts';
import { readVersion, USAGE } from './help.ts';

/** Loaded when called for, so that `--version` does not wait for what serving needs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  check: async () => (await import('./check.ts')).check,
  replicas: async () => (await import('./replicas.ts')).replicas,
  stats: async () => (await import('./stats.ts')).stats,
  drain: async () => (await import('./drain.ts')).drain,
  undrain: async () => (await import('./undrain.ts')).undrain,
  gateways: async () => (await import('./gateways.ts')).gateways,
  forget: async () => (await import('./gateways.ts')).forget,
  top: async () => (await import('./top.ts')).top,
  'export-trace': async () => (await import('./export-trace.ts')).exportTrace,
  simulate: async () => (await import('./simulate.ts')).simulate,
  quickstart: async () => (await import('./quickstart.ts')).quickstart,
};

const loadServe = async () => (await import('./serve.ts')).serve;

/** Commands with more to tell than the common usage answer `--help` themselves. */
const HELPFUL = new Set(['simulate', 'quickstart', 'export-trace']);

/**
 * Runs the command line that `invocation.args` holds, without node and script, and tells the exit code:
 * 2 for a wrong command line or configuration, 1 for what cannot start or was refused.
 */
export async function run(invocation: Invocation): Promise<number> {
  const [first, ...rest] = normalizeArgs(invocation.args);
  const name = first === undefined || first.startsWith('-') ? null : first;
  const args = name === null ? normalizeArgs(invocation.args) : rest;
  try {
    if (name === 'help' || (isAsked(args, '--help', '-h') && !HELPFUL.has(name ?? ''))) {
      invocation.stdout.write(USAGE);
      return 0;
    }
    if (name === null && isAsked(args, '--version')) {
      invocation.stdout.write(`${await readVersion()}\n`);
      return 0;
    }
    const command = await loadCommand(name);
    return await command({ ...invocation, args });
  } catch (error) {
    return report(error, invocation);
  }
}

/** Whether an option is given, up to a `--`. */
function isAsked(args: readonly string[], ...options: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).some((arg) => options.includes(arg));
}

async function loadCommand(name: string | null): Promise<Command> {
  if (name === null) return loadServe();
  if (!Object.hasOwn(COMMANDS, name)) throw new UsageError(`unknown command ${JSON.stringify(name)}`);
  return (COMMANDS[name] ?? loadServe)();
}

function report(error: unknown, { stderr }: Invocation): number {
  if (error instanceof UsageError) {
    stderr.write(`gateway: ${error.message}\nTry 'gateway --help'.\n`);
    return 2;
  }
  if (error instanceof ConfigError) {
    stderr.write(`${error.message}\n`);
    return 2;
  }
  if (error instanceof StartError) {
    stderr.write(`gateway: ${error.message}\n`);
    return 1;
  }
  throw error;
}
