import { StartError } from '#base';
import { memberOf, parseJson } from '#base/parsed';
import { openAdmin } from '#cli/admin-client';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { isScene, SCENE_TEXTS, SCENES } from '#simulate';

const TIMEOUT_MS = 5_000;

/** The options that say which gateway knows the replica. */
interface SceneOptions {
  readonly admin?: string;
  readonly config?: string;
}

/** `gateway simulate scene SCENE REPLICA`: lets a running simulated replica play a scene. Throws a UsageError or a StartError. */
export async function playScene(
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
