import { COMMAND_GROUPS, type CommandSpec, type OptionSpec } from './command-spec.ts';
import { COMMAND_NAMES, COMMANDS, type CommandName } from './command-table.ts';

/** The width of the help. */
const WIDTH = 100;

const ENVIRONMENT = `Environment:
  SVC_CONFIG          path of the configuration file if -config is not given
  SVC_ADMIN_TOKEN     bearer token for every call of the admin API; without any token the API is off
  SVC_OPERATOR_TOKEN  bearer token that also steers replicas, shadows and rollouts
  SVC_READ_TOKEN      bearer token that only reads: GETs and the dashboard
  SVC_DRAIN_TOKEN     bearer token that only drains and undrains certain replicas: vllm-*: TOKEN
  SVC_HASH_SALT       salt of the prefix hashes; without it the gateway creates one in state_dir
  SVC_…_FILE          for each of the five above: a file that holds the value, or several tokens
  STATE_DIRECTORY     directory that a relative state_dir is in, instead of that of the configuration file
  NO_COLOR            if it is not empty: no colour
  OTEL_EXPORTER_OTLP_HEADERS_FILE
                      a file that holds what OTEL_EXPORTER_OTLP_HEADERS would: credentials for the collector
  OTEL_*              OTLP address, headers, TLS and resource, as OpenTelemetry specifies them

Exit codes: 0 success; 1 failure, or something was cut short; 2 wrong command line, configuration, or file that they name.
`;

/** The help of the whole program: all commands by group. */
export function toOverviewHelp(): string {
  const width = Math.max(...COMMAND_NAMES.map((name) => name.length));
  const groups = COMMAND_GROUPS.map((group) => {
    const names = COMMAND_NAMES.filter((name) => COMMANDS[name].group === group);
    const rows = names.map((name) => `  ${name.padEnd(width)}  ${COMMANDS[name].summary}\n`);
    return `${group}:\n${rows.join('')}`;
  });
  return `Usage: gateway -config FILE            serve (or set SVC_CONFIG)
       gateway COMMAND [options]
       gateway help COMMAND            explain a command, with examples

${groups.join('\n')}
Commands for a running gateway find it by -config FILE, SVC_CONFIG or --admin URL, and accept --json.

${ENVIRONMENT}`;
}

/** The help of one command. */
export function toCommandHelp(name: CommandName): string {
  const { summary, details = [], argument, options, examples }: CommandSpec = COMMANDS[name];
  const rows: [string, string][] = [
    ...(argument === undefined ? [] : [[argument.name, argument.help] as [string, string]]),
    ...Object.entries(options).map(([option, spec]): [string, string] => [
      toOptionText(option, spec),
      spec.help,
    ]),
    ['-h, --help', 'print this help'],
  ];
  const width = Math.max(...rows.map(([left]) => left.length)) + 4;
  const optionText = rows.map(([left, right]) => wrap(`  ${left}`.padEnd(width), right, width)).join('');
  const exampleText = examples.map(({ line, does }) => `  ${line}\n      ${does}\n`).join('');
  const paragraphs = [toSentence(summary), ...details].map((paragraph) => wrap('', paragraph, 0));
  return `Usage: ${toUsage(name)}\n\n${paragraphs.join('\n')}\nOptions:\n${optionText}\nExamples:\n${exampleText}`;
}

/** How a command is called, such as `gateway drain NAME [options]`. */
export function toUsage(name: CommandName): string {
  const { argument, options }: CommandSpec = COMMANDS[name];
  const parts = [name === 'serve' ? 'gateway [serve]' : `gateway ${name}`];
  if (argument !== undefined) {
    const repeated = argument.isRepeatable ? `${argument.name} [...]` : argument.name;
    parts.push(argument.isOptional ? `[${repeated}]` : repeated);
  }
  if (Object.keys(options).length > 0) parts.push('[options]');
  return parts.join(' ');
}

/** An option as it is typed, such as `-c, --config FILE`. */
export function toOptionText(name: string, { short, value }: OptionSpec): string {
  const text = value === undefined ? `--${name}` : `--${name} ${value}`;
  return short === undefined ? text : `-${short}, ${text}`;
}

/** Makes a phrase a sentence. */
export function toSentence(phrase: string): string {
  return `${phrase.charAt(0).toUpperCase()}${phrase.slice(1)}.`;
}

/** Breaks a text into lines; the first begins with `first`, the others with as many spaces as `indent`. */
function wrap(first: string, text: string, indent: number): string {
  const lines: string[] = [];
  let line = first;
  let isEmpty = true;
  for (const word of text.split(' ')) {
    if (!isEmpty && line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = ' '.repeat(indent);
      isEmpty = true;
    }
    line += isEmpty ? word : ` ${word}`;
    isEmpty = false;
  }
  return `${[...lines, line].join('\n')}\n`;
}
