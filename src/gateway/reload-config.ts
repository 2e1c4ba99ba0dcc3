import type { ReloadOutcome } from '#admin';
import { type createInTurn, StartError } from '#base';
import { type Config, ConfigError, planReload } from '#config';
import { type EnvironmentSecrets, findChangedSecrets, SecretError } from '#config/secrets';
import type { Log } from '#otel/base';
import type { AdminAction } from '#otel/span';
import { type ReplicaChanges, TooManyReplicasError } from '#replicas/registry';

/** A configuration file that can be read again. */
export interface ConfigSource {
  /** The configuration that the gateway was started with. */
  readonly config: Config;
  /** Rejects with a ConfigError, or with a StartError when the file cannot be read. */
  readonly read: () => Promise<Config>;
  /** Its path, as the operator gave it. */
  readonly path: string;
  /** The configuration that was read last is in effect. Unset: nobody needs to know. */
  readonly adopted?: (() => void) | undefined;
  /** The paths of its files that differ from what is in effect. Unset: nobody knows. */
  readonly findChanged?: (() => Promise<readonly string[]>) | undefined;
  /** Reads the secrets of the environment again. Rejects with a SecretError. Unset: a reload keeps them. */
  readonly readSecrets?: (() => Promise<EnvironmentSecrets>) | undefined;
}

/** What applying a configuration has changed. */
interface AppliedConfig {
  readonly replicas: ReplicaChanges;
  /** The keys whose files have other contents than before. */
  readonly changedFiles: ReadonlySet<string>;
}

/** What a reload works with. */
export interface ReloadCollaborators {
  /** Reloads run in turn with what else changes the configuration in effect. */
  readonly inTurn: ReturnType<typeof createInTurn>;
  /** Those of the start. */
  readonly secrets: EnvironmentSecrets;
  /** Applies another configuration, all of it or nothing; resolves when every worker uses it. */
  readonly apply: (config: Config, secrets: EnvironmentSecrets) => Promise<AppliedConfig>;
  readonly onAction: (action: AdminAction) => void;
  /** Called with what came of each reload. */
  readonly onOutcome: (outcome: ReloadOutcome) => void;
  readonly log: Log;
}

/**
 * Creates the function that reloads the configuration of a running gateway. Calls run one at a time, in order, and each
 * reads the file when it starts. `tokenName`: whose token asked for it; null for a signal. Without a source every call
 * is refused. Rejects only on a defect.
 */
export function createReload(
  source: ConfigSource | undefined,
  { inTurn, secrets, apply, onAction, onOutcome, log }: ReloadCollaborators,
): (tokenName: string | null) => Promise<ReloadOutcome> {
  let inEffect = source?.config;
  let secretsInEffect = secrets;

  async function reload(tokenName: string | null): Promise<ReloadOutcome> {
    const startEpochMs = Date.now();
    const outcome = await attempt();
    if (outcome.kind === 'refused') {
      const { file, problems } = outcome;
      log.error(
        { file, problems, token_name: tokenName },
        'configuration refused: the former one stays in effect',
      );
    } else {
      const { changed, needsRestart, replicas } = outcome;
      const level = needsRestart.length === 0 ? 'info' : 'warn';
      log[level](
        { changed, needs_restart: needsRestart, replicas, token_name: tokenName },
        'configuration reloaded',
      );
    }
    onOutcome(outcome);
    onAction({ action: 'reload', done: toCounts(outcome), tokenName, startEpochMs });
    return outcome;
  }

  const toRefused = (problems: readonly string[]): ReloadOutcome => ({
    kind: 'refused',
    file: source?.path ?? null,
    problems,
  });

  async function attempt(): Promise<ReloadOutcome> {
    if (source === undefined || inEffect === undefined)
      return toRefused(['the configuration was not read from a file']);
    const [next, given] = await Promise.allSettled([
      source.read(),
      source.readSecrets?.() ?? secretsInEffect,
    ]);
    if (next.status === 'rejected' || given.status === 'rejected') {
      const failed = [next, given].filter((each) => each.status === 'rejected');
      return toRefused(failed.flatMap(({ reason }) => toProblems(reason)));
    }
    try {
      const plan = planReload(inEffect, next.value);
      // A salt that needs a restart is reported by each reload until then.
      const nextSecrets = { ...given.value, hashSalt: secretsInEffect.hashSalt };
      const { replicas, changedFiles } = await apply(plan.config, nextSecrets);
      const found = findChangedSecrets(secretsInEffect, given.value);
      inEffect = plan.config;
      source.adopted?.();
      secretsInEffect = nextSecrets;
      return {
        kind: 'reloaded',
        changed: [...new Set([...plan.changed, ...changedFiles, ...found.changed])],
        needsRestart: [...plan.needsRestart, ...found.needsRestart],
        replicas,
      };
    } catch (error) {
      return toRefused(toProblems(error));
    }
  }

  return (tokenName) => inTurn(() => reload(tokenName));
}

/** The problems that the file's author can fix. Throws any other error again. */
function toProblems(error: unknown): string[] {
  if (error instanceof ConfigError) return error.problems.map(toLine);
  const isKnown = [StartError, SecretError, TooManyReplicasError].some((known) => error instanceof known);
  if (isKnown && error instanceof Error) return [error.message];
  throw error;
}

function toLine({ line, keyPath, text }: ConfigError['problems'][number]): string {
  return `line ${line}: ${keyPath === '' ? '' : `${keyPath}: `}${text}`;
}

function toCounts(outcome: ReloadOutcome) {
  if (outcome.kind === 'refused') return null;
  const { added, changed, removed } = outcome.replicas;
  const counts = { added: added.length, changed: changed.length, removed: removed.length };
  return { changedKeys: outcome.changed, ...counts };
}
