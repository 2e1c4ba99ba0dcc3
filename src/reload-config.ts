import { isDeepStrictEqual } from 'node:util';
import type { AdminAction } from '#otel/span/admin-spans.ts';
import type { ReloadOutcome } from './admin/admin-collaborators.ts';
import { type AdminRole, type AdminToken, TOKEN_VARIABLES } from './config/admin-tokens.ts';
import { type Config, toConfig } from './config/config.ts';
import { ConfigError, type ConfigProblem } from './config/config-error.ts';
import { planReload } from './config/reload-plan.ts';
import type { ConfigFile } from './config/schema.ts';
import { SecretError } from './config/secret-file.ts';
import type { InTurn } from './in-turn.ts';
import { type ReplicaChanges, TooManyReplicasError } from './replicas/control/registry.ts';
import { StartError } from './start-error.ts';

/** A configuration file that can be read again. */
export interface ConfigSource {
  /** The file that the gateway was started with. */
  readonly file: ConfigFile;
  /** Rejects with a ConfigError, or with a StartError when the file cannot be read. */
  readonly read: () => Promise<ConfigFile>;
  /** Reads the tokens of the admin API again. Rejects with a SecretError. Unset: a reload keeps the tokens. */
  readonly readTokens?: (() => Promise<readonly AdminToken[]>) | undefined;
}

/** What a reload works with. A pino logger fits as `log`. */
export interface ReloadCollaborators {
  /** Reloads run in turn with what else changes the configuration in effect. */
  readonly inTurn: InTurn;
  /** The tokens of the admin API at the start. */
  readonly tokens: readonly AdminToken[];
  /** Applies another configuration, all of it or nothing; resolves when every worker uses it. */
  readonly apply: (config: Config, tokens: readonly AdminToken[]) => Promise<ReplicaChanges>;
  readonly onAction: (action: AdminAction) => void;
  readonly log: Record<'info' | 'warn' | 'error', (fields: object, message: string) => void>;
}

/**
 * Creates the function that reloads the configuration of a running gateway. Calls run one at a time, in order, and each
 * reads the file when it starts. `tokenName`: whose token asked for it; null for a signal. Without a source every call
 * is refused. Rejects only on a defect.
 */
export function createReload(
  source: ConfigSource | undefined,
  { inTurn, tokens, apply, onAction, log }: ReloadCollaborators,
): (tokenName: string | null) => Promise<ReloadOutcome> {
  let fileInEffect = source?.file;
  let tokensInEffect = tokens;

  async function reload(tokenName: string | null): Promise<ReloadOutcome> {
    const startEpochMs = Date.now();
    const outcome = await attempt();
    if (outcome.kind === 'refused') {
      log.error({ problems: outcome.problems, token_name: tokenName }, 'configuration refused');
    } else {
      const { changed, needsRestart, replicas } = outcome;
      const level = needsRestart.length === 0 ? 'info' : 'warn';
      log[level](
        { changed, needs_restart: needsRestart, replicas, token_name: tokenName },
        'configuration reloaded',
      );
    }
    onAction({ action: 'reload', done: toCounts(outcome), tokenName, startEpochMs });
    return outcome;
  }

  async function attempt(): Promise<ReloadOutcome> {
    if (source === undefined || fileInEffect === undefined) return NO_SOURCE;
    const [file, nextTokens] = await Promise.allSettled([
      source.read(),
      source.readTokens?.() ?? tokensInEffect,
    ]);
    if (file.status === 'rejected' || nextTokens.status === 'rejected') {
      const failed = [file, nextTokens].filter((each) => each.status === 'rejected');
      return { kind: 'refused', problems: failed.flatMap(({ reason }) => toProblems(reason)) };
    }
    try {
      const plan = planReload(fileInEffect, file.value);
      const replicas = await apply(toConfig(plan.file), nextTokens.value);
      const changed = [...plan.changed, ...toChangedTokens(tokensInEffect, nextTokens.value)];
      fileInEffect = plan.file;
      tokensInEffect = nextTokens.value;
      return { kind: 'reloaded', changed, needsRestart: plan.needsRestart, replicas };
    } catch (error) {
      return { kind: 'refused', problems: toProblems(error) };
    }
  }

  return (tokenName) => inTurn(() => reload(tokenName));
}

const NO_SOURCE: ReloadOutcome = {
  kind: 'refused',
  problems: ['the configuration was not read from a file'],
};

/** The variables whose tokens have changed. Only those of a file can change while the process runs. */
function toChangedTokens(before: readonly AdminToken[], after: readonly AdminToken[]): string[] {
  const roles = ['admin', 'operator', 'reader', 'drainer'] as const;
  const ofRole = (tokens: readonly AdminToken[], role: AdminRole) =>
    tokens.filter((token) => token.role === role);
  return roles
    .filter((role) => !isDeepStrictEqual(ofRole(before, role), ofRole(after, role)))
    .map((role) => `${TOKEN_VARIABLES[role]}_FILE`);
}

/** The problems that the file's author can fix. Throws any other error again. */
function toProblems(error: unknown): string[] {
  if (error instanceof ConfigError) return error.problems.map(toLine);
  const isKnown = [StartError, SecretError, TooManyReplicasError].some((known) => error instanceof known);
  if (isKnown && error instanceof Error) return [error.message];
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
