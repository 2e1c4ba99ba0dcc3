import { StartError, UnusableSettingError } from '#base';
import { readVersion } from '#base/embedded';
import { type CommandName, isCommandName, normalizeArgs } from '#cli/arguments';
import { type Command, type Invocation, UsageError } from '#cli/command';

/** Each command is imported when it is called, so that `--version` does not load what serving needs. */
const LOADERS: Readonly<Record<CommandName, () => Promise<Command>>> = {
  serve: async () => (await import('./serve/serve.ts')).serve,
  check: async () => (await import('./check.ts')).check,
  key: async () => (await import('./serve/key.ts')).key,
  replicas: async () => (await import('./replicas.ts')).replicas,
  status: async () => (await import('./operate/status/status.ts')).status,
  health: async () => (await import('./operate/health.ts')).health,
  'sign-in': async () => (await import('./operate/sign-in.ts')).signIn,
  top: async () => (await import('./operate/top/top.ts')).top,
  records: async () => (await import('./operate/records.ts')).records,
  usage: async () => (await import('./history/usage.ts')).usage,
  statement: async () => (await import('./history/statement.ts')).statement,
  timeline: async () => (await import('./history/timeline.ts')).timeline,
  stats: async () => (await import('./operate/stats.ts')).stats,
  verdict: async () => (await import('./operate/verdict.ts')).verdict,
  compare: async () => (await import('./operate/compare/compare.ts')).compare,
  gateways: async () => (await import('./operate/gateways.ts')).gateways,
  drain: async () => (await import('./drains/drain.ts')).drain,
  undrain: async () => (await import('./drains/undrain.ts')).undrain,
  rollout: async () => (await import('#rollout')).rollout,
  rollouts: async () => (await import('./operate/rollouts/rollouts.ts')).rollouts,
  reload: async () => (await import('./operate/reload.ts')).reload,
  forget: async () => (await import('./operate/forget.ts')).forget,
  quickstart: async () => (await import('./serve/quickstart/quickstart.ts')).quickstart,
  simulate: async () => (await import('./serve/simulate.ts')).simulate,
  'export-trace': async () => (await import('./export-trace.ts')).exportTrace,
  verify: async () => (await import('./verify.ts')).verify,
  help: loadHelp,
  completion: async () => (await import('#cli/arguments')).completion,
  version: async () => (await import('./version.ts')).version,
};

/** Commands whose exit code says what they have found: without an answer it is this one, whatever the reason. */
const NO_ANSWER_CODES: Readonly<Partial<Record<CommandName, number>>> = { status: 3 };

/** What the scripts of `gateway completion` call. It is not for people, so it is not in the table of commands. */
const COMPLETE = '__complete';

/**
 * Runs a command line (`invocation.args`, without node and script) and returns the exit code: 2 for a wrong command
 * line or configuration, 1 for a failure, unless the command has a code of its own for both.
 */
export async function run(invocation: Invocation): Promise<number> {
  const [first, ...rest] = invocation.args;
  if (first === COMPLETE) {
    return await (await import('#cli/arguments')).complete({ ...invocation, args: rest });
  }
  const isNamed = first !== undefined && !first.startsWith('-');
  const name = isNamed ? first : 'serve';
  const args = normalizeArgs(isNamed ? rest : invocation.args);
  try {
    if (!isCommandName(name)) throw (await import('#cli/arguments')).toUnknownCommandError(name);
    if (hasOption(args, '--help', '-h')) {
      return await (await loadHelp())({ ...invocation, args: isNamed ? [name] : [] });
    }
    if (!isNamed && hasOption(args, '--version')) {
      invocation.stdout.write(`${await readVersion()}\n`);
      return 0;
    }
    const command = await LOADERS[name]();
    return await command({ ...invocation, args });
  } catch (error) {
    const known = isNamed && isCommandName(name) ? name : null;
    const exitCode = await report(error, known, invocation);
    return known === null ? exitCode : (NO_ANSWER_CODES[known] ?? exitCode);
  }
}

async function loadHelp(): Promise<Command> {
  return (await import('#cli/arguments')).help;
}

/** Whether one of the options is given before a `--`. */
function hasOption(args: readonly string[], ...options: readonly string[]): boolean {
  const end = args.indexOf('--');
  return args.slice(0, end === -1 ? undefined : end).some((arg) => options.includes(arg));
}

async function report(error: unknown, name: CommandName | null, { stderr }: Invocation): Promise<number> {
  if (error instanceof UsageError) {
    stderr.write(`gateway: ${error.message}\nTry 'gateway ${name === null ? '--help' : `help ${name}`}'.\n`);
    return 2;
  }
  if (error instanceof StartError) {
    stderr.write(`gateway: ${error.message}\n`);
    // What the admin API finds wrong in a call is wrong in the command line.
    const isWrong = 'code' in error && error.code === 'invalid_request';
    return isWrong || error instanceof UnusableSettingError ? 2 : 1;
  }
  // What has thrown them has loaded them already.
  const [{ ConfigError }, { SecretError }] = await Promise.all([
    import('#config'),
    import('#config/secrets'),
  ]);
  const isOfFile = error instanceof ConfigError;
  if (!isOfFile && !(error instanceof SecretError)) throw error;
  // What is wrong in a file begins with its name.
  stderr.write(`${isOfFile ? '' : 'gateway: '}${error.message}\n`);
  return 2;
}
