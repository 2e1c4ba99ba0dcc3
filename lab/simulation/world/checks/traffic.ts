import type { End } from '../../engine/end.ts';
import { hostOf, PORTS } from '../addresses.ts';
import { HttpReader } from '../http-reader.ts';

/** One request that a gateway has begun to write to a replica. */
interface SentRequest {
  readonly end: End;
  readonly gateway: string;
  readonly step: number;
  /** The replica has answered it, or has broken off. */
  isFinished: boolean;
}

/** The requests on one connection to a replica. */
interface ConnectionTraffic {
  readonly reader: HttpReader;
  current: SentRequest | null;
}

/** Called with each request that a gateway begins to write to a replica. */
type SentListener = (request: {
  readonly gateway: string;
  readonly replica: number;
  readonly step: number;
}) => void;

const REPLICA_BY_ADDRESS: ReadonlyMap<string, number> = new Map(
  Array.from({ length: 16 }, (_, index) => [`${hostOf.replica(index)}:${PORTS.replica}`, index] as const),
);

/**
 * What gateways write to replicas, seen at the system call: a request counts as in flight from its first byte, wherever
 * the bytes are, until the replica has answered or either side has closed the connection.
 */
export class Traffic {
  readonly #connections = new Map<End, ConnectionTraffic>();
  readonly #sent = new Map<number, SentRequest[]>();
  readonly #onSent: SentListener;

  constructor(onSent: SentListener) {
    this.#onSent = onSent;
  }

  /** Returns false if this is no connection to a replica. */
  onWrite(end: End, bytes: Buffer, step: number): boolean {
    const replica = REPLICA_BY_ADDRESS.get(end.remoteAddress);
    if (replica === undefined) return false;
    const known = this.#connections.get(end);
    const traffic = known ?? { reader: new HttpReader('request', () => undefined), current: null };
    if (known === undefined) this.#connections.set(end, traffic);
    // Probes read /v1/models; every request of a client is a POST.
    if (!traffic.reader.hasPart && bytes[0] === POST) {
      const gateway = end.localAddress.split(':')[0] ?? '';
      traffic.current = { end, gateway, step, isFinished: false };
      this.#sentTo(replica).push(traffic.current);
      this.#onSent({ gateway, replica, step });
    }
    traffic.reader.push(bytes);
    return true;
  }

  /** The replica has answered, or has broken off, on this connection. `end` is the gateway's side. */
  onResponseEnd(end: End): void {
    const traffic = this.#connections.get(end);
    if (traffic?.current != null) traffic.current.isFinished = true;
  }

  inflight(replica: number): number {
    return this.#sentTo(replica).filter(
      ({ end, isFinished }) => !isFinished && !end.isClosed && !end.peer.isClosed && !end.hasFailed,
    ).length;
  }

  /** The requests that were begun after a step. */
  sentSince(replica: number, step: number): readonly Pick<SentRequest, 'gateway' | 'step'>[] {
    return this.#sentTo(replica).filter((request) => request.step > step);
  }

  #sentTo(replica: number): SentRequest[] {
    const sent = this.#sent.get(replica) ?? [];
    this.#sent.set(replica, sent);
    return sent;
  }
}

const POST = 'P'.charCodeAt(0);
