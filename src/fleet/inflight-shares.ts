import { idleShareOf } from '#access/limits';

/** What a gateway tells of a client with `max_inflight`. */
export interface InflightReport {
  /** It has no more in flight than this until it tells something else. */
  readonly held: number;
  /** How many requests it would have in flight if it might. */
  readonly wanted: number;
}

/** What happened on this gateway to a client since the last look. */
export interface InflightUse {
  readonly inflight: number;
  readonly refused: number;
}

/** The limits of this gateway's clients. */
export interface InflightPort {
  /** The clients with `max_inflight` that have requests in flight, or had some refused since the last call, by name. */
  takeInflight(): ReadonlyMap<string, InflightUse>;
  /** `max_inflight` of a client; null: it has none, or this gateway does not know it. */
  maxInflightOf(name: string): number | null;
  /** Sets how many requests of a client may be in flight here; null: the idle share, which is an even one. */
  setShare(name: string, share: number | null): void;
  /** Sets how many gateways divide the limits, and the rank of this one: the idle share follows from it. */
  divideBy(gatewayCount: number, rank: number): void;
}

/** What a heartbeat says of them; `running` is not known of a gateway that has to tell it anew. */
export interface SharesReport {
  readonly id: string;
  readonly running?: ReadonlyMap<string, InflightReport>;
}

/** What a client wanted is remembered for so many heartbeats, so that a short pause does not cost it its share. */
const REMEMBERED_HEARTBEATS = 10;

/** Of further clients the idle share holds. More would make heartbeats large. */
const MAX_CLIENTS = 5_000;

interface OwnClient {
  inflight: number;
  /** The most that it wanted of late. */
  wanted: number;
  /** For how many more heartbeats less than that does not count. */
  wantedRest: number;
  /** In how many more heartbeats it is. */
  rest: number;
  share: number;
}

/**
 * Divides `max_inflight` of each client between the gateways, by what each of them needs. A share grows only into what
 * the others have told that they do not hold, so that all together stay within the limit but for the moments in which
 * two gateways have read different heartbeats. Shares are set ahead: no request waits. Every gateway admits at least one
 * request, or a client with a small limit would find no way through some of them.
 */
export class InflightShares {
  readonly #port: InflightPort;
  readonly #clients = new Map<string, OwnClient>();

  constructor(port: InflightPort) {
    this.#port = port;
  }

  /** Sets the shares after the heartbeats of the other gateways that are there. */
  take(others: readonly SharesReport[], ownId: string): void {
    const ids = [ownId, ...others.map(({ id }) => id)].sort();
    const rank = ids.indexOf(ownId);
    this.#port.divideBy(ids.length, rank);
    this.#noteOwn();
    for (const { running = NOBODY } of others) {
      // Where nobody wants anything the idle share holds after a while.
      for (const [name, { wanted }] of running) if (wanted > 0) this.#know(name);
    }
    const reports = new Map(others.map(({ id, running }) => [id, running]));
    for (const [name, own] of this.#clients) {
      const limit = this.#port.maxInflightOf(name);
      if (limit === null || own.rest === 0) {
        this.#clients.delete(name);
        this.#port.setShare(name, null);
        continue;
      }
      const told = ids.map((id) => (id === ownId ? { ...own, held: 0 } : reports.get(id)?.get(name)));
      const wanted = told.map((each) => each?.wanted ?? 0);
      const toHeld = (index: number) => told[index]?.held ?? idleShareOf(limit, ids.length, index);
      const held = ids.reduce((sum, _, index) => sum + toHeld(index), 0);
      own.share = Math.max(1, Math.min(splitInflight(limit, wanted)[rank] ?? 0, limit - held));
      this.#port.setShare(name, own.share);
    }
  }

  /** What the next heartbeat says. */
  nextReport(): ReadonlyMap<string, InflightReport> {
    const report = new Map<string, InflightReport>();
    for (const [name, own] of this.#clients) {
      own.rest -= 1;
      report.set(name, { held: Math.max(own.share, own.inflight), wanted: own.wanted });
    }
    return report;
  }

  /** The other gateways cannot be heard: each takes its idle share. */
  standAlone(): void {
    for (const name of this.#clients.keys()) this.#port.setShare(name, null);
    this.#clients.clear();
  }

  #noteOwn(): void {
    const used = this.#port.takeInflight();
    for (const name of used.keys()) this.#know(name);
    for (const [name, own] of this.#clients) {
      const { inflight, refused } = used.get(name) ?? NOTHING;
      const wanted = inflight + refused;
      own.inflight = inflight;
      own.wantedRest -= 1;
      if (wanted < own.wanted && own.wantedRest > 0) continue;
      own.wanted = wanted;
      own.wantedRest = REMEMBERED_HEARTBEATS;
    }
  }

  /** Keeps a client in the next heartbeats, unless there are too many. */
  #know(name: string): void {
    const known = this.#clients.get(name);
    if (known !== undefined) known.rest = REMEMBERED_HEARTBEATS;
    else if (this.#clients.size < MAX_CLIENTS)
      this.#clients.set(name, { ...NEW_CLIENT, rest: REMEMBERED_HEARTBEATS });
  }
}

const NEW_CLIENT = { inflight: 0, wanted: 0, wantedRest: 0, share: 0 };
const NOBODY: ReadonlyMap<string, InflightReport> = new Map();
const NOTHING: InflightUse = { inflight: 0, refused: 0 };

/*
 * How gateways divide `max_inflight` of a client. Pure functions: each gateway computes the shares of all from what they
 * told last. The shares of one division never add up to more than the limit.
 */

/**
 * Divides a limit by what the gateways want, in the order of their ranks. Who wants less than its part gets that, and
 * the others share the rest evenly (max-min fairness). What nobody wants is divided evenly too, ahead of new requests.
 */
export function splitInflight(limit: number, wanted: readonly number[]): readonly number[] {
  const shares = wanted.map(() => 0);
  let rest = limit;
  let open = wanted.map((want, rank) => ({ want, rank }));
  while (open.length > 0) {
    const part = Math.floor(rest / open.length);
    const content = open.filter(({ want }) => want <= part);
    if (content.length === 0) break;
    for (const { want, rank } of content) {
      shares[rank] = want;
      rest -= want;
    }
    open = open.filter(({ want }) => want > part);
  }
  const takers = open.length > 0 ? open.map(({ rank }) => rank) : wanted.map((_, rank) => rank);
  for (const [index, rank] of takers.entries()) {
    shares[rank] = (shares[rank] ?? 0) + idleShareOf(rest, takers.length, index);
  }
  return shares;
}
