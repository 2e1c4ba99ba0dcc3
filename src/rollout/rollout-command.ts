import { mkdir } from 'node:fs/promises';
import { hostname } from 'node:os';
import { StartError } from '#base';
import { type AdminClient, openGateways, type SeveralGateways } from '#cli/admin-client';
import { COMMANDS, parseArguments } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { toMark } from '#rollout-board/facts';
import { lockState, StateInUseError } from '#state-dir';
import { checkSameGateways, type GatewayIdentity, identify } from './gateways/gateway-identity.ts';
import { RolloutGateways } from './gateways/gateways.ts';
import type { ReplicaView } from './gateways/replica-view.ts';
import { beginRollout } from './prepare/begin.ts';
import { isOver, openStateFile, type RolloutState, type StateFile } from './progress-file/state-file.ts';
import { createReporter } from './report/create-reporter.ts';
import { findUnfitFact } from './restart/fill-command.ts';
import { runRollout } from './run-rollout.ts';
import { correctSettings, type RolloutSettings, toAddresses, toSettings } from './settings.ts';
import { toRolloutState } from './tell/plan-facts.ts';
import { findRollout } from './tell/read-rollout.ts';

/** Options that say what a rollout is. One that is resumed has them in its file. */
const FIXED = ['model', 'all', 'reason', 'new'] as const;

/** The id of a rollout: the mark that its drains have. */
const ID = /^[0-9a-f]{8}$/;

/** A rollout that can run. */
interface Prepared {
  readonly state: RolloutState;
  readonly say: readonly string[];
  /** Replicas that stay drained although no rollout is at work on them any more. */
  readonly leftDrained: readonly string[];
}

/**
 * `gateway rollout`: restarts replicas, one or a few at a time, and compares each with its peers before it goes on. Its
 * exit codes are in `EXIT_CODES`.
 */
export async function rollout(invocation: Invocation): Promise<number> {
  const { args, env, stdin, signals, pid } = invocation;
  const { values, positionals } = parseArguments(args, COMMANDS.rollout.options);
  const file = openStateFile(values.state, env);
  await using _lock = await lockRollout(file.path, invocation);
  const stored = await readUnfinished(file, values.new === true);
  const isResumed = values.resume === true;
  if (isResumed) refuseFixed(values, positionals);
  else if (stored !== null && values.new !== true) {
    throw new StartError(
      `a rollout is not finished (${leftOf(stored).join(', ')}; ${file.path}): go on with --resume, or begin anew with --new`,
    );
  }
  const [id] = positionals;
  const resumed = isResumed ? await findResumed(stored, { id, values, path: file.path, invocation }) : null;
  const settings = resumed === null ? toSettings(values, env) : correctSettings(resumed.settings, values);
  const isPerson = settings.exec === null && !settings.isWatched;
  if (isPerson && (values.json === true || stdin.setRawMode === undefined)) {
    throw new UsageError(
      "nobody can be asked here: say how replicas are restarted with '--exec' or '--watch'",
    );
  }
  const clients = await openGateways(toGateways(settings, values), env, 'operator');
  const identities = await Promise.all(clients.map((client) => identify(client, signals.shutdown)));
  const gateways = new RolloutGateways(clients, signals.shutdown);
  const replicas = await gateways.replicas();
  const { skip = [], accept = [] } = values;
  const prepare = (): Prepared => {
    if (resumed !== null) return takeUpFor(resumed, { settings, gateways: identities, skip, accept });
    const { model = null, all: isAll = false } = values;
    const selection = { names: positionals, model, isAll, skip };
    const found = { settings, gateways: identities, replicas, replaced: stored, accepted: accept };
    const { leftBehind, ...begun } = beginRollout({ selection, ...found });
    return { ...begun, leftDrained: leftBehind };
  };
  const { state, say, leftDrained } = prepare();
  if (resumed !== null) await refuseOlder(resumed, clients, signals.shutdown);
  if (settings.exec !== null || settings.onBad !== null) checkFacts(state, replicas);
  const reporter = createReporter(invocation, {
    isJson: values.json === true,
    names: state.replicas.map(({ name }) => name),
  });
  for (const line of say) reporter.say(line);
  return await runRollout(state, { isResumed, leftDrained, clients, file, reporter, env, pid, signals });
}

type Values = ReturnType<typeof parseArguments<typeof COMMANDS.rollout.options>>['values'];

/** Throws a UsageError for what says what a rollout is: that stays as it began. */
function refuseFixed(values: Values, positionals: readonly string[]): void {
  const given = FIXED.find((option) => values[option] !== undefined);
  const [id, surplus] = positionals;
  const wrong = id !== undefined && !ID.test(id) ? id : surplus;
  if (given === undefined && wrong === undefined) return;
  const what = given === undefined ? JSON.stringify(wrong) : `option '--${given}'`;
  throw new UsageError(`${what} does not go with --resume: what is rolled, and why, stays as it began`);
}

/** Finds the rollout that is to go on: in the file, or with `id` also at the gateways. Throws a StartError. */
async function findResumed(
  stored: RolloutState | null,
  {
    id,
    values,
    path,
    invocation: { env, signals },
  }: {
    readonly id: string | undefined;
    readonly values: Values;
    readonly path: string;
    readonly invocation: Invocation;
  },
): Promise<RolloutState> {
  if (id === undefined) {
    if (stored !== null) return stored;
    throw new StartError(
      `there is no rollout to resume: ${path} does not exist. One that began elsewhere goes on by its id: see gateway rollouts`,
    );
  }
  if (stored !== null && toMark(stored.traceId) !== id) {
    throw new StartError(`another rollout is not finished (${path}): name another file with --state`);
  }
  const { admins, configPath } = stored?.settings ?? toAddresses(values, env);
  const clients = await openGateways(toGateways({ admins, configPath }, values), env, 'operator');
  const shown = await findRollout(clients, id, signals.shutdown);
  if (stored !== null && (shown === null || shown.run <= stored.run)) return stored;
  if (shown === null) throw new StartError(`no gateway knows the rollout ${id}: see gateway rollouts`);
  const { exec = null, 'on-bad': onBad = null } = values;
  const identities = await Promise.all(clients.map((client) => identify(client, signals.shutdown)));
  return toRolloutState(shown, { ...toAddresses(values, env), exec, onBad }, identities);
}

