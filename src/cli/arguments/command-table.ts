import type { CommandSpec } from './command-spec.ts';
import { OPERATOR_COMMANDS } from './operator-commands.ts';
import { CONFIG_OPTION, JSON_OPTION } from './shared-options.ts';

const SERVE = 'Serve';
const TRY = 'Try, simulate, replay';
const CHECK_RECORDS = 'Check what was recorded';
const ABOUT = 'About this program';

/** The shells that completions are written for. */
export const SHELLS = ['bash', 'zsh', 'fish'] as const;

/**
 * The one table of commands, by name. It loads no command, so that help and completions are quick. `serve` is also what
 * a command line without a command does.
 */
export const COMMANDS = {
  serve: {
    group: SERVE,
    summary: 'serve; gateway without a command does the same',
    details: [
      'It serves until SIGINT or SIGTERM. The exit code is 0 if no request was cut and every record was delivered.',
    ],
    options: CONFIG_OPTION,
    examples: [
      { line: 'gateway -c gateway.yaml', does: 'serves' },
      { line: 'SVC_CONFIG=gateway.yaml gateway', does: 'does the same' },
    ],
  },
  check: {
    group: SERVE,
    summary: 'validate a configuration and print it with all defaults, secrets masked',
    details: [
      'It also reads the files that the configuration and the environment name; the exit code is 2 if one is unusable. It says if health checks are off.',
      'With --connect it tries every replica, the collector and Redis instead, and says what to change. The exit code is 1 if one of them is unusable.',
    ],
    options: {
      ...CONFIG_OPTION,
      connect: { type: 'boolean', help: 'try the servers that the configuration names' },
      json: { type: 'boolean', help: 'print what --connect finds as JSON' },
    },
    examples: [
      { line: 'gateway check -c gateway.yaml', does: 'prints it, or all its mistakes' },
      { line: 'gateway check -c gateway.yaml --connect', does: 'shows which servers answer' },
    ],
  },
  key: {
    group: SERVE,
    summary: 'make an API key for a client, and its entry for the configuration',
    details: [
      'It prints the key, and the entry with the SHA-256 of the key.',
      'With --statement, and without NAME, it makes the key of statements of usage instead (docs/statements.md): it writes the key to a file that only you can read, and prints its public part.',
    ],
    argument: { name: 'create NAME', help: 'the name of the client in records', words: ['create'] },
    options: {
      statement: { type: 'boolean', help: 'make a key for statements: see gateway statement' },
      output: {
        type: 'string',
        value: 'FILE',
        help: 'with --statement: where to write the key (default statement-key.pem); never overwrites a file',
      },
      tenant: { type: 'string', value: 'TEXT', help: 'the tenant of its requests (default: its name)' },
      feature: {
        type: 'string',
        value: 'TEXT',
        help: "the feature of its requests (default: the client's header)",
      },
      model: {
        type: 'string',
        multiple: true,
        value: 'NAME',
        help: 'a model it may use; may be repeated (default: all)',
      },
      expires: { type: 'string', value: 'TIME', help: 'when the key expires (default: never)' },
      'max-inflight': {
        type: 'string',
        value: 'N',
        help: 'how many requests may run at the same time (default: no limit)',
      },
      'requests-per-minute': {
        type: 'string',
        value: 'N',
        help: 'requests per minute (default: no limit)',
      },
      'tokens-per-minute': { type: 'string', value: 'N', help: 'tokens per minute (default: no limit)' },
      ...JSON_OPTION,
    },
    examples: [
      { line: 'gateway key create search-team --tenant search', does: 'makes a key for all models' },
      {
        line: 'gateway key create batch --model llama --expires 2027-01-31',
        does: 'makes a key for one model',
      },
      { line: 'gateway key create --statement', does: 'makes a key to sign statements with' },
    ],
  },
  ...OPERATOR_COMMANDS,
  quickstart: {
    group: TRY,
    summary: 'run a demo: a gateway and two simulated replicas',
    details: [
      'It prints a line for each request. Records go to a file in ./state, or to a collector if OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is set. Without SVC_ADMIN_TOKEN it creates a token.',
      'On a terminal, keys start sample traffic, drain a replica, and make another one slow, failing, frozen or loading.',
    ],
    options: {
      listen: {
        type: 'string',
        value: 'HOST:PORT',
        help: 'where clients connect (default 127.0.0.1:8080)',
      },
      'admin-listen': {
        type: 'string',
        value: 'HOST:PORT',
        help: 'where the admin API listens (default 127.0.0.1:9090)',
      },
    },
    examples: [{ line: 'gateway quickstart', does: 'starts it, and prints what to try' }],
  },
  simulate: {
    group: TRY,
    summary: 'serve a simulated replica, or make a running one slow or failing',
    details: [
      'With `scene` it makes a running simulated replica play one of these, until the next: normal; slow; failing (500, broken streams); frozen (open connections, and no bytes); loading (503, as an engine that loads its model). REPLICA is its URL, or its name in the gateway of --admin or --config.',
    ],
    argument: {
      name: 'scene SCENE REPLICA',
      help: 'what a running simulated replica plays from now on',
      isOptional: true,
      words: ['scene', 'normal', 'slow', 'failing', 'frozen', 'loading'],
    },
    options: {
      ...CONFIG_OPTION,
      admin: {
        type: 'string',
        value: 'URL',
        help: 'with scene: the admin API of the gateway that knows REPLICA',
      },
      port: { type: 'string', value: 'N', help: 'port to listen on; 0 picks a free port (default 0)' },
      host: { type: 'string', value: 'HOST', help: 'address to listen on (default 127.0.0.1)' },
      model: {
        type: 'string',
        multiple: true,
        value: 'NAME',
        help: 'model to serve; may be repeated (default demo)',
      },
      engine: {
        type: 'string',
        value: 'ENGINE',
        help: 'the engine whose format it speaks: vllm, llamacpp, openai (default vllm)',
        words: ['vllm', 'llamacpp', 'openai'],
      },
      ttft: { type: 'string', value: 'DURATION', help: 'mean time to the first token (default 80ms)' },
      gap: {
        type: 'string',
        value: 'DURATION',
        help: 'mean gap between tokens; 0ms sends them all at once (default 20ms)',
      },
      tokens: {
        type: 'string',
        value: 'N',
        help: 'tokens per response, unless the request limits them (default 32)',
      },
      'error-rate': {
        type: 'string',
        value: 'R',
        help: 'share of requests that fail, from 0 to 1 (default 0)',
      },
      name: { type: 'string', value: 'NAME', help: 'name of the replica (default simulated)' },
      seed: { type: 'string', value: 'N', help: 'seed of the random numbers (default 1)' },
    },
    examples: [
      { line: 'gateway simulate --port 8000 --model llama', does: 'serves one model' },
      { line: 'gateway simulate --port 8001 --error-rate 0.3', does: 'fails three of ten requests' },
      { line: 'gateway simulate scene frozen http://127.0.0.1:8001', does: 'freezes it' },
    ],
  },
  'export-trace': {
    group: TRY,
    summary: 'turn exported records into a trace for replay, or summarize prefix caching',
    details: [
      "It writes a trace in Mooncake's format for replay tools (docs/ledger.md). The records come from export.to: file or a Collector's file exporter; - reads standard input.",
      'Records contain hashes of text, not of tokens, so the trace estimates which token blocks two requests share.',
    ],
    argument: { name: 'RECORDS.jsonl', help: 'files of records', isRepeatable: true },
    options: {
      output: {
        type: 'string',
        value: 'FILE',
        help: 'write the trace to FILE, not to standard output',
      },
      summary: {
        type: 'boolean',
        help: 'print how much of the input was cached, and how much could have been, for each replica; a trace is then written only with --output',
      },
      json: { type: 'boolean', help: 'print the summary as JSON' },
      model: { type: 'string', value: 'NAME', help: 'only requests for this model' },
      replica: { type: 'string', value: 'NAME', help: 'only requests to this replica' },
      'block-size': {
        type: 'string',
        value: 'N',
        help: 'tokens per id of the trace (default 512, as in the published traces)',
      },
      'block-chars': {
        type: 'string',
        value: 'N',
        help: 'characters per prefix hash: prefix_hash.block_chars (default 512)',
      },
      'chars-per-token': {
        type: 'string',
        value: 'N',
        help: 'average characters per token (default 4; --summary prints the measured value)',
      },
    },
    examples: [
      { line: 'gateway export-trace state/records*.jsonl >trace.jsonl', does: 'writes a trace' },
      {
        line: 'gateway export-trace --summary state/records*.jsonl',
        does: 'prints the cached share of the input',
      },
    ],
  },
  verify: {
    group: CHECK_RECORDS,
    summary: 'prove that all records are there, once and unchanged',
    details: [
      "FILE holds records: from a Collector's file exporter, from export.to: file or from the spool, in any order, rotated or compressed (gzip, zstd), of one or several gateways. - reads standard input. With export.ledger, they are compared with what the gateway says of them (docs/ledger.md).",
      'With --statement it uses the records to prove a statement of usage instead: it says which are missing, doubled, changed, or of another tenant (docs/statements.md).',
      'Exit codes: 0 everything is proven, 1 a record is missing, doubled, changed or unproven, 2 nothing could be verified.',
    ],
    argument: { name: 'FILE', help: 'files of records', isRepeatable: true },
    options: {
      partial: {
        type: 'boolean',
        help: 'accept files with a part of the records, such as one day, or of a running gateway',
      },
      sums: {
        type: 'string',
        value: 'FILE',
        help: "compare a backend's sums (JSON; - for standard input) with the ledger spans in FILE",
      },
      statement: {
        type: 'string',
        value: 'FILE',
        help: 'prove this statement (- for standard input) with the records in FILE',
      },
      'public-key': {
        type: 'string',
        value: 'KEY',
        help: 'with --statement: the key it must be signed with, in base64 or as a file (default: any)',
      },
      json: { type: 'boolean', help: 'print JSON' },
    },
    examples: [
      { line: 'gateway verify records*.jsonl*', does: 'says whether all records are there' },
      {
        line: 'gateway verify --statement acme-2026-11.json --public-key seller.pem records*.jsonl*',
        does: 'proves a statement',
      },
      { line: 'gateway verify --partial --json records.jsonl', does: 'checks a running gateway, as JSON' },
      {
        line: 'gateway verify --sums - ledger.jsonl',
        does: 'compares sums of a backend with the ledger',
      },
    ],
  },
  help: {
    group: ABOUT,
    summary: 'explain a command, its options and examples',
    argument: { name: 'COMMAND', help: 'a command; none: lists all', isOptional: true, words: 'command' },
    options: {},
    examples: [{ line: 'gateway help drain', does: 'does the same as gateway drain --help' }],
  },
  completion: {
    group: ABOUT,
    summary: 'print the completions for a shell: commands, options, names of replicas',
    details: [
      'It completes names of replicas if the address of a running gateway and a token are in the environment.',
    ],
    argument: { name: 'SHELL', help: SHELLS.join(', '), words: SHELLS },
    options: {},
    examples: [
      { line: 'source <(gateway completion bash)', does: 'in ~/.bashrc: completes in bash' },
      { line: 'source <(gateway completion zsh)', does: 'in ~/.zshrc, after compinit: completes in zsh' },
      {
        line: 'gateway completion fish >~/.config/fish/completions/gateway.fish',
        does: 'completes in fish',
      },
    ],
  },
  version: {
    group: ABOUT,
    summary: 'print the versions of the gateway and of Node, and the platform',
    options: JSON_OPTION,
    examples: [{ line: 'gateway --version', does: 'prints the version alone' }],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;

/** The name of a command. */
export type CommandName = keyof typeof COMMANDS;

/** The names of all commands, in the order of the table. */
export const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[];

/** Whether a command has this name. Every object inherits names such as `constructor`. */
export function isCommandName(name: string): name is CommandName {
  return Object.hasOwn(COMMANDS, name);
}
