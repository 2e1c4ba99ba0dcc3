import { GroupComparison } from '#verdict';
import { isFull, thinIndices } from '#verdict/blocks';
import type { Groups } from '../groups/find-groups.ts';
import type { RequestRing } from '../requests/request-ring.ts';
import { SilenceWatch } from './silence-watch.ts';

/** What is known of the replicas of a comparison when it goes on. */
export interface Moment {
  readonly groups: Groups;
  readonly nowMs: number;
  /** How many replicas of the baseline get their even share of the turns. */
  readonly peerCount: number;
  /** Of an even share: what a replica gets of the turns; null while it gets none. */
  readonly shareOf: (replica: string) => number | null;
}

/** A block that grows: the requests from this number on, and how many of each side it has. */
interface OpenBlock {
  from: number;
  sinceMs: number;
  own: number;
  peers: number;
  /** Whether each request of the candidate came from a warm replica. */
  isWarm: boolean;
}

/** Requests that are looked at before others may use the event loop. A block that is compared ends a look too. */
const MAX_LOOKED_AT = 8_192;

/**
 * The comparison of two groups over the requests since a time, as far as they are kept. Which requests make a block
 * depends on the requests alone, so the evidence is the same however often one looks.
 */
export class RunningComparison {
  readonly comparison = new GroupComparison();
  readonly #ring: RequestRing;
  readonly #silences = new Map<string, SilenceWatch>();
  /** What has ended before says nothing about who is silent now. */
  readonly #liveFrom: number;
  #block: OpenBlock;
  #next: number;

  /** `sinceMs`: monotonic, as the times of the ring. */
  constructor(ring: RequestRing, sinceMs: number) {
    this.#ring = ring;
    this.#next = ring.numberSince(sinceMs);
    this.#liveFrom = ring.end;
    this.#block = { from: this.#next, sinceMs, own: 0, peers: 0, isWarm: true };
  }

  /** Looks at requests that have ended since. Returns whether there are more. */
  advance(moment: Moment): boolean {
    this.#skipLost();
    const ring = this.#ring;
    const end = Math.min(ring.end, this.#next + MAX_LOOKED_AT);
    while (this.#next < end) {
      const number = this.#next++;
      if (this.#take(number, moment)) break;
    }
    return this.#next < ring.end;
  }

  /** The replicas of the candidate that have requests in flight and end none while their peers do. */
  silentOnes({ groups, nowMs, shareOf }: Moment, inflightOf: (replica: string) => number): readonly string[] {
    return [...groups.candidate].filter((name) => {
      const silence = this.#silenceOf(name, nowMs);
      if (shareOf(name) === null) silence.heard(nowMs);
      return silence.isSilent(inflightOf(name), nowMs);
    });
  }

  /** Returns whether a block was compared. */
  #take(number: number, moment: Moment): boolean {
    const { candidate, baseline } = moment.groups;
    const replica = this.#ring.replicaOf(number);
    const isOwn = candidate.has(replica);
    // A replica on a ramp has less to do, and is faster for that reason alone.
    const isWarm = this.#ring.isWarmOf(number);
    const isPeer = !isOwn && isWarm && baseline.has(replica);
    if (!isOwn && !isPeer) return false;
    if (number >= this.#liveFrom) this.#listen(number, { replica, isOwn }, moment);
    const block = this.#block;
    if (isOwn) {
      block.own++;
      block.isWarm &&= isWarm;
    } else block.peers++;
    const endedMs = this.#ring.endedMsOf(number);
    if (!isFull({ ...block, spanMs: endedMs - block.sinceMs })) return false;
    this.#compare(moment.groups);
    this.#block = { from: this.#next, sinceMs: endedMs, own: 0, peers: 0, isWarm: true };
    return true;
  }

  #compare({ candidate, baseline }: Groups): void {
    const own: number[] = [];
    const peers: number[] = [];
    for (let number = this.#block.from; number < this.#next; number++) {
      const replica = this.#ring.replicaOf(number);
      if (candidate.has(replica)) own.push(number);
      else if (baseline.has(replica) && this.#ring.isWarmOf(number)) peers.push(number);
    }
    const read = (numbers: readonly number[], side: 'own' | 'peers') =>
      thinIndices(numbers.length, side).map((index) => this.#ring.observationOf(numbers[index] ?? 0));
    const block = { own: read(own, 'own'), peers: read(peers, 'peers') };
    this.comparison.addBlock(block, { comparesTimes: this.#block.isWarm });
  }

  #listen(
    number: number,
    { replica, isOwn }: { readonly replica: string; readonly isOwn: boolean },
    { groups, peerCount, shareOf, nowMs }: Moment,
  ): void {
    if (isOwn) {
      this.#silenceOf(replica, nowMs).heard(this.#ring.endedMsOf(number));
      return;
    }
    const beganMs = this.#ring.beganMsOf(number);
    for (const name of groups.candidate) {
      this.#silenceOf(name, nowMs).peerEnded({ beganMs, peerCount, share: shareOf(name) ?? 0 });
    }
  }

  #silenceOf(replica: string, nowMs: number): SilenceWatch {
    const known = this.#silences.get(replica);
    if (known !== undefined) return known;
    const silence = new SilenceWatch(nowMs);
    this.#silences.set(replica, silence);
    return silence;
  }

  /** A block of which not all is kept any more begins anew. */
  #skipLost(): void {
    const ring = this.#ring;
    if (this.#block.from >= ring.first) return;
    this.#next = Math.max(this.#next, ring.first);
    const sinceMs = this.#next > ring.first ? ring.endedMsOf(this.#next - 1) : ring.completeFromMs;
    this.#block = { from: this.#next, sinceMs, own: 0, peers: 0, isWarm: true };
  }
}
