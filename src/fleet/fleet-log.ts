import type { FleetState } from './fleet-state.ts';

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

  constructor(log: FleetLogger) {
    this.#log = log;
  }

  begun({ name, id, members }: FleetState, hasJoined: boolean): void {
    const fields = { name, id, gateways: [...members.values()] };
    if (hasJoined) this.#log.info(fields, 'joined the fleet');
    else this.#log.warn(fields, 'the shared state cannot be reached: serving with the last known drains');
  }

  reachable(): void {
    if (this.#isReachable === false) this.#log.info({}, 'the shared state can be reached again');
    this.#isReachable = true;
  }

  unreachable(reason: string): void {
    if (this.#isReachable !== false) this.#log.warn({ reason }, 'the shared state cannot be reached');
    this.#isReachable = false;
  }

  /** What a reading brought: gateways that came and went, drains and undrains of others. */
  heard(before: FleetState, after: FleetState): void {
    for (const [id, name] of after.members) {
      if (!before.members.has(id)) this.#log.info({ gateway: name, id }, 'a gateway is in the fleet');
    }
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