/** Throws a StartError if the rollout has gone on elsewhere since. */
async function refuseOlder(
  { traceId, run }: RolloutState,
  clients: readonly AdminClient[],
  signal: AbortSignal,
): Promise<void> {
  const id = toMark(traceId);
  const shown = await findRollout(clients, id, signal);
  if (shown === null || shown.run <= run) return;
  const { user, host } = shown.driver;
  throw new StartError(
    `this rollout has gone on elsewhere, by ${toOneLine(user)}@${toOneLine(host)}: go on from there with --resume ${id}`,
  );
}

/** Throws if the gateways are others than those that it began with. */
function takeUpFor(
  stored: RolloutState,
  corrections: Parameters<typeof takeUp>[1] & { readonly gateways: readonly GatewayIdentity[] },
): Prepared {
  checkSameGateways(stored.gateways, corrections.gateways);
  const { state, skipped } = takeUp(stored, corrections);
  return { state, say: [], leftDrained: skipped };
}

/** The names of the replicas that something is left to do for. */
function leftOf({ replicas, settings }: RolloutState): readonly string[] {
  return replicas.filter((replica) => !isOver(replica, settings)).map(({ name }) => name);
}

/** Throws a StartError if the command cannot be told what a replica is called, or where it is. */
function checkFacts(state: RolloutState, replicas: readonly ReplicaView[]): void {
  const left = new Set(leftOf(state));
  for (const replica of replicas) {
    const unfit = left.has(replica.name) ? findUnfitFact(replica) : null;
    if (unfit !== null) throw new StartError(`${toOneLine(replica.name)} was left as it is: ${unfit}`);
  }
}

/** The gateways of a rollout. The options of certificates are not stored. */
const toGateways = (
  { admins, configPath }: Pick<RolloutSettings, 'admins' | 'configPath'>,
  { admin: _, config: __, ...trust }: SeveralGateways,
): SeveralGateways => ({
  ...trust,
  ...(admins && { admin: admins }),
  ...(configPath && { config: configPath }),
});

/** Null if there is none, or if its last run was killed after it had ended. With `--new` a damaged one does not matter. */
async function readUnfinished(file: StateFile, isNew: boolean): Promise<RolloutState | null> {
  const stored = isNew ? await file.read().catch(() => null) : await file.read();
  return stored !== null && leftOf(stored).length === 0 ? null : stored;
}

/** What a person corrects when a rollout goes on. */
interface Corrections {
  readonly settings: RolloutSettings;
  readonly gateways: readonly GatewayIdentity[];
  readonly skip: readonly string[];
  readonly accept: readonly string[];
}

/** A rollout that goes on, and the replicas that are left out from now on. */
interface TakenUp {
  readonly state: RolloutState;
  readonly skipped: readonly string[];
}

/** Takes up a rollout that has stopped. Throws a UsageError for a replica that is not of it, or that is done. */
function takeUp(stored: RolloutState, { settings, gateways, skip, accept }: Corrections): TakenUp {
  for (const [option, names] of [
    ['skip', skip],
    ['accept', accept],
  ] as const) {
    const isOpen = (name: string) =>
      stored.replicas.some((each) => each.name === name && each.stage !== 'done' && each.stage !== 'skipped');
    const wrong = names.find((name) => !isOpen(name));
    if (wrong === undefined) continue;
    throw new UsageError(
      `option '--${option}': this rollout has nothing left to do for ${JSON.stringify(wrong)}`,
    );
  }
  const both = skip.find((name) => accept.includes(name));
  if (both !== undefined) throw new UsageError(`${JSON.stringify(both)} cannot be skipped and accepted`);
  const replicas = stored.replicas.map((replica) =>
    skip.includes(replica.name) ? { ...replica, stage: 'skipped' as const } : replica,
  );
  const accepted = [...new Set([...stored.accepted, ...accept])];
  return { state: { ...stored, settings, gateways, replicas, accepted }, skipped: [...new Set(skip)] };
}

/**
 * Makes this process the only one that uses a state file, until the lock is disposed. The lock of a process that was
 * killed does not count. Its folder stays: another rollout may be about to lock it. Throws a StartError that says who
 * uses the file.
 */
async function lockRollout(
  path: string,
  { pid, stderr }: Pick<Invocation, 'pid' | 'stderr'>,
): Promise<AsyncDisposable> {
  const folder = `${path}.lock`;
  const log = {
    warn: () =>
      stderr.write(`gateway: warning: ${path} cannot be locked: a second rollout would not be noticed\n`),
  };
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const lock = await lockState(folder, { pid, host: hostname(), log });
    return { [Symbol.asyncDispose]: () => lock.release() };
  } catch (error) {
    if (error instanceof StateInUseError) {
      const { owner } = error;
      const who = owner === null ? '' : ` (pid ${owner.pid} on host ${owner.host})`;
      throw new StartError(`another rollout is under way${who}; it uses ${path}`, error);
    }
    const { code = 'not writable' } = error as NodeJS.ErrnoException;
    throw new StartError(`cannot lock ${path} (${code})`, error);
  }
}
