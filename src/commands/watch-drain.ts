import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminClient, memberOf, UnreachableError } from './admin/client.ts';

/** How a replica stands, as the admin API told last. */
export interface Standing {
  readonly isDrained: boolean;
  readonly inflight: number;
  /** Null: the gateway cannot know. */
  readonly isSafeToStop: boolean | null;
  /** The gateways of the fleet of which it is not known that they go by the drain. */
  readonly unconfirmed: readonly string[];
  /** The replica as it was told. */
  readonly view: unknown;
}

/** How a watch ended, and how the replica stood then. */
export interface WatchEnd {
  readonly kind: 'safe' | 'timed_out' | 'interrupted' | 'undrained' | 'removed';
  readonly standing: Standing;
}

/** What is watched. */
export interface DrainWatch {
  readonly name: string;
  readonly timeoutMs: number;
  /** Ends the watch. */
  readonly signal: AbortSignal;
  /** How the replica stood when the drain was answered. */
  readonly first: Standing;
  /** Told of every look; null: the gateway did not answer. */
  readonly onLook: (standing: Standing | null) => void;
}

const LOOK_EVERY_MS = 250;

/**
 * Looks at a drained replica until it is safe to stop, or never will be. A gateway that does not answer is asked
 * again: it may be on its way up. Rejects with a StartError when it says no.
 */
export async function watchDrain(client: AdminClient, watch: DrainWatch): Promise<WatchEnd> {
  const endMs = performance.now() + watch.timeoutMs;
  let standing = watch.first;
  for (;;) {
    if (standing.isSafeToStop === true) return { kind: 'safe', standing };
    if (!standing.isDrained) return { kind: 'undrained', standing };
    if (watch.signal.aborted) return { kind: 'interrupted', standing };
    if (performance.now() >= endMs) return { kind: 'timed_out', standing };
    await sleep(LOOK_EVERY_MS, undefined, { signal: watch.signal }).catch(() => undefined);
    const seen = await look(client, watch);
    if (seen === 'removed') return { kind: 'removed', standing };
    if (!watch.signal.aborted) watch.onLook(seen);
    standing = seen ?? standing;
  }
}

/** Null when the gateway does not answer. */
async function look(client: AdminClient, { name, signal }: DrainWatch): Promise<Standing | 'removed' | null> {
  let answer: unknown;
  try {
    answer = await client.call('GET', '/admin/replicas', signal);
  } catch (error) {
    if (error instanceof UnreachableError) return null;
    throw error;
  }
  const listed = memberOf(answer, 'replicas');
  const view = (Array.isArray(listed) ? listed : []).find((replica) => memberOf(replica, 'name') === name);
  return view === undefined ? 'removed' : toStanding(view);
}

/** Reads a replica of the admin API. What is missing is not known. */
export function toStanding(view: unknown): Standing {
  const isSafeToStop = memberOf(view, 'safe_to_stop');
  const unconfirmed = memberOf(view, 'unconfirmed');
  return {
    isDrained: memberOf(view, 'drained') === true,
    inflight: Number(memberOf(view, 'inflight')),
    isSafeToStop: typeof isSafeToStop === 'boolean' ? isSafeToStop : null,
    unconfirmed: Array.isArray(unconfirmed) ? unconfirmed.filter((name) => typeof name === 'string') : [],
    view,
  };
}
