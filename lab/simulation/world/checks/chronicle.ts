import type { End } from '../../engine/end.ts';
import type { Schedule } from '../../engine/schedule.ts';
import { PORTS } from '../addresses.ts';
import { HttpReader, type Message, statusOf } from '../http-reader.ts';
import { checkDelivery, checkPatience, checkResponse } from './check-response.ts';
import { DrainClaims } from './drain-claims.ts';
import type { AdminAnswer, ClientView, CollectedSpan, Served } from './facts.ts';
import { Traffic } from './traffic.ts';

/** Something that must never happen. */
export interface Violation {
  readonly text: string;
  readonly step: number;
  readonly atMs: number;
}

/** What can be expected of a world. */
export interface Conditions {
  /** No machine and no connection has faults. */
  readonly isCalm: boolean;
  /** No thread and no connection stalls, and the network is fast. */
  readonly isPunctual: boolean;
}

/** A call of the admin API that has no answer yet. */
interface AdminCall {
  readonly gateway: number;
  readonly call: string;
}

/** What has happened in a world, seen from outside of the gateways. It checks what can be checked at each step. */
export class Chronicle {
  readonly served: Served[] = [];
  readonly views: ClientView[] = [];
  /** The records by span id: a collector may get one several times. */
  readonly collected = new Map<string, CollectedSpan>();
  /** The records that the collector has refused for good, by span id. */
  readonly refused = new Map<string, CollectedSpan>();
  /** The ledger spans, by span id. */
  readonly ledgers = new Map<string, CollectedSpan>();
  readonly refusedLedgers = new Map<string, CollectedSpan>();
  violation: Violation | null = null;
  readonly traffic: Traffic;
  readonly claims: DrainClaims;
  readonly #schedule: Schedule;
  readonly #conditions: Conditions;
  readonly #adminCalls = new Map<End, AdminCall & { readonly reader: HttpReader }>();

  constructor(schedule: Schedule, conditions: Conditions) {
    this.#conditions = conditions;
    this.#schedule = schedule;
    this.traffic = new Traffic((request) => this.claims.onSent(request));
    this.claims = new DrainClaims(this.traffic, (text) => this.violate(text));
  }

  /** Only the first one counts: what follows may follow from it. */
  violate(text: string): void {
    this.violation ??= { text, step: this.#schedule.step, atMs: this.#schedule.nowMs };
  }

  /** A system call writes bytes to a connection. */
  readonly onWrite = (end: End, bytes: Buffer): void => {
    if (this.traffic.onWrite(end, bytes, this.#schedule.step)) return;
    if (end.localAddress.endsWith(`:${PORTS.admin}`)) this.#adminCalls.get(end)?.reader.push(bytes);
  };

  /** How often a replica got the request. */
  attemptsOf(id: string): number {
    return this.served.filter(({ plan }) => plan.id === id).length;
  }

  onServed(served: Served, { fields, body }: Message): void {
    this.served.push(served);
    if (fields.get('x-tenant') !== served.plan.id)
      this.violate(`another tenant reaches the replica: ${served.plan.id}`);
    const prompt = body.toString().split('x'.repeat(100)).length;
    if (prompt < Math.trunc(served.plan.promptChars / 100))
      this.violate(`the prompt of ${served.plan.id} is cut`);
    const first = this.served.find(({ plan }) => plan.id === served.plan.id);
    if (first?.requestId !== served.requestId) this.violate(`${served.plan.id} has two request ids`);
    if (
      this.served.some(({ plan, requestId }) => plan.id !== served.plan.id && requestId === served.requestId)
    ) {
      this.violate(`${served.plan.id} has the request id of another request`);
    }
  }

  /** The replica has answered or broken off on a connection; `end` is the gateway's side. */
  onResponseEnd(end: End): void {
    this.traffic.onResponseEnd(end);
  }

  onCollected(record: CollectedSpan): void {
    const known = this.collected.get(record.spanId);
    if (known !== undefined && known.traceId !== record.traceId)
      this.violate(`two spans have the id ${record.spanId}`);
    this.collected.set(record.spanId, record);
  }

  onRefused(record: CollectedSpan): void {
    this.refused.set(record.spanId, record);
  }

  onLedger(ledger: CollectedSpan): void {
    this.ledgers.set(ledger.spanId, ledger);
  }

  onLedgerRefused(ledger: CollectedSpan): void {
    this.refusedLedgers.set(ledger.spanId, ledger);
  }

  onClientEnd(view: ClientView): void {
    this.views.push(view);
    const own = this.served.filter(({ plan }) => plan.id === view.plan.id);
    const { isCalm, isPunctual } = this.#conditions;
    const problem =
      checkResponse(view, own) ??
      (isPunctual ? checkPatience(view) : null) ??
      (isCalm ? checkDelivery(view, own) : null);
    if (problem !== null) this.violate(problem);
  }

  /** An operator begins to write a call. `end` is the operator's side. */
  onAdminCall(end: End, gateway: number, call: string): void {
    const reader = new HttpReader('response', (message) => {
      this.#onAdminAnswer(
        { gateway, call },
        { status: statusOf(message), json: JSON.parse(message.body.toString()) },
      );
    });
    this.#adminCalls.set(end.peer, { gateway, call, reader });
  }

  /** The gateway writes the last byte of an answer. */
  #onAdminAnswer({ gateway, call }: AdminCall, answer: AdminAnswer): void {
    const { json } = answer;
    const [, name, action] = /\/replicas\/replica-(\d+)\/(drain|undrain)$/.exec(call) ?? [];
    if (name !== undefined)
      this.claims.onAnswer(action as 'drain' | 'undrain', Number(name), gateway, answer);
    const shown = json.replicas ?? (json.replica === undefined ? [] : [json.replica]);
    this.claims.onShown(gateway, shown as Parameters<DrainClaims['onShown']>[1]);
    if (call.endsWith('/stats')) this.#checkStats(gateway, json as Readonly<Record<string, number>>);
  }

  #checkStats(gateway: number, stats: Readonly<Record<string, number>>): void {
    const sum = (names: readonly string[]) =>
      names.reduce((total, name) => total + (stats[name] ?? Number.NaN), 0);
    const entered = sum(['recorded', 'restored']);
    const left = sum(['exported', 'dropped', 'rejected', 'queued', 'spooled', 'lost']);
    if (entered !== left)
      this.violate(`the counters of gateway ${gateway} do not add up: ${JSON.stringify(stats)}`);
  }
}
