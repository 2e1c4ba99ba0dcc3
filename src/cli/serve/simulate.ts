import { once } from 'node:events';
import { orStartError } from '#base';
import { COMMANDS, parseArguments } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import {
  createSimulatedReplica,
  DEFAULT_SETTINGS,
  SIMULATED_ENGINES,
  type SimulatedReplicaSettings,
} from '#simulate';
import { playScene } from './scene.ts';

/**
 * `gateway simulate`: serves a simulated replica until the first signal; with `scene`, lets a running one play a scene.
 * Throws a UsageError or a StartError.
 */
export async function simulate(invocation: Invocation): Promise<number> {
  const { values, positionals } = parseArguments(invocation.args, COMMANDS.simulate.options);
  const [action, ...words] = positionals;
  if (action === 'scene') return await playScene(words, values, invocation);
  if (action !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(action)}`);
  return await serveReplica(toSettings(values), invocation);
}

async function serveReplica(
  settings: SimulatedReplicaSettings,
  { stdout, signals }: Invocation,
): Promise<number> {
  const { host, port, name, models, engine } = settings;
  const stopped = signals.shutdown;
  const replica = createSimulatedReplica(settings);
  const { url } = await orStartError(`cannot listen on ${host}:${port}`, replica.start());
  stdout.write(`Replica ${name} (simulated ${engine}) serves ${models.join(', ')} on ${url}\n`);
  if (!stopped.aborted) await once(stopped, 'abort');
  await replica.close();
  return 0;
}

type SimulateValues = ReturnType<typeof parseArguments<typeof COMMANDS.simulate.options>>['values'];

function toSettings(values: SimulateValues): SimulatedReplicaSettings {
  const engine = SIMULATED_ENGINES.find((known) => known === (values.engine ?? DEFAULT_SETTINGS.engine));
  if (engine === undefined) throw new UsageError(`--engine must be one of ${SIMULATED_ENGINES.join(', ')}`);
  const numbers: Partial<Record<(typeof NUMBER_OPTIONS)[number]['setting'], number>> = {};
  for (const { name, setting, parse, expected } of NUMBER_OPTIONS) {
    const text = values[name];
    if (text === undefined) continue;
    const value = parse(text);
    if (value === null) throw new UsageError(`--${name} must be ${expected}`);
    numbers[setting] = value;
  }
  return {
    ...DEFAULT_SETTINGS,
    ...numbers,
    engine,
    host: values.host ?? DEFAULT_SETTINGS.host,
    name: values.name ?? DEFAULT_SETTINGS.name,
    models: values.model ?? DEFAULT_SETTINGS.models,
  };
}

const NUMBER_OPTIONS = [
  { name: 'port', setting: 'port', parse: integer(0, 65_535), expected: 'a port from 0 to 65535' },
  { name: 'ttft', setting: 'ttftMs', parse: durationMs, expected: 'a duration such as 80ms or 1.5s' },
  { name: 'gap', setting: 'gapMs', parse: durationMs, expected: 'a duration such as 20ms or 0ms' },
  {
    name: 'tokens',
    setting: 'tokens',
    parse: integer(1, 1_000_000),
    expected: 'an integer from 1 to 1000000',
  },
  { name: 'error-rate', setting: 'errorRate', parse: share, expected: 'a number from 0 to 1' },
  {
    name: 'seed',
    setting: 'seed',
    parse: integer(0, 2 ** 32 - 1),
    expected: 'an integer from 0 to 4294967295',
  },
] as const;

function integer(min: number, max: number): (text: string) => number | null {
  return (text) => {
    const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
    return value >= min && value <= max ? value : null;
  };
}

function share(text: string): number | null {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  return value >= 0 && value <= 1 ? value : null;
}

/** Parses `80ms`, `1.5s` or `0`, up to a day. */
function durationMs(text: string): number | null {
  const match = /^(\d+(?:\.\d+)?)(ms|s)$/.exec(text);
  if (match === null) return text === '0' ? 0 : null;
  const ms = Number(match[1]) * (match[2] === 's' ? 1000 : 1);
  return ms <= 86_400_000 ? ms : null;
}
