import type { Streams } from '#replicas/silence';

/** The streams of a peer, and how many of them are stuck on average. */
export interface PeerStreams extends Pick<Streams, 'stuck' | 'running'> {
  readonly usualStuck: number;
}

/** Fewer say nothing: one engine may think for long about one request. */
const MIN_STUCK = 4;
/** The same of a replica that was found bad a moment ago. */
const MIN_STUCK_AGAIN = 2;

/** What every replica may have: this share of its streams, and twice that of its peers. */
const MIN_SHARE = 0.05;
const SHARE_FACTOR = 2;

/** How far above the mean of its peers, in standard deviations of numbers by chance, and beyond these: calls of tools come in bunches. */
const DEVIATIONS = 8;

/**
 * Whether more streams of a replica are stuck than chance explains, if it were like its peers now or in the minutes
 * before. Never without peers. By turns each gets as many streams, so their numbers are compared, and their shares where
 * it has more.
 */
export function isClearlyMore(own: Streams, peers: readonly PeerStreams[], isAgain: boolean): boolean {
  if (peers.length === 0) return false;
  const minStuck = isAgain ? MIN_STUCK_AGAIN : MIN_STUCK;
  const stuck = peers.reduce((sum, each) => sum + each.stuck, 0);
  const running = peers.reduce((sum, each) => sum + each.running, 0);
  const usual = peers.reduce((sum, each) => sum + each.usualStuck, 0);
  const mean = Math.max(stuck, usual) / peers.length;
  const share = running === 0 ? 0 : stuck / running;
  return (
    own.stuck >= minStuck &&
    own.stuck >= mean + DEVIATIONS * Math.sqrt(mean) + minStuck - 1 &&
    own.stuck / Math.max(1, own.running) >= MIN_SHARE + SHARE_FACTOR * share
  );
}
