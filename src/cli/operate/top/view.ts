import { itemsOf, memberOf } from '#base/parsed';
import { COMMANDS } from '#cli/arguments';
import { stateWordOf } from '../../tables/replica-cells.ts';

/** What there can be a row for. */
export const GROUPINGS = COMMANDS.top.options.by.words;
/** What rows can be sorted by. */
export const SORT_KEYS = COMMANDS.top.options.sort.words;

type SortKey = (typeof SORT_KEYS)[number];
type Grouping = (typeof GROUPINGS)[number];

/** What there is a row for, and the order of the rows. */
export interface TopView {
  readonly by: Grouping;
  readonly sort: SortKey;
}

/** The view that `--by` and `--sort` ask for; the name of the wrong option if one has no such value. */
export function toView(by: string = 'replica', sort: string = 'inflight'): TopView | 'by' | 'sort' {
  const grouping = GROUPINGS.find((known) => known === by);
  const key = SORT_KEYS.find((known) => known === sort);
  if (grouping === undefined) return 'by';
  return key === undefined ? 'sort' : { by: grouping, sort: key };
}

/** The view after a key of the keyboard: s changes the order, b what there is a row for. */
export function changeView(view: TopView, key: string): TopView {
  if (key === 's') return { ...view, sort: after(SORT_KEYS, view.sort) };
  return key === 'b' ? { ...view, by: after(GROUPINGS, view.by) } : view;
}

function after<T>(list: readonly T[], item: T): T {
  return list[(list.indexOf(item) + 1) % list.length] ?? item;
}

/** What the rows are sorted by: requests in flight are known of replicas only. */
export function sortKeyOf({ by, sort }: TopView): SortKey {
  return sort === 'inflight' && by !== 'replica' ? 'requests' : sort;
}

/**
 * The rows of an overview in the order of the view: by name, or largest first. Those without a value come last. Replicas
 * that are unreachable or failing come before all others.
 */
export function rowsOf(overview: unknown, view: TopView): readonly unknown[] {
  const { by } = view;
  const sort = sortKeyOf(view);
  const rows = itemsOf(overview, `${by}s`);
  const named = rows.map((row) => ({
    row,
    name: String(memberOf(row, 'name')),
    value: toValue(row, sort),
    urgency: by === 'replica' ? toUrgency(row) : 0,
  }));
  const sorted = named.toSorted(
    (a, b) => b.urgency - a.urgency || b.value - a.value || compareNames(a.name, b.name),
  );
  return sorted.map(({ row }) => row);
}

/** In the order of the dashboard; 0: nothing is wrong with the replica, or its requests go elsewhere on purpose. */
function toUrgency(replica: unknown): number {
  const word = stateWordOf(replica);
  if (word === 'unreachable') return 2;
  return word === 'failing' ? 1 : 0;
}

function toValue(row: unknown, sort: SortKey): number {
  const traffic = memberOf(row, 'last_minute');
  const value = {
    inflight: () => memberOf(row, 'inflight'),
    errors: () => memberOf(traffic, 'errors'),
    requests: () => memberOf(traffic, 'requests'),
    latency: () => memberOf(traffic, 'latency_p95_ms'),
    name: () => 0,
  }[sort]();
  return typeof value === 'number' ? value : -1;
}

/** `vllm-2` comes before `vllm-10`. */
const compareNames = new Intl.Collator('en', { numeric: true }).compare;
