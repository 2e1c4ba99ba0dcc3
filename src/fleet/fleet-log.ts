import type { Log } from '#otel/base';
import type { DrainState } from '#replicas/drain-state';
import { logForgotten } from '#replicas/drains';
import type { FleetState } from './rules/fleet-state.ts';
import type { LeftWork } from './rules/left-work.ts';
import type { GatewayStatus } from './rules/liveness.ts';

/** Logs changes of the fleet, each once. */
export class FleetLog {
  readonly #log: Log;
  readonly #onDrain: ((replica: string, drain: DrainState) => void) | undefined;
  /** The ids of the other gateways that were alive at the last sync. */
  #alive: ReadonlySet<string> = new Set();
  /** The foreign keys and fields that the last sync found in the store. */
  #foreign: ReadonlySet<string> = new Set();

  /** `onDrain`: called for each drain and undrain by another gateway. */
  constructor(log: Log, onDrain?: (replica: string, drain: DrainState) => void) {
    this.#log = log;
    this.#onDrain = onDrain;
  }

  /** Tells why the start takes long. `address`: where the store is; `waitMs`: for how long it waits at most. */
  waits(reason: string, address: string, waitMs: number): void {
    this.#log.warn({ redis: address, reason, wait_ms: waitMs }, 'the start waits for the shared state');
  }

  started({ name, id, members }: FleetState, hasJoined: boolean): void {
    const fields = { name, id, gateways: [...members.values()] };
    if (hasJoined) this.#log.info(fields, 'joined the fleet');
    else this.#log.warn(fields, 'the shared state cannot be used: serving with the last known drains');
  }

  /** Logs which gateways have come and gone. */
  seen(gateways: readonly GatewayStatus[]): void {
    const others = gateways.filter(({ isSelf }) => !isSelf);
    const alive = new Set(others.filter(({ isAlive }) => isAlive).map(({ id }) => id));
    for (const { id, name, isAlive } of others) {
      if (alive.has(id) === this.#alive.has(id)) continue;
      if (isAlive) this.#log.info({ gateway: name, id }, 'a gateway is alive');
      else if (isAlive === null) alive.add(id);
      else this.#log.warn({ gateway: name, id }, 'a gateway has vanished: drains wait for it');
    }
    this.#alive = alive;
  }

  notLeft(reason: string): void {
    this.#log.warn({ reason }, 'the fleet could not be told that this gateway stops');
  }

  /** Names data in the store that no gateway wrote. Names each item once for as long as it is there. */
  foreign(names: readonly string[]): void {
    const foreign = names.filter((name) => !this.#foreign.has(name));
    if (foreign.length > 0) {
      this.#log.warn({ foreign }, 'the shared state contains data that no gateway wrote');
    }
    this.#foreign = new Set(names);
  }

  /** Logs what a read changed: gateways that left, and drains and undrains by other gateways. */
  merged(before: FleetState, after: FleetState): void {
    for (const [id, name] of before.members) {
      if (!after.members.has(id)) this.#log.info({ gateway: name, id }, 'a gateway has left the fleet');
    }
    for (const [replica, drain] of after.drains) {
      if (before.drains.get(replica) === drain) continue;
      const { drained, reason, since } = drain;
      const action = drained ? 'drain' : 'undrain';
      this.#log.info({ action, replica, reason, since }, 'received from the fleet');
      this.#onDrain?.(replica, drain);
    }
    if (after.id !== before.id) {
      this.#log.warn({ id: after.id }, 'this gateway was forgotten while it ran: it rejoins the fleet');
    }
  }

  /** Logs whose responses in the background nobody follows any more, and which of them are followed again, or over. */
  left({ left: before }: Pick<FleetState, 'left'>, { left: after }: Pick<FleetState, 'left'>): void {
    for (const [home, work] of after) {
      const known = before.get(home);
      if (known === work) continue;
      if (work.counts.size > 0) {
        this.#log.info(
          toFields(work),
          'a gateway has stopped with responses in the background: drains wait for them',
        );
      } else if (known !== undefined && known.counts.size > 0) {
        this.#log.info(toFields(known), 'a gateway goes on with its responses in the background');
      }
    }
    for (const [home, work] of before) {
      if (after.has(home) || work.counts.size === 0) continue;
      this.#log.warn(
        toFields(work),
        'responses in the background of a gateway that has stopped are older than limits.background: the replicas may still go on with them',
      );
    }
  }

  /** Logs the names whose drain states no gateway needs any more. */
  forgotten(names: readonly string[]): void {
    logForgotten(names, this.#log);
  }

  notStored(replica: string, error: unknown): void {
    this.#log.error({ err: error, replica }, 'a drain state of the fleet could not be stored; trying again');
  }
}

function toFields({ name, counts }: LeftWork): object {
  return { gateway: name, responses: counts.values().reduce((sum, count) => sum + count, 0) };
}
