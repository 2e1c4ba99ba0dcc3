import { itemsOf, memberOf } from '#base/parsed';
import { readMark } from '#rollout-board/facts';

/** A replica as one gateway, or all of them together, see it. */
export interface ReplicaView {
  readonly name: string;
  readonly url: string;
  readonly host: string;
  /** Null: unknown. */
  readonly models: readonly string[] | null;
  readonly isDrained: boolean;
  /** It gets copies, and no client's requests. */
  readonly isShadow: boolean;
  /** Why it was drained or undrained; null: nobody has said it. It comes from elsewhere. */
  readonly reason: string | null;
  /** The marks of the rollouts that have drained it. */
  readonly drainedBy: readonly string[];
  readonly inflight: number;
  readonly isSafeToStop: boolean;
  readonly isReachable: boolean;
  /** Found unreachable or loading. */
  readonly isAway: boolean;
  /** Why `health` finds it failing, in the codes of the admin API; none if it does not. */
  readonly failingBy: readonly string[];
  /** Of an even share of the turns: below 1 while it is on a ramp. */
  readonly share: number;
}

/** Reads one item of GET /admin/replicas. Null: it is none, or is being removed. */
export function toView(item: unknown): ReplicaView | null {
  const name = memberOf(item, 'name');
  if (typeof name !== 'string' || memberOf(item, 'removing') === true) return null;
  const models = memberOf(item, 'models');
  const reachability = memberOf(item, 'reachability');
  const share = memberOf(memberOf(item, 'ramp'), 'share');
  const isDrained = memberOf(item, 'drained') === true;
  const reason = memberOf(item, 'reason');
  const mark = readMark(reason);
  return {
    name,
    url: String(memberOf(item, 'url')),
    host: String(memberOf(item, 'host')),
    models: Array.isArray(models) ? models.map(String) : null,
    isDrained,
    isShadow: memberOf(item, 'shadow') != null,
    reason: typeof reason === 'string' ? reason : null,
    drainedBy: isDrained && mark !== null ? [mark] : [],
    inflight: Number(memberOf(item, 'inflight')) || 0,
    isSafeToStop: memberOf(item, 'safe_to_stop') === true,
    isReachable: reachability === 'reachable',
    isAway: reachability === 'unreachable' || reachability === 'loading',
    failingBy: memberOf(item, 'health') === 'failing' ? itemsOf(item, 'health_reasons').map(String) : [],
    share: typeof share === 'number' ? share : 1,
  };
}

/** What two gateways see together: it is drained, safe to stop or reachable only if both say so. */
export function mergeViews(a: ReplicaView, b: ReplicaView): ReplicaView {
  return {
    ...a,
    models: a.models ?? b.models,
    isDrained: a.isDrained && b.isDrained,
    isShadow: a.isShadow || b.isShadow,
    drainedBy: [...new Set([...a.drainedBy, ...b.drainedBy])],
    inflight: a.inflight + b.inflight,
    isSafeToStop: a.isSafeToStop && b.isSafeToStop,
    isReachable: a.isReachable && b.isReachable,
    isAway: a.isAway || b.isAway,
    failingBy: [...new Set([...a.failingBy, ...b.failingBy])],
    share: Math.min(a.share, b.share),
  };
}

/** Whether they serve a model that is the same; unknown models may be. */
export function shareModel({ models }: ReplicaView, other: ReplicaView): boolean {
  if (models === null || other.models === null) return true;
  return models.some(
    (model) => model === '*' || other.models?.includes(model) || other.models?.includes('*'),
  );
}

/** A replica of the same model that a rollout with a mark not among these has drained: its name; null if there is none. */
export function findForeignDrain(
  name: string,
  replicas: readonly ReplicaView[],
  ownMarks: readonly string[],
): string | null {
  const own = replicas.find((replica) => replica.name === name);
  const foreign = replicas.find(
    (replica) =>
      replica.drainedBy.some((mark) => !ownMarks.includes(mark)) &&
      (own === undefined || shareModel(replica, own)),
  );
  return foreign?.name ?? null;
}
