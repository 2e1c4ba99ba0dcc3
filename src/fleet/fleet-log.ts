import type { FleetState } from './fleet-state.ts';
import type { GatewayView } from './standing.ts';

/** Where a fleet's changes are logged. A pino logger fits. */
export interface FleetLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Tells the log of a fleet what changes, one line each. */
export class FleetLog {
  readonly #log: FleetLogger;
  #isReachable: boolean | null = null;
  /** The ids of the others that were believed at the last round. */
  #alive: ReadonlySet<string> = new Set();
  /** What was in the store at the last look, and no gateway wrote. */
  #foreign: ReadonlySet<string> = new Set();

  constructor(log: FleetLogger) {
    this.#log = log;
  }

  begun({ name, id, members }: FleetState, hasJoined: boolean): void {
    const fields = { name, id, gateways: [...members.values()] };
    if (hasJoined) this.#log.info(fields, 'joined the fleet');
    else this.#log.warn(fields, 'the shared state cannot be reached: serving with the last known drains');
  }

  /** A round went well. */
  reachable(gateways: readonly GatewayView[]): void {
    if (this.#isReachable === false) this.#log.info({}, 'the shared state can be reached again');
    this.#isReachable = true;
    const others = gateways.filter(({ isSelf }) => !isSelf);
    const alive = new Set(others.filter(({ isAlive }) => isAlive).map(({ id }) => id));
    for (const { id, name } of others) {
      if (alive.has(id) === this.#alive.has(id)) continue;
      if (alive.has(id)) this.#log.info({ gateway: name, id }, 'a gateway is heard');
      else this.#log.warn({ gateway: name, id }, 'a gateway has vanished: drains wait for it');
    }
    this.#alive = alive;
  }

  unreachable(reason: string): void {
    if (this.#isReachable !== false) this.#log.warn({ reason }, 'the shared state cannot be reached');
    this.#isReachable = false;
  }

  /** Names what is in the store and no gateway wrote, once for as long as it is there. */
  foreign(names: readonly string[]): void {
    const foreign = names.filter((name) => !this.#foreign.has(name));
    if (foreign.length > 0) {
      this.#log.warn({ foreign }, 'the shared state holds what no gateway wrote');
    }
    this.#foreign = new Set(names);
  }

  /** What a reading brought: gateways that left, drains and undrains of others. */
  heard(before: FleetState, after: FleetState): void {
    for (const [id, name] of before.members) {
      if (!after.members.has(id)) this.#log.info({ gateway: name, id }, 'a gateway has left the fleet');
    }
    for (const [replica, drain] of after.drains) {
      if (before.drains.get(replica) === drain) continue;
      const { drained, reason, since } = drain;
      this.#log.info(
        { action: drained ? 'drain' : 'undrain', replica, reason, since },
        'heard of by the fleet',
      );
    }
    if (after.id !== before.id) {
      this.#log.warn(
        { id: after.id },
        'this gateway had been forgotten while it ran: it joins the fleet anew',
      );
    }
  }

  notStored(replica: string, error: unknown): void {
    this.#log.error({ err: error, replica }, 'a drain state of the fleet could not be stored; trying again');
  }
}
