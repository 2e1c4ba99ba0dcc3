import type { Chance } from './chance.ts';
import type { Owner, Schedule, ScheduledEvent } from './schedule.ts';

/** How one direction of a connection behaves. */
export interface PipeProfile {
  /** How long bytes are under way: from the first to less than the second, in milliseconds. */
  readonly latencyMs: readonly [number, number];
  /** The most bytes that one read returns, among the first of the connection. */
  readonly readBytes: number;
  /** How many bytes the system holds between writer and reader; a write waits until it has room for all of it. */
  readonly capacityBytes: number;
}

/** What reads a direction. */
export interface PipeReader {
  readonly owner: Owner;
  onData(bytes: Buffer): void;
  /** The writer has closed its side. */
  onEnd(): void;
}

interface WaitingWrite {
  readonly bytes: Buffer;
  readonly done: () => void;
}

/** So many bytes come in small pieces if the profile says so; the rest of a long message would only take time. */
const SMALL_PIECES_BYTES = 1_500;
/** The most that Node reads at a time. */
const LARGE_READ_BYTES = 65_536;

/** One direction of a connection: bytes in order, in pieces and at times of their own. */
export class Pipe {
  deliveredBytes = 0;
  writtenBytes = 0;
  /** Called instead of delivering more than `atBytes`. */
  cut: { readonly atBytes: number; readonly run: () => void } | null = null;
  stalledUntilMs = 0;
  readonly #profile: PipeProfile;
  readonly #reader: PipeReader;
  readonly #schedule: Schedule;
  readonly #chance: Chance;
  readonly #label: string;
  #held: Buffer[] = [];
  #heldBytes = 0;
  #waiting: WaitingWrite[] = [];
  #state: 'open' | 'ending' | 'ended' | 'broken' = 'open';
  #isReading = false;
  #delivery: ScheduledEvent | null = null;

  constructor(
    profile: PipeProfile,
    reader: PipeReader,
    { schedule, chance, label }: { schedule: Schedule; chance: Chance; label: string },
  ) {
    this.#profile = profile;
    this.#reader = reader;
    this.#schedule = schedule;
    this.#chance = chance;
    this.#label = label;
  }

  /** Bytes that were written and not read. */
  get unreadBytes(): number {
    return this.#heldBytes + this.#waiting.reduce((sum, { bytes }) => sum + bytes.length, 0);
  }

  /** Whether the writer has closed it. */
  get isEnding(): boolean {
    return this.#state !== 'open';
  }

  get hasEnded(): boolean {
    return this.#state === 'ended' || this.#state === 'broken';
  }

  /** Writes bytes, which it keeps. Returns true if the system took them at once; otherwise `done` is called later. */
  write(bytes: Buffer, done: () => void): boolean {
    this.writtenBytes += bytes.length;
    if (this.#waiting.length === 0 && this.#heldBytes < this.#profile.capacityBytes) {
      this.#hold(bytes);
      this.#deliverLater(this.#latencyMs());
      return true;
    }
    this.#waiting.push({ bytes, done });
    this.#deliverLater(this.#latencyMs());
    return false;
  }

  /** The reader learns of the end after the bytes. */
  end(): void {
    if (this.#state !== 'open') return;
    this.#state = 'ending';
    this.#deliverLater(this.#latencyMs());
  }

  /** Nothing more is delivered. */
  break(): void {
    this.#state = 'broken';
    this.#held = [];
    this.#heldBytes = 0;
    this.#waiting = [];
    if (this.#delivery !== null) this.#schedule.cancel(this.#delivery);
  }

  startReading(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    if (this.#heldBytes > 0 || this.#state === 'ending') this.#deliverLater(this.#chance.between(0, 0.05));
  }

  stopReading(): void {
    this.#isReading = false;
  }

  #latencyMs(): number {
    const [least, bound] = this.#profile.latencyMs;
    return this.#chance.between(least, bound);
  }

  #hold(bytes: Buffer): void {
    if (bytes.length === 0) return;
    this.#held.push(bytes);
    this.#heldBytes += bytes.length;
  }

  #deliverLater(delayMs: number): void {
    if (this.#delivery !== null || this.hasEnded) return;
    const waitMs = Math.max(delayMs, this.stalledUntilMs - this.#schedule.nowMs);
    this.#delivery = this.#schedule.after(waitMs, this.#reader.owner, this.#label, () => {
      this.#delivery = null;
      if (this.stalledUntilMs > this.#schedule.nowMs) this.#deliverLater(0);
      else this.#deliver();
    });
  }

  #deliver(): void {
    if (this.hasEnded || !this.#isReading) return;
    const cut = this.cut;
    const untilCut = cut === null ? Number.POSITIVE_INFINITY : cut.atBytes - this.deliveredBytes;
    if (cut !== null && untilCut <= 0) {
      this.cut = null;
      cut.run();
      return;
    }
    if (this.#heldBytes === 0) {
      if (this.#state === 'ending') this.#finish();
      return;
    }
    const readBytes = this.deliveredBytes < SMALL_PIECES_BYTES ? this.#profile.readBytes : LARGE_READ_BYTES;
    const bytes = this.#take(Math.min(this.#heldBytes, readBytes, untilCut));
    this.deliveredBytes += bytes.length;
    this.#acceptWaiting();
    // Before the reader, which may break this pipe.
    if (this.#heldBytes > 0 || this.#state === 'ending' || bytes.length === untilCut) {
      this.#deliverLater(this.#chance.chance(50) ? 0 : this.#latencyMs());
    }
    this.#reader.onData(bytes);
  }

  #finish(): void {
    this.#state = 'ended';
    this.#reader.onEnd();
  }

  #acceptWaiting(): void {
    while (this.#heldBytes < this.#profile.capacityBytes) {
      const write = this.#waiting.shift();
      if (write === undefined) return;
      this.#hold(write.bytes);
      write.done();
    }
  }

  #take(sizeBytes: number): Buffer {
    const all = this.#held.length === 1 ? (this.#held[0] as Buffer) : Buffer.concat(this.#held);
    const rest = all.subarray(sizeBytes);
    this.#held = rest.length === 0 ? [] : [rest];
    this.#heldBytes = rest.length;
    return all.subarray(0, sizeBytes);
  }
}
