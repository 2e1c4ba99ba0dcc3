/** What a client with limits has used of one gateway. Negative: estimates of before were too high. */
export interface ClientUse {
  readonly requests: number;
  readonly tokens: number;
}

/** What a heartbeat says of clients. */
interface UseReport {
  /** The id of the gateway. */
  readonly id: string;
  /** Of the heartbeat. It begins again with each start. */
  readonly number: number;
  readonly used?: ReadonlyMap<string, ClientUse>;
}

/** The limits of this gateway's clients. */
export interface ClientLimitsPort {
  /**
   * What clients have used since this gateway started, by name: those whose use has changed since the last call, which
   * costs little with many others.
   */
  takeChanged(): ReadonlyMap<string, ClientUse>;
  /** Charges a client for what it has used of another gateway. */
  charge(name: string, use: ClientUse): void;
  /** Has this called with the name of each client whose use begins at nothing again. */
  onForgotten(listener: (name: string) => void): void;
}

/** A client stays in so many heartbeats after its use has changed: not each of them is read. */
const REPEATED_HEARTBEATS = 10;

/** More clients in one heartbeat would make it larger than 300 KB. */
const MAX_CLIENTS = 5_000;

/**
 * Exchanges what clients use through the heartbeats, so that each gateway charges the budgets of its clients with what
 * they use of all gateways. No request waits for it: a gateway learns of the use a second or two later, and the client
 * then waits until the budget has refilled.
 */
export class ClientUseExchange {
  readonly #limits: ClientLimitsPort;
  /** The clients in the heartbeats: their use, and in how many more heartbeats they are. */
  readonly #told = new Map<string, { readonly use: ClientUse; readonly rest: number }>();
  /** Their use when they were last not in the heartbeats, which tell what was used after that. */
  readonly #bases = new Map<string, ClientUse>();
  /** What the others told last, by id, and for how many more reads that is kept: an outage of the store is no absence. */
  readonly #known = new Map<string, UseReport & { readonly rest: number }>();

  constructor(limits: ClientLimitsPort) {
    this.#limits = limits;
    limits.onForgotten((name) => {
      this.#told.delete(name);
      this.#bases.delete(name);
    });
  }

  /** What the next heartbeat says. */
  nextReport(): ReadonlyMap<string, ClientUse> {
    // Each keeps its place, so that one that is told is not left out in between: readers would charge all of it again.
    for (const [name, use] of this.#limits.takeChanged())
      this.#told.set(name, { use, rest: REPEATED_HEARTBEATS });
    const report = new Map<string, ClientUse>();
    for (const [name, { use, rest }] of this.#told) {
      if (rest === 0) {
        this.#told.delete(name);
        this.#bases.set(name, use);
      } else if (report.size < MAX_CLIENTS) {
        this.#told.set(name, { use, rest: rest - 1 });
        report.set(name, subtract(use, this.#bases.get(name) ?? NOTHING));
      }
    }
    return report;
  }

  /** Charges what was used since the last heartbeats, and nothing for a gateway's first: it may be about long ago. */
  take(heartbeats: readonly UseReport[], ownId: string): void {
    for (const [id, known] of this.#known) {
      if (known.rest === 0) this.#known.delete(id);
      else this.#known.set(id, { ...known, rest: known.rest - 1 });
    }
    for (const heartbeat of heartbeats) {
      const { id, number, used = [] } = heartbeat;
      if (id === ownId) continue;
      const known = this.#known.get(id);
      this.#known.set(id, { ...heartbeat, rest: REPEATED_HEARTBEATS });
      if (known === undefined) continue;
      // After a restart, and after so many heartbeats, the use of a client may count from another beginning.
      const isContinued = number >= known.number && number - known.number < REPEATED_HEARTBEATS;
      for (const [name, use] of used) {
        const more = subtract(use, known.used?.get(name) ?? NOTHING, isContinued ? undefined : 0);
        if (more.requests !== 0 || more.tokens !== 0) this.#limits.charge(name, more);
      }
    }
  }
}

const NOTHING: ClientUse = { requests: 0, tokens: 0 };

function subtract(a: ClientUse, b: ClientUse, least = Number.NEGATIVE_INFINITY): ClientUse {
  return { requests: Math.max(a.requests - b.requests, least), tokens: Math.max(a.tokens - b.tokens, least) };
}
