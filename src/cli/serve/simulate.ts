import { once } from 'node:events';
import { orStartError, StartError } from '#base';
import { memberOf, parseJson } from '#base/parsed';
import { openAdmin } from '#cli/admin-client';
import { COMMANDS, parseArguments } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import {
  createSimulatedReplica,
  DEFAULT_SETTINGS,
  isScene,
  SCENE_TEXTS,
  SCENES,
  SIMULATED_ENGINES,
  type SimulatedReplicaSettings,
} from '#simulate';

/**
 * `gateway simulate`: serves a simulated replica until the first signal; with `scene`, lets a running one play a scene.
 * Throws a UsageError or a StartError.
 */
export async function simulate(invocation: Invocation): Promise<number> {
  const { values, positionals } = parseArguments(invocation.args, COMMANDS.simulate.options);
  const [action, ...words] = positionals;
  const hasScene = action === 'scene';
  const surplus = Object.keys(values).find((option) => SCENE_OPTIONS.includes(option) !== hasScene);
  if (surplus !== undefined)
    throw new UsageError(`option '--${surplus}' ${hasScene ? 'does not go' : 'only goes'} with scene`);
  if (hasScene) return await playScene(words, values, invocation);
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

const TIMEOUT_MS = 5_000;

/** They say which gateway knows the replica. */
const SCENE_OPTIONS: readonly string[] = ['admin', 'config'];
type SceneOptions = Pick<SimulateValues, 'admin' | 'config'>;

/** `gateway simulate scene SCENE REPLICA`: lets a running simulated replica play a scene. Throws a UsageError or a StartError. */
async function playScene(
  words: readonly string[],
  options: SceneOptions,
  { env, stdout }: Pick<Invocation, 'env' | 'stdout'>,
): Promise<number> {
  const [scene = '', replica = '', surplus] = words;
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  if (!isScene(scene)) throw new UsageError(`the scene must be one of ${SCENES.join(', ')}`);
  if (replica === '') throw new UsageError('REPLICA is missing: its URL, or its name in a running gateway');
  const url = await findUrl(replica, options, env);
  const answer = await send(url, scene);
  if (memberOf(answer, 'scene') !== scene) throw new StartError(`${url} is no simulated replica`);
  stdout.write(`${toOneLine(String(memberOf(answer, 'name')))} is ${scene} now: it ${SCENE_TEXTS[scene]}\n`);
  return 0;
}

/** The URL that was given, or that the gateway has for the name. Without a trailing slash. */
async function findUrl(replica: string, options: SceneOptions, env: Invocation['env']): Promise<string> {
  if (/^https?:\/\//.test(replica) && URL.canParse(replica)) return new URL(replica).origin;
  const client = await openAdmin(options, env);
  const answer = await client.call('GET', `/admin/replicas/${encodeURIComponent(replica)}`);
  const url = memberOf(memberOf(answer, 'replica'), 'url');
  if (typeof url !== 'string' || !URL.canParse(url))
    throw new StartError(`the gateway has no URL of ${replica}`);
  return new URL(url).origin;
}

/** Returns the parsed answer; undefined if it is no JSON, or the server refuses. */
async function send(url: string, scene: string): Promise<unknown> {
  try {
    const signal = AbortSignal.timeout(TIMEOUT_MS);
    const response = await fetch(`${url}/simulate/scene/${scene}`, {
      method: 'POST',
      redirect: 'error',
      signal,
    });
    return response.ok ? parseJson(await response.text()) : undefined;
  } catch (error) {
    throw new StartError(`cannot reach ${url}`, error);
  }
}
