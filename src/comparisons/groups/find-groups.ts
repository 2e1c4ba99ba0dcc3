import type { RegisteredReplica } from '#replicas/registry';
import type { Selector } from './selector.ts';

/** The replicas that are judged, and those that they are compared with, by name. None is in both. */
export interface Groups {
  readonly candidate: ReadonlySet<string>;
  readonly baseline: ReadonlySet<string>;
}

/** Why there are no two groups to compare. `param`: the selector that is to blame. */
export type GroupsProblem =
  | { readonly code: 'replica_not_found'; readonly param: GroupName; readonly name: string }
  | { readonly code: 'selector_matches_nothing'; readonly param: GroupName }
  | { readonly code: 'groups_overlap'; readonly names: readonly string[] }
  | { readonly code: 'models_differ' }
  /** A shadow is compared with replicas that serve, in pairs. */
  | { readonly code: 'shadows_mixed'; readonly names: readonly string[] };

/** One of the two groups. */
export type GroupName = keyof Groups;

/** The two selectors. Null: all other replicas that serve a model of the candidate. */
export interface Selectors {
  readonly candidate: Selector;
  readonly baseline: Selector | null;
}

export interface GroupSurroundings {
  readonly replicas: readonly RegisteredReplica[];
  /** The uids of the pods with these labels. */
  readonly podsOf: (labels: readonly string[]) => ReadonlySet<string>;
  /** Replicas that are gone, and stay in a comparison that has begun. */
  readonly gone: ReadonlySet<string>;
}

/** Finds the replicas that two selectors mean now. */
export function findGroups(selectors: Selectors, surroundings: GroupSurroundings): Groups | GroupsProblem {
  const { replicas, gone } = surroundings;
  for (const param of ['candidate', 'baseline'] as const) {
    const selector = selectors[param];
    if (selector?.kind !== 'names') continue;
    const isKnown = (name: string) =>
      replicas.some((replica) => replica.name === name) || (param === 'baseline' && gone.has(name));
    const name = selector.names.find((each) => !isKnown(each));
    if (name !== undefined) return { code: 'replica_not_found', param, name };
  }
  const own = withoutShadows(
    replicas.filter((replica) => isMeant(replica, selectors.candidate, surroundings)),
    selectors.candidate,
  );
  if (own.length === 0) return { code: 'selector_matches_nothing', param: 'candidate' };
  const candidate = new Set(own.map(({ name }) => name));
  const { baseline: selector } = selectors;
  const peers = replicas.filter((replica) =>
    selector === null
      ? replica.shadow === null &&
        !candidate.has(replica.name) &&
        own.some((each) => shareModel(each, replica))
      : isMeant(replica, selector, surroundings) && (replica.shadow === null || selector.kind === 'names'),
  );
  const baseline = new Set(peers.map(({ name }) => name));
  if (selector?.kind === 'names') for (const name of selector.names) baseline.add(name);
  if (baseline.size === 0) return { code: 'selector_matches_nothing', param: 'baseline' };
  const both = [...candidate].filter((name) => baseline.has(name));
  if (both.length > 0) return { code: 'groups_overlap', names: both };
  const shadows = [...own, ...peers].filter(({ shadow }) => shadow !== null).map(({ name }) => name);
  const isMixed = own.some(({ name }) => shadows.includes(name)) && own.length !== shadows.length;
  if (isMixed || peers.some(({ shadow }) => shadow !== null))
    return { code: 'shadows_mixed', names: shadows };
  if (peers.length > 0 && !own.some((each) => peers.some((peer) => shareModel(each, peer)))) {
    return { code: 'models_differ' };
  }
  return { candidate, baseline };
}

/** Those that serve, unless names say otherwise or all of them are shadows: a shadow is judged in another way. */
function withoutShadows(own: readonly RegisteredReplica[], selector: Selector): readonly RegisteredReplica[] {
  const serving = own.filter(({ shadow }) => shadow === null);
  return selector.kind === 'names' || serving.length === 0 ? own : serving;
}

function isMeant(replica: RegisteredReplica, selector: Selector, { podsOf }: GroupSurroundings): boolean {
  const { name, models, config } = replica;
  switch (selector.kind) {
    case 'names':
      return selector.names.includes(name);
    case 'model':
      return models !== null && (models.includes(selector.value) || models.includes('*'));
    case 'host':
      return config.host === selector.value;
    case 'labels':
      return config.serverId !== undefined && podsOf(selector.labels).has(config.serverId);
  }
}

/** Whether they serve a model that is the same; unknown models may be. */
function shareModel({ models }: RegisteredReplica, other: RegisteredReplica): boolean {
  if (models === null || other.models === null || models === other.models) return true;
  if (models.includes('*') || other.models.includes('*')) return true;
  const served = new Set(other.models);
  return models.some((model) => served.has(model));
}
