import { hostOf } from '../addresses.ts';
import type { AdminAnswer } from './facts.ts';
import type { Traffic } from './traffic.ts';

/** What a gateway has promised of a drained replica. */
interface Claim {
  readonly made: string;
  /** The gateways that may send it nothing; null: none may. */
  readonly gateways: ReadonlySet<string> | null;
  /** The gateway that could not store it: its restart ends the promise. */
  readonly volatileAt: string | null;
}

/** A replica as the admin API shows it, as far as a drain goes. */
interface ShownReplica {
  readonly name: string;
  readonly drained: boolean;
  readonly safe_to_stop: boolean | null;
}

/** What is known of the operators' calls for one replica. */
interface Calls {
  claims: Claim[];
  /** An undrain is under way, or nobody knows what became of one. */
  isUncertain: boolean;
}

/**
 * Holds the gateways to what they answer: no request to a replica after the answer of its drain, and `safe_to_stop` only
 * when nothing is in flight and nothing can come.
 */
export class DrainClaims {
  readonly #byReplica = new Map<number, Calls>();
  readonly #traffic: Traffic;
  readonly #violate: (text: string) => void;

  constructor(traffic: Traffic, violate: (text: string) => void) {
    this.#traffic = traffic;
    this.#violate = violate;
  }

  onSent({ gateway, replica }: { readonly gateway: string; readonly replica: number }): void {
    for (const { made, gateways } of this.#callsOf(replica).claims) {
      if (gateways !== null && !gateways.has(gateway)) continue;
      this.#violate(`${gateway} sends a request to replica-${replica} after ${made}`);
    }
  }

  /** An operator calls drain or undrain. Calls for one replica come one after another. */
  onCall(action: 'drain' | 'undrain', replica: number): void {
    const calls = this.#callsOf(replica);
    if (action === 'drain') return;
    calls.claims = [];
    calls.isUncertain = true;
  }

  /** The gateway writes its answer to a drain or an undrain. */
  onAnswer(
    action: 'drain' | 'undrain',
    replica: number,
    gateway: number,
    { status, json }: AdminAnswer,
  ): void {
    if (status !== 200) return;
    const calls = this.#callsOf(replica);
    const warning = String(json.warning ?? '');
    const isConfirmed = json.overtaken !== true && !warning.includes('not confirmed it yet');
    if (!isConfirmed) {
      calls.isUncertain = true;
      calls.claims = [];
      return;
    }
    calls.isUncertain = false;
    if (action === 'undrain') return;
    const unconfirmed = (json.unconfirmed ?? []) as readonly string[];
    const isEverywhere = json.scope === 'fleet' && unconfirmed.length === 0;
    calls.claims.push({
      made: `the answer of its drain at ${hostOf.gateway(gateway)}`,
      gateways: isEverywhere ? null : new Set([hostOf.gateway(gateway)]),
      volatileAt: warning.includes('could not be stored') ? hostOf.gateway(gateway) : null,
    });
  }

  /** A gateway writes an answer that shows replicas. */
  onShown(gateway: number, shown: readonly ShownReplica[]): void {
    for (const { name, safe_to_stop: isSafe } of shown) {
      if (isSafe !== true) continue;
      const replica = Number(name.slice('replica-'.length));
      const calls = this.#callsOf(replica);
      if (calls.isUncertain) continue;
      const inflight = this.#traffic.inflight(replica);
      const made = `safe_to_stop at ${hostOf.gateway(gateway)}`;
      if (inflight > 0) this.#violate(`${made} of ${name} while ${inflight} requests are in flight on it`);
      calls.claims.push({ made, gateways: null, volatileAt: null });
    }
  }

  /** A gateway starts again. `hadFaults`: its disk had faults, so that it may have forgotten drains. */
  onRestart(gateway: number, hadFaults: boolean): void {
    const host = hostOf.gateway(gateway);
    for (const calls of this.#byReplica.values()) {
      calls.claims = calls.claims.filter(
        ({ gateways, volatileAt }) => volatileAt !== host && !(hadFaults && (gateways?.has(host) ?? true)),
      );
    }
  }

  #callsOf(replica: number): Calls {
    const calls = this.#byReplica.get(replica) ?? { claims: [], isUncertain: false };
    this.#byReplica.set(replica, calls);
    return calls;
  }
}
