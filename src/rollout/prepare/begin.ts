import { StartError } from '#base';
import { UsageError } from '#cli/command';
import { toMark } from '#rollout-board/facts';
import type { GatewayIdentity } from '../gateways/gateway-identity.ts';
import type { ReplicaView } from '../gateways/replica-view.ts';
import type { RolloutState } from '../progress-file/state-file.ts';
import { newSpanId, newTraceId } from '../rollout-trace.ts';
import type { RolloutSettings } from '../settings.ts';

/** What a new rollout is made of. */
interface Beginning {
  readonly selection: Selection;
  readonly settings: RolloutSettings;
  readonly accepted: readonly string[];
  readonly gateways: readonly GatewayIdentity[];
  readonly replicas: readonly ReplicaView[];
  /** The rollout that it replaces, if its file was there. */
  readonly replaced: RolloutState | null;
}

/** A rollout that has not begun, and what to say about it. */
interface Begun {
  readonly state: RolloutState;
  readonly say: readonly string[];
  /** Replicas that the replaced rollout has drained, and that this one leaves alone. */
  readonly leftBehind: readonly string[];
}

/** Plans a new rollout. Throws a UsageError or a StartError. */
export function beginRollout(beginning: Beginning): Begun {
  const { selection, settings, accepted, gateways, replicas, replaced } = beginning;
  const givenUp = replaced === null ? [] : [replaced.traceId, ...replaced.givenUp];
  const { names, leftAlone } = planRollout(selection, replicas);
  const leftBehind = findDrainedBy(givenUp, replicas).filter((name) => !names.includes(name));
  const unserved = settings.isForced ? null : findUnservedModel(names, settings.maxUnavailable, replicas);
  if (unserved !== null) throw new StartError(`nothing was drained: ${unserved} (--force rolls anyway)`);
  const state = {
    version: 2 as const,
    traceId: newTraceId(),
    rootSpanId: newSpanId(),
    givenUp,
    settings,
    gateways,
    replicas: names.map((name) => ({ name, stage: 'waiting' as const, sentence: null, command: null })),
    accepted,
    startedAt: new Date().toISOString(),
    run: 1,
    driverId: null,
  };
  const left = leftBehind.join(', ');
  const alone = leftAlone.join(', ');
  const say = [
    ...(left === '' ? [] : [`still drained by the rollout that is given up: ${left}`]),
    ...(alone === '' ? [] : [`left alone, because drained or a shadow: ${alone}`]),
  ];
  return { state, say, leftBehind };
}

/** The names of the replicas that these rollouts have drained. */
function findDrainedBy(traceIds: readonly string[], replicas: readonly ReplicaView[]): readonly string[] {
  const marks = traceIds.map(toMark);
  return replicas
    .filter(({ drainedBy }) => drainedBy.some((mark) => marks.includes(mark)))
    .map(({ name }) => name);
}

/** Which replicas a command line names. */
interface Selection {
  readonly names: readonly string[];
  readonly model: string | null;
  readonly isAll: boolean;
  /** Of those, the names of replicas that are left out. */
  readonly skip: readonly string[];
}

/** What to roll, in the order of the gateway or of the command line. */
interface RolloutPlan {
  readonly names: readonly string[];
  /** Replicas that are left alone, because they were drained before, or no client gets their answers. */
  readonly leftAlone: readonly string[];
}

/** Finds what to roll. Throws a UsageError or a StartError. */
export function planRollout(selection: Selection, replicas: readonly ReplicaView[]): RolloutPlan {
  const { skip } = selection;
  const unknown = skip.find((name) => !replicas.some((replica) => replica.name === name));
  if (unknown !== undefined) throw new StartError(`there is no replica ${JSON.stringify(unknown)} to skip`);
  const { names, leftAlone } = select(selection, replicas);
  const rolled = names.filter((name) => !skip.includes(name));
  if (rolled.length === 0) throw new UsageError('all replicas are skipped');
  return { names: rolled, leftAlone: leftAlone.filter((name) => !skip.includes(name)) };
}

function select(
  { names, model, isAll }: Omit<Selection, 'skip'>,
  replicas: readonly ReplicaView[],
): RolloutPlan {
  const kinds = [names.length > 0, model !== null, isAll].filter(Boolean).length;
  if (kinds !== 1) throw new UsageError('name the replicas, or give --model or --all');
  if (names.length > 0) {
    const known = new Set(replicas.map(({ name }) => name));
    const missing = names.find((name) => !known.has(name));
    if (missing !== undefined) {
      throw new StartError(
        `there is no replica ${JSON.stringify(missing)}: there are ${[...known].join(', ')}`,
      );
    }
    return { names: [...new Set(names)], leftAlone: [] };
  }
  const meant = isAll ? replicas : replicas.filter(({ models }) => models?.includes(model ?? '') === true);
  const serving = meant.filter(({ isDrained, isShadow }) => !isDrained && !isShadow);
  if (serving.length === 0) {
    throw new StartError(
      isAll ? 'no replica serves' : `no replica serves the model ${JSON.stringify(model)}`,
    );
  }
  return {
    names: serving.map(({ name }) => name),
    leftAlone: meant.filter((replica) => !serving.includes(replica)).map(({ name }) => name),
  };
}

/**
 * Says which model would be left without a server if as many of these replicas as given are away at a time; null if none
 * would.
 */
export function findUnservedModel(
  names: readonly string[],
  maxUnavailable: number,
  replicas: readonly ReplicaView[],
): string | null {
  const rolled = new Set(names);
  const serving = replicas.filter(({ isShadow }) => !isShadow);
  const models = new Set(
    serving.flatMap((replica) => (rolled.has(replica.name) ? (replica.models ?? []) : [])),
  );
  for (const model of models) {
    const servers = serving.filter((replica) => replica.models?.includes(model) === true);
    const atOnce = Math.min(maxUnavailable, servers.filter(({ name }) => rolled.has(name)).length);
    const able = servers.filter(({ isDrained, isAway }) => !isDrained && !isAway);
    const left = able.length - Math.min(atOnce, able.filter(({ name }) => rolled.has(name)).length);
    if (left <= 0)
      return `${model} would be left without a server: ${able.length} of ${servers.length} can serve it`;
  }
  return null;
}
