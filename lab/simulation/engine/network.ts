import { type Chance, createChance } from './chance.ts';
import { End, type SocketErrorCode, type WriteListener } from './end.ts';
import { Pipe, type PipeProfile } from './pipe.ts';
import type { Owner, Schedule } from './schedule.ts';

/** A listening socket. */
export interface Listener {
  readonly owner: Owner;
  /** Whether the address may have several of them. */
  readonly reusesPort: boolean;
  accept(end: End): void;
}

/** What decides how connections behave. */
export interface NetworkPolicy {
  /** How connections from one host to an address behave, each of them. */
  profileOf(from: string, to: string, chance: Chance): PipeProfile;
  /** Whether a connection attempt is refused, gets no answer, or succeeds if somebody listens. */
  admits(from: string, to: string): 'refused' | 'silent' | 'open';
}

/** Some first packets are late, so that much can happen while a connection opens. */
const LATE_SYN_PERCENT = 15;
const LATEST_SYN_MS = 250;

/** The simulated network: hosts by address, listeners, connections. */
export class Network {
  onWrite: WriteListener = () => undefined;
  /** The sides of connections that their owners have not closed. */
  readonly open = new Set<End>();
  readonly #listeners = new Map<string, Listener[]>();
  readonly #schedule: Schedule;
  readonly #policy: NetworkPolicy;
  readonly #seed: number;
  readonly #chance: Chance;
  readonly #attempts = new Map<string, number>();
  #lastPort = 40_000;

  constructor(seed: number, schedule: Schedule, policy: NetworkPolicy) {
    this.#seed = seed;
    this.#schedule = schedule;
    this.#policy = policy;
    this.#chance = createChance(seed, 'network');
  }

  /** Who listens, by address. */
  get listening(): readonly (readonly [string, Owner])[] {
    return [...this.#listeners].flatMap(([address, all]) =>
      all.map(({ owner }) => [address, owner] as const),
    );
  }

  /** A port that nobody listens on. */
  freePort(): number {
    return ++this.#lastPort;
  }

  /** Returns EADDRINUSE if somebody else has the address. */
  listen(address: string, listener: Listener): SocketErrorCode | null {
    const there = this.#listeners.get(address) ?? [];
    if (there.length > 0 && !(listener.reusesPort && there.every(({ reusesPort }) => reusesPort))) {
      return 'EADDRINUSE';
    }
    this.#listeners.set(address, [...there, listener]);
    return null;
  }

  stopListening(address: string, listener: Listener): void {
    const rest = (this.#listeners.get(address) ?? []).filter((each) => each !== listener);
    if (rest.length === 0) this.#listeners.delete(address);
    else this.#listeners.set(address, rest);
  }

  isListening(address: string): boolean {
    return this.#listeners.has(address);
  }

  /** Connects. `done` gets the side of the caller, or the system's error. */
  connect(
    from: string,
    to: string,
    owner: Owner,
    done: (error: SocketErrorCode | null, end: End | null) => void,
  ): void {
    const attempt = (this.#attempts.get(`${from}>${to}`) ?? 0) + 1;
    this.#attempts.set(`${from}>${to}`, attempt);
    const label = `${from}>${to}#${attempt}`;
    const chance = createChance(this.#seed, label);
    const profile = this.#policy.profileOf(from, to, chance);
    const [least, bound] = profile.latencyMs;
    // At the other host: the system answers, whoever listens.
    const lateMs = chance.chance(LATE_SYN_PERCENT) ? chance.between(5, LATEST_SYN_MS) : 0;
    this.#schedule.after(lateMs + chance.between(least, bound), owner, `syn ${label}`, () => {
      const admission = this.#policy.admits(from, to);
      if (admission === 'silent') return;
      const listeners = this.#listeners.get(to) ?? [];
      const backMs = chance.between(least, bound);
      if (admission === 'refused' || listeners.length === 0) {
        this.#schedule.after(backMs, owner, `refused ${label}`, () => done('ECONNREFUSED', null));
        return;
      }
      const listener = chance.pick(listeners);
      const [near, far] = this.#connectEnds(label, profile, chance, { from, to, owner, listener });
      this.#schedule.after(backMs, owner, `connected ${label}`, () => {
        near.isHandedOver = true;
        if (!near.hasFailed) {
          done(null, near);
          return;
        }
        // The listener has closed before it accepted the connection.
        near.close();
        done('ECONNRESET', null);
      });
      this.#schedule.after(chance.between(0, 0.2), listener.owner, `accept ${label}`, () => {
        far.isHandedOver = true;
        if (this.#listeners.get(to)?.includes(listener) === true) {
          listener.accept(far);
          return;
        }
        far.reset();
        far.close();
      });
    });
  }

  /** A side gets ECONNRESET when its system learns that the connection is gone. */
  failLater(end: End): void {
    this.#schedule.after(this.#chance.between(0.05, 2), end.owner, `reset ${end.localAddress}`, () =>
      end.fail('ECONNRESET'),
    );
  }

  forget(end: End): void {
    this.open.delete(end);
  }

  /** Closes all that a thread or process had open, as the system does when it ends. */
  closeAllOf(owner: Owner): void {
    for (const [address, listeners] of [...this.#listeners]) {
      for (const listener of listeners) if (listener.owner === owner) this.stopListening(address, listener);
    }
    for (const end of [...this.open]) if (end.owner === owner) end.close();
  }

  #connectEnds(
    label: string,
    profile: PipeProfile,
    chance: Chance,
    { from, to, owner, listener }: { from: string; to: string; owner: Owner; listener: Listener },
  ): readonly [End, End] {
    const near = new End(this, owner, `${from}:${this.freePort()}`, to);
    const far = new End(this, listener.owner, to, near.localAddress);
    near.peer = far;
    far.peer = near;
    near.out = this.#createPipe(`${label} →`, profile, chance, far);
    far.out = this.#createPipe(`${label} ←`, profile, chance, near);
    this.open.add(near).add(far);
    return [near, far];
  }

  #createPipe(label: string, profile: PipeProfile, chance: Chance, reader: End): Pipe {
    return new Pipe(
      profile,
      {
        owner: reader.owner,
        onData: (bytes) => reader.handler.onData(bytes),
        onEnd: () => reader.handler.onEnd(),
      },
      { schedule: this.#schedule, chance, label },
    );
  }
}
