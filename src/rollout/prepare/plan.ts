import { StartError } from '#base';
import { UsageError } from '#cli/command';
import type { ReplicaView } from '../gateways/replica-view.ts';

/** Which replicas a command line names. */
export interface Selection {
  readonly names: readonly string[];
  readonly model: string | null;
  readonly isAll: boolean;
  /** Of those, the names of replicas that are left out. */
  readonly skip: readonly string[];
}

/** What to roll, in the order of the gateway or of the command line. */
export interface RolloutPlan {
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
