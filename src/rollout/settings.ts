import { resolve } from 'node:path';
import { COMMANDS } from '#cli/arguments';
import { findConfigPath, UsageError } from '#cli/command';
import type { Environment } from '#config/secrets';
import { parseDuration } from '#config/values';
import { fillCommand } from './restart/fill-command.ts';

const VERDICT_MODES = COMMANDS.rollout.options.verdict.words;

/** How a rollout is carried out. It is stored with its state. Times are in milliseconds. */
export interface RolloutSettings {
  /** The admin APIs; null: that of the configuration file. */
  readonly admins: readonly string[] | null;
  /** The configuration file that names the admin API; null: `admins` do. */
  readonly configPath: string | null;
  /** The command that restarts a replica, with placeholders; null: a person does, or `isWatched`. */
  readonly exec: string | null;
  /** Whether the engine is restarted elsewhere: it goes away and comes back. */
  readonly isWatched: boolean;
  /** Whether the engine must answer a small request before it gets others. */
  readonly isProbed: boolean;
  readonly maxUnavailable: number;
  readonly verdict: (typeof VERDICT_MODES)[number];
  readonly rampMs: number;
  /** How long a replica may take to become idle. */
  readonly drainMs: number;
  /** How long a restart may take until the engine answers. */
  readonly restartMs: number;
  /** How long a comparison may take after the ramp. */
  readonly compareMs: number;
  /** Whether a replica is rolled although no other one answers for one of its models. */
  readonly isForced: boolean;
  /** Kept with the replicas; null: only the mark of the rollout is. */
  readonly reason: string | null;
}

/** The options of the command line that become settings. */
export interface SettingOptions {
  readonly admin?: readonly string[];
  readonly config?: string;
  readonly exec?: string;
  readonly watch?: boolean;
  readonly probe?: boolean;
  readonly 'max-unavailable'?: string;
  readonly verdict?: string;
  readonly ramp?: string;
  readonly timeout?: string;
  readonly 'restart-timeout'?: string;
  readonly 'compare-timeout'?: string;
  readonly force?: boolean;
  readonly reason?: string;
}

/** The absolute path, because a rollout may be resumed from elsewhere. */
export function toConfigPath(option: string | undefined, env: Environment): string | null {
  const path = findConfigPath(option, env);
  return path === null ? null : resolve(path);
}

/** Reads the options. Throws a UsageError. */
export function toSettings(options: SettingOptions, env: Environment): RolloutSettings {
  const { exec = null, watch: isWatched = false, verdict = 'strict' } = options;
  if (exec !== null && isWatched) throw new UsageError("options '--exec' and '--watch' exclude each other");
  if (exec !== null) fillCommand(exec);
  const mode = VERDICT_MODES.find((known) => known === verdict);
  if (mode === undefined) throw new UsageError(`option '--verdict' is one of ${VERDICT_MODES.join(', ')}`);
  return {
    admins: options.admin ?? null,
    configPath: options.admin === undefined ? toConfigPath(options.config, env) : null,
    exec,
    isWatched,
    verdict: mode,
    isProbed: options.probe ?? false,
    maxUnavailable: toCount(options['max-unavailable'] ?? '1'),
    rampMs: toMs('ramp', options.ramp ?? '60s'),
    drainMs: toMs('timeout', options.timeout ?? '10m'),
    restartMs: toMs('restart-timeout', options['restart-timeout'] ?? '30m'),
    compareMs: toMs('compare-timeout', options['compare-timeout'] ?? '10m'),
    isForced: options.force ?? false,
    reason: options.reason ?? null,
  };
}

function toMs(option: string, text: string): number {
  const ms = parseDuration(text);
  if (ms === null) throw new UsageError(`option '--${option}' needs a duration such as 60s or 10m`);
  return ms;
}

function toCount(text: string): number {
  if (!/^[1-9]\d{0,3}$/.test(text)) {
    throw new UsageError("option '--max-unavailable' needs a whole number from 1 to 9999");
  }
  return Number(text);
}
