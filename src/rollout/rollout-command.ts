import { StartError } from '#base';
import { type AdminClient, type GatewayOptions, openAdmin } from '#cli/admin-client';
import { COMMANDS, parseArguments } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { checkSameGateways, identify } from './gateways/gateway-identity.ts';
import { RolloutGateways } from './gateways/gateways.ts';
import type { ReplicaView } from './gateways/replica-view.ts';
import { toMark } from './gateways/rollout-mark.ts';
import { findUnservedModel, planRollout } from './plan.ts';
import { lockRollout } from './progress-file/rollout-lock.ts';
import { openStateFile, type RolloutState, type StateFile } from './progress-file/state-file.ts';
import { createReporter } from './report/create-reporter.ts';
import { fillCommand, findUnfitFact } from './restart/fill-command.ts';
import { newSpanId, newTraceId } from './rollout-trace.ts';
import { runRollout } from './run-rollout.ts';
import { type RolloutSettings, type SettingOptions, toConfigPath, toSettings } from './settings.ts';

/** Options that a resumed rollout has in its file. */
const STORED = [
  'model',
  'all',
  'exec',
  'watch',
  'probe',
  'max-unavailable',
  'verdict',
  'ramp',
  'timeout',
  'restart-timeout',
  'compare-timeout',
  'force',
  'reason',
  'new',
] as const;

/**
 * `gateway rollout`: restarts replicas, one or a few at a time, and compares each with its peers before it goes on. Its
 * exit codes are in `EXIT_CODES`.
 */
export async function rollout(invocation: Invocation): Promise<number> {
  const { args, env, stdin, signals } = invocation;
  const { values, positionals } = parseArguments(args, COMMANDS.rollout.options);
  const file = openStateFile(values.state, env);
  await using _lock = await lockRollout(file.path, invocation);
  const isNew = values.new === true;
  const stored = await readUnfinished(file, isNew);
  const isResumed = values.resume === true;
  if (isResumed) {
    const given = STORED.find((option) => values[option] !== undefined);
    if (given !== undefined || positionals.length > 0) {
      const what = given === undefined ? JSON.stringify(positionals[0]) : `option '--${given}'`;
      throw new UsageError(`${what} does not go with --resume, which goes on as the rollout began`);
    }
    if (stored === null) throw new StartError(`there is no rollout to resume: ${file.path} does not exist`);
  } else if (stored !== null && !isNew) {
    const left = stored.replicas.filter(({ stage }) => stage !== 'done').map(({ name }) => name);
    throw new StartError(
      `a rollout is not finished (${left.join(', ')}; ${file.path}): go on with --resume, or begin anew with --new`,
    );
  }
  const settings =
    isResumed && stored !== null ? withGateways(stored.settings, values) : toSettings(values, env);
  if (isResumed && settings.exec !== null) fillCommand(settings.exec);
  const isPerson = settings.exec === null && !settings.isWatched;
  if (isPerson && (values.json === true || stdin.setRawMode === undefined)) {
    throw new UsageError(
      "nobody can be asked here: say how replicas are restarted with '--exec' or '--watch'",
    );
  }
  const clients = await openGateways(settings, values, env);
  const identities = await Promise.all(clients.map((client) => identify(client, signals.shutdown)));
  if (isResumed && stored !== null) checkSameGateways(stored.gateways, identities);
  const gateways = new RolloutGateways(clients, signals.shutdown);
  const replicas = await gateways.replicas();
  const say: string[] = [];
  let state: RolloutState | null =
    isResumed && stored !== null ? { ...stored, settings, gateways: identities } : null;
  if (state === null) {
    const givenUp = stored === null ? [] : [stored.traceId, ...stored.givenUp];
    const selection = { names: positionals, model: values.model ?? null, isAll: values.all === true };
    const { names, leftAlone } = planRollout(selection, replicas);
    const left = findDrainedBy(givenUp, replicas).filter((name) => !names.includes(name));
    if (left.length > 0) say.push(`still drained by the rollout that is given up: ${left.join(', ')}`);
    if (leftAlone.length > 0) say.push(`left alone, because already drained: ${leftAlone.join(', ')}`);
    const unserved = settings.isForced ? null : findUnservedModel(names, settings.maxUnavailable, replicas);
    if (unserved !== null) throw new StartError(`nothing was drained: ${unserved} (--force rolls anyway)`);
    state = createState(names, { settings, gateways: identities, givenUp });
  }
  if (settings.exec !== null) checkFacts(state, replicas);
  const reporter = createReporter(invocation, {
    isJson: values.json === true,
    names: state.replicas.map(({ name }) => name),
  });
  for (const line of say) reporter.say(line);
  return await runRollout(state, { isResumed, gateways, file, reporter, env, signals });
}

/** Throws a StartError if the command cannot be told what a replica is called, or where it is. */
function checkFacts(state: RolloutState, replicas: readonly ReplicaView[]): void {
  const left = new Set(state.replicas.filter(({ stage }) => stage !== 'done').map(({ name }) => name));
  for (const replica of replicas) {
    const unfit = left.has(replica.name) ? findUnfitFact(replica) : null;
    if (unfit !== null) throw new StartError(`${toOneLine(replica.name)} was left as it is: ${unfit}`);
  }
}

/** The settings of a rollout that is resumed. The command line may name other addresses of the same gateways. */
function withGateways(stored: RolloutSettings, { admin, config }: SettingOptions): RolloutSettings {
  if (admin !== undefined) return { ...stored, admins: admin, configPath: null };
  if (config !== undefined) return { ...stored, admins: null, configPath: toConfigPath(config, {}) };
  return stored;
}

/** Opens the admin APIs. The options of certificates are not stored. */
async function openGateways(
  { admins, configPath }: RolloutSettings,
  { admin: _, config: __, ...trust }: Omit<GatewayOptions, 'admin'> & { readonly admin?: unknown },
  env: Invocation['env'],
): Promise<readonly AdminClient[]> {
  if (admins !== null) {
    return await Promise.all(admins.map((admin) => openAdmin({ ...trust, admin }, env, 'operator')));
  }
  return [
    await openAdmin({ ...trust, ...(configPath === null ? {} : { config: configPath }) }, env, 'operator'),
  ];
}

/** Null if there is none, or if its last run was killed after it had ended. With `--new` a damaged one does not matter. */
async function readUnfinished(file: StateFile, isNew: boolean): Promise<RolloutState | null> {
  const stored = isNew ? await file.read().catch(() => null) : await file.read();
  return stored?.replicas.every(({ stage }) => stage === 'done') === true ? null : stored;
}

/** The names of the replicas that these rollouts have drained. */
function findDrainedBy(traceIds: readonly string[], replicas: readonly ReplicaView[]): readonly string[] {
  const marks = traceIds.map(toMark);
  return replicas
    .filter(({ drainedBy }) => drainedBy.some((mark) => marks.includes(mark)))
    .map(({ name }) => name);
}

function createState(
  names: readonly string[],
  begun: Pick<RolloutState, 'settings' | 'gateways' | 'givenUp'>,
): RolloutState {
  return {
    version: 2 as const,
    traceId: newTraceId(),
    rootSpanId: newSpanId(),
    ...begun,
    replicas: names.map((name) => ({ name, stage: 'waiting' as const, sentence: null, command: null })),
  };
}
