import { resolve } from 'node:path';
import { COMMANDS } from '#cli/arguments';
import { findConfigPath, UsageError } from '#cli/command';
import type { Environment } from '#config/secrets';
import { parseDuration, parsePercent } from '#config/values';
import { fillCommand } from './restart/fill-command.ts';

const VERDICT_MODES = COMMANDS.rollout.options.verdict.words;
const AFTER_ROLLBACK = COMMANDS.rollout.options['on-bad-then'].words;

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
  /** The share of live requests that are copied to a restarted replica before it serves; null: none. */
  readonly shadow: string | null;
  /** The command that rolls back a bad replica, with placeholders; null: it stays drained. */
  readonly onBad: string | null;
  /** Whether the rollout goes on after a replica was rolled back. */
  readonly onBadThen: (typeof AFTER_ROLLBACK)[number];
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
  readonly shadow?: string;
  readonly 'on-bad'?: string;
  readonly 'on-bad-then'?: string;
}

/** The absolute path, because a rollout may be resumed from elsewhere. */
function toConfigPath(option: string | undefined, env: Environment): string | null {
  const path = findConfigPath(option, env);
  return path === null ? null : resolve(path);
}

/** What holds unless the command line says something else. */
const DEFAULTS = {
  exec: null,
  isWatched: false,
  isProbed: false,
  maxUnavailable: 1,
  verdict: 'strict',
  rampMs: 60_000,
  drainMs: 600_000,
  restartMs: 1_800_000,
  compareMs: 600_000,
  isForced: false,
  reason: null,
  shadow: null,
  onBad: null,
  onBadThen: 'stop',
} as const satisfies Omit<RolloutSettings, 'admins' | 'configPath'>;

/** Reads the options of a new rollout. Throws a UsageError. */
export function toSettings(options: SettingOptions, env: Environment): RolloutSettings {
  return checked({ ...DEFAULTS, ...toGiven(options), ...toAddresses(options, env) });
}

/** Where the gateways are. Throws a UsageError. */
export function toAddresses(
  { admin, config }: Pick<SettingOptions, 'admin' | 'config'>,
  env: Environment,
): Pick<RolloutSettings, 'admins' | 'configPath'> {
  return { admins: admin ?? null, configPath: admin === undefined ? toConfigPath(config, env) : null };
}

/**
 * The settings of a rollout that is resumed: what the command line gives is corrected. It may also name other addresses of
 * the same gateways. Throws a UsageError.
 */
export function correctSettings(stored: RolloutSettings, options: SettingOptions): RolloutSettings {
  const given = toGiven(options);
  // Without a strict verdict nothing is rolled back.
  const isLax = given.verdict !== undefined && given.verdict !== 'strict';
  const rollback = isLax ? ({ onBad: null, onBadThen: 'stop' } as const) : {};
  const corrected = checked({ ...stored, ...rollback, ...given });
  const { admin, config } = options;
  if (admin !== undefined) return { ...corrected, admins: admin, configPath: null };
  if (config !== undefined) return { ...corrected, admins: null, configPath: toConfigPath(config, {}) };
  return corrected;
}

/** The settings that the options give, and no others. */
function toGiven(options: SettingOptions): Partial<RolloutSettings> {
  const { exec, watch, probe, verdict, force, reason } = options;
  if (exec !== undefined && watch === true) {
    throw new UsageError("options '--exec' and '--watch' exclude each other");
  }
  const given = {
    ...(exec === undefined ? {} : { exec, isWatched: false }),
    ...(watch === true ? { exec: null, isWatched: true } : {}),
    isProbed: probe,
    maxUnavailable: toCount(options['max-unavailable']),
    verdict: toWord('verdict', verdict, VERDICT_MODES),
    rampMs: toMs('ramp', options.ramp),
    drainMs: toMs('timeout', options.timeout),
    restartMs: toMs('restart-timeout', options['restart-timeout']),
    compareMs: toMs('compare-timeout', options['compare-timeout']),
    isForced: force,
    reason,
    shadow: toPercent(options.shadow),
    onBad: options['on-bad'],
    onBadThen: toWord('on-bad-then', options['on-bad-then'], AFTER_ROLLBACK),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

/** Throws a UsageError for a command that cannot be filled in, or a choice that nothing follows from. */
function checked(settings: RolloutSettings): RolloutSettings {
  const { exec, onBad, onBadThen, shadow, verdict } = settings;
  if (shadow !== null && verdict === 'off')
    throw new UsageError("'--shadow' judges: it excludes '--verdict off'");
  if (exec !== null) fillCommand(exec);
  if (onBad !== null) fillCommand(onBad);
  if (onBad === null && onBadThen === 'continue') throw new UsageError("'--on-bad-then' needs '--on-bad'");
  if (onBad !== null && verdict !== 'strict') throw new UsageError("'--on-bad' needs '--verdict strict'");
  return settings;
}

function toMs(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const ms = parseDuration(text);
  if (ms === null) throw new UsageError(`option '--${option}' needs a duration such as 60s or 10m`);
  return ms;
}

function toPercent(text: string | undefined): string | undefined {
  // With 0% it would serve nobody, and never be judged.
  if (text !== undefined && !parsePercent(text))
    throw new UsageError("option '--shadow' needs per cent such as 5%");
  return text;
}

function toCount(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,3}$/.test(text)) {
    throw new UsageError("option '--max-unavailable' needs a whole number from 1 to 9999");
  }
  return Number(text);
}

function toWord<W extends string>(
  option: string,
  text: string | undefined,
  words: readonly W[],
): W | undefined {
  const word = words.find((known) => known === text);
  if (text !== undefined && word === undefined) {
    throw new UsageError(`option '--${option}' is one of ${words.join(', ')}`);
  }
  return word;
}
