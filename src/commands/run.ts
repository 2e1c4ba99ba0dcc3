import { ConfigError } from '../config/config-error.ts';
import { StartError } from '../start-error.ts';
import { readVersion } from '../version.ts';
import { type Command, type Invocation, UsageError } from './command-line/command.ts';
import { normalizeArgs } from './command-line/options.ts';

const USAGE = `Usage: gateway -config FILE          serve (or set SVC_CONFIG)
       gateway check -config FILE    validate a configuration and print it with all defaults, secrets masked
       gateway replicas | stats      show the replicas or the export counters of a running gateway
       gateway top                   show both and the traffic, live; q quits
       gateway drain NAME            send no new requests to a replica
       gateway undrain NAME          send requests to it again
       gateway gateways              show the gateways that share their drains with this one
       gateway forget NAME           stop waiting for a gateway that has stopped for good
       gateway export-trace FILE...  convert exported records to a trace for replay, or summarize prefix caching
       gateway simulate              serve a simulated replica (see gateway simulate --help)
       gateway quickstart            run a demo: a gateway and two simulated replicas
       gateway --help | --version

The commands from replicas to forget find the gateway by -config FILE, SVC_CONFIG or --admin URL, and accept --json.
drain and undrain accept --reason TEXT and --wait [--timeout 10m]. With --wait, drain exits with 0 only when the replica
is safe to stop, and undrain only when the replica answers. If no other replica of one of its models answers, drain asks
first, or refuses without a terminal and with --unless-last; --force drains in any case. top accepts --once and --interval 1s.

Environment:
  SVC_CONFIG        path of the configuration file if -config is not given
  SVC_ADMIN_TOKEN   bearer token of the admin API; without it the admin API refuses every call
  SVC_HASH_SALT     salt of the prefix hashes; without it the gateway creates one in state_dir
  OTEL_*            OTLP address, headers, TLS and resource, as OpenTelemetry specifies them

Exit codes: 0 success; 1 failure, or something was cut short; 2 wrong command line or configuration.
`;

/** Each command is imported when it is called, so that `--version` does not load what serving needs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  check: async () => (await import('./check.ts')).check,
  replicas: async () => (await import('./replicas.ts')).replicas,
  stats: async () => (await import('./stats.ts')).stats,
  drain: async () => (await import('./drain.ts')).drain,
  undrain: async () => (await import('./undrain.ts')).undrain,
  gateways: async () => (await import('./gateways.ts')).gateways,
  forget: async () => (await import('./forget.ts')).forget,
  top: async () => (await import('./top.ts')).top,
  'export-trace': async () => (await import('./export-trace.ts')).exportTrace,
  simulate: async () => (await import('./simulate.ts')).simulate,
  quickstart: async () => (await import('./quickstart.ts')).quickstart,
};

const loadServe = async () => (await import('./serve.ts')).serve;

/** These commands print a `--help` of their own. */
const WITH_OWN_HELP = new Set(['simulate', 'quickstart', 'export-trace']);

/**
 * Runs a command line (`invocation.args`, without node and script) and returns the exit code: 2 for a wrong command
 * line or configuration, 1 for a failure.
 */
export async function run(invocation: Invocation): Promise<number> {
  const [first, ...rest] = normalizeArgs(invocation.args);
  const name = first === undefined || first.startsWith('-') ? null : first;
  const args = name === null ? normalizeArgs(invocation.args) : rest;
  try {
    if (name === 'help' || (hasOption(args, '--help', '-h') && !WITH_OWN_HELP.has(name ?? ''))) {
      invocation.stdout.write(USAGE);
      return 0;
    }
    if (name === null && hasOption(args, '--version')) {
      invocation.stdout.write(`${await readVersion()}\n`);
      return 0;
    }
    const command = await loadCommand(name);
    return await command({ ...invocation, args });
  } catch (error) {
    return report(error, invocation);
  }
}

/** Whether one of the options is given before a `--`. */
function hasOption(args: readonly string[], ...options: readonly string[]): boolean {
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
