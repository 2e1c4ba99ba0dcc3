import type { AdminAction } from '#otel/span/admin-spans.ts';
import type { ReloadOutcome } from './admin/admin-services.ts';
import { type Config, toConfig } from './config/config.ts';
import { ConfigError, type ConfigProblem } from './config/config-error.ts';
import { planReload } from './config/reload-plan.ts';
import type { ConfigFile } from './config/schema.ts';
import { type ReplicaChanges, TooManyReplicasError } from './replicas/control/registry.ts';
import { StartError } from './start-error.ts';

/** A configuration file that can be read again. */
export interface ConfigSource {
  /** What the gateway was started with. */
  readonly file: ConfigFile;
  /** Rejects with a ConfigError, or with a StartError when the file cannot be read. */
  readonly read: () => Promise<ConfigFile>;
}

/** Whom a reload works with. A pino logger fits as `log`. */
export interface ReloadCollaborators {
  /** Takes over another configuration, whole or not at all; resolves when every worker goes by it. */
  readonly apply: (config: Config) => Promise<ReplicaChanges>;
  readonly onAction: (action: AdminAction) => void;
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;
}

/**
 * Creates the reload of a configuration: one at a time, in the order in which they were asked for. Each reads the
 * file when it is its turn. Without a source it is refused. Rejects only for what is a defect.
 */
export function createReload(
  source: ConfigSource | undefined,
  { apply, onAction, log }: ReloadCollaborators,
): () => Promise<ReloadOutcome> {
  let inEffect = source?.file;
  let last: Promise<unknown> = Promise.resolve();

  async function reload(): Promise<ReloadOutcome> {
    const startEpochMs = Date.now();
    const outcome = await attempt();
    if (outcome.kind === 'refused') {
      log.error({ problems: outcome.problems }, 'configuration refused');
    } else {
      const { changed, needsRestart, replicas } = outcome;
      const level = needsRestart.length === 0 ? 'info' : 'warn';
      log[level]({ changed, needs_restart: needsRestart, replicas }, 'configuration reloaded');
    }
    onAction({ action: 'reload', done: toCounts(outcome), startEpochMs });
    return outcome;
  }

  async function attempt(): Promise<ReloadOutcome> {
    if (source === undefined || inEffect === undefined) return NO_SOURCE;
    try {
      const plan = planReload(inEffect, await source.read());
      const replicas = await apply(toConfig(plan.file));
      inEffect = plan.file;
      return { kind: 'reloaded', changed: plan.changed, needsRestart: plan.needsRestart, replicas };
    } catch (error) {
      return { kind: 'refused', problems: problemsOf(error) };
    }
  }

  return () => {
    const turn = last.then(reload);
    last = turn.catch(() => undefined);
    return turn;
  };
}

const NO_SOURCE: ReloadOutcome = {
  kind: 'refused',
  problems: ['the configuration does not come from a file'],
};

/** What whoever wrote the file can do something about; anything else is thrown again. */
function problemsOf(error: unknown): string[] {
  if (error instanceof ConfigError) return error.problems.map(toLine);
  if (error instanceof StartError || error instanceof TooManyReplicasError) return [error.message];
  throw error;
}

function toLine({ line, keyPath, text }: ConfigProblem): string {
  return `line ${line}: ${keyPath === '' ? '' : `${keyPath}: `}${text}`;
}

function toCounts(outcome: ReloadOutcome) {
  if (outcome.kind === 'refused') return null;
  const { added, changed, removed } = outcome.replicas;
  const counts = { added: added.length, changed: changed.length, removed: removed.length };
  return { changedKeys: outcome.changed, ...counts };
}
