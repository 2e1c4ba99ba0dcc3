import { randomBytes } from 'node:crypto';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { type Answer, RecordedHistory } from '#history';
import { systemClock } from '#otel/base';
import { Ledger, type RecordLedger, tellLosses } from '#otel/ledger';
import type { RequestRecord } from '#otel/record/registry';
import type { GpuTimeTable } from '#replicas/gpu-time';
import { allocateSharedState, SharedState } from '#replicas/shared';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { DayClock } from './day-clock.ts';
import type { Asked, DayEvent, Done, Listed, Prices } from './messages.ts';
import { REPLICAS } from './traffic.ts';

/*
 * What a gateway has behind its requests: the history with its thread, the ledger, the GPU time. It lives by the clock of
 * the day, as fast as it can, and may be killed at any moment.
 */

const LEDGER_INTERVAL_MS = 60_000;
const PAGE = 5_000;
/** By the clock of the machine: the thread tries again by that one. */
const LOOK_MS = 20;
/** All leases are those of one worker. */
const WORKER = 0;

type Recorded = Extract<DayEvent, { kind: 'record' }>;

class Writer {
  readonly #clock: DayClock;
  readonly #history: RecordedHistory;
  readonly #ledger: RecordLedger;
  readonly #gpus: GpuTimeTable;
  readonly #currency: string;
  readonly #begun = new Map<number, { replica: number; began: ReturnType<GpuTimeTable['begin']> }>();
  readonly #parts = new Map<number, ReturnType<GpuTimeTable['end']>>();
  #ledgers: Uint8Array[] = [];

  constructor({ path, nowMs, startMs, currency }: Extract<Asked, { kind: 'open' }>) {
    const clock = new DayClock(nowMs, startMs);
    const log = { info: () => undefined, warn: console.error, error: console.error };
    const epochMs = () => clock.epochMs;
    this.#clock = clock;
    this.#currency = currency;
    this.#gpus = new SharedState(allocateSharedState(1), () => clock.nowMs).gpuTimes;
    this.#history = new RecordedHistory({
      path,
      version: 'day',
      instanceId: 'day',
      nowMs: epochMs,
      present: () => [],
      log,
    });
    const ledger = new Ledger(LEDGER_INTERVAL_MS, {
      publish: (span) => this.#ledgers.push(span),
      waitingCount: () => 0,
      clock: { ...systemClock, nowMs: () => clock.nowMs },
      epochMs,
      log,
    });
    this.#ledger = tellLosses(ledger, (loss) => this.#history.loss(loss));
  }

  async answer(asked: Asked): Promise<Done> {
    let listed: Listed | null = null;
    switch (asked.kind) {
      case 'open':
        await this.#history.configure(asked.settings);
        this.#price(asked.prices);
        break;
      case 'step':
        for (const event of asked.events) {
          await this.#pass(event.atMs);
          await this.#apply(event);
        }
        await this.#pass(asked.untilMs);
        break;
      case 'settle':
        // What holds no record waits, too: a batch that cannot be written keeps those that come after it.
        while ((this.#history.state?.waitingBytes ?? 0) > 0 || this.#history.state?.problem != null) {
          await this.#untilWritten();
          await sleep(LOOK_MS);
        }
        break;
      case 'list':
        listed = await this.#list(asked);
        break;
      case 'close':
        this.#ledger.end();
        await this.#history.stop();
    }
    const gpus = REPLICAS.map((_, slot) => {
      const { cost } = this.#gpus.timeOf(slot);
      return { busyCost: cost?.busy ?? 0, idleCost: cost?.idle ?? 0 };
    });
    const ledgers = this.#ledgers;
    this.#ledgers = [];
    return { gpus, ledgers, listed };
  }

  /** The time passes, no faster than the history is written. */
  async #pass(untilMs: number): Promise<void> {
    while (this.#clock.move(untilMs)) {
      await nextTurn();
      if ((this.#history.state?.waitingBytes ?? 0) > 0) await this.#untilWritten();
    }
  }

  /** Resolves when the thread has tried to write what it was given. */
  async #untilWritten(): Promise<void> {
    const nothing = { kind: 'timeline', fromMs: 0, untilMs: 1, before: null, limit: 1 } as const;
    // While nothing can be written it may not answer.
    await this.#history.ask(nothing).catch(() => undefined);
  }

  async #apply(event: DayEvent): Promise<void> {
    switch (event.kind) {
      case 'lease_begins': {
        const { replica } = event;
        this.#begun.set(event.lease, { replica, began: this.#gpus.begin(WORKER, replica) });
        break;
      }
      case 'lease_ends': {
        const { replica, began } = this.#begun.get(event.lease) ?? fail('a lease ends that has not begun');
        this.#begun.delete(event.lease);
        this.#parts.set(event.lease, this.#gpus.end(WORKER, replica, { began, isRecorded: true }));
        break;
      }
      case 'record':
        this.#record(event);
        break;
      case 'prices':
        this.#price(event.prices);
        this.#noteReload(['gpu_hour_price']);
        break;
      case 'reload':
        await this.#history.configure(event.settings);
        this.#noteReload(['history']);
        break;
      case 'clock':
        this.#clock.set(event.startMs);
    }
  }

  #record({ arriveMs, instance, seq, leases, request: { fields, fate, hashCount } }: Recorded): void {
    const { nowMs, epochMs } = this.#clock;
    const id = randomBytes(16).toString('hex');
    const record: RequestRecord = {
      ...LEAST_RECORD,
      ...fields,
      request_id: id,
      trace_id: id,
      instance,
      seq,
      ts: new Date(epochMs - (nowMs - arriveMs)).toISOString(),
    };
    if (hashCount > 0)
      record.prefix_hashes = Array.from({ length: hashCount }, () => randomBytes(8).toString('hex'));
    for (const lease of leases) {
      const { ms, cost } = this.#parts.get(lease) ?? fail('a record comes before its lease has ended');
      this.#parts.delete(lease);
      record.gpu_seconds = (record.gpu_seconds ?? 0) + ms / 1_000;
      if (cost === null) continue;
      record.cost = (record.cost ?? 0) + cost;
      record.currency = this.#currency;
    }
    const encodedSpan = fate === 'unencodable' ? null : encodeRecord(record);
    if (encodedSpan !== null && fate === 'queued') this.#ledger.queued(record, encodedSpan);
    else this.#ledger.notQueued(record, fate === 'dropped' ? 'dropped' : 'unencodable');
    this.#history.record({ record, encodedSpan });
  }

  #price(prices: Prices): void {
    for (const [slot, { gpuCount }] of REPLICAS.entries())
      this.#gpus.configure(slot, { gpuCount, gpuHourPrice: prices[slot] ?? null });
  }

  #noteReload(changedKeys: readonly string[]): void {
    const done = { changedKeys, added: 0, changed: 0, removed: 0 };
    this.#history.action({ action: 'reload', done, tokenName: null, startEpochMs: this.#clock.epochMs });
  }

  async #list({ fromMs, untilMs }: { readonly fromMs: number; readonly untilMs: number }): Promise<Listed> {
    const records: Listed['records'][number][] = [];
    for (let before: number | null = null; ; ) {
      const span = { fromMs, untilMs, filters: {}, before, limit: PAGE };
      const answer: Answer<'records'> = await this.#history.ask({ kind: 'records', ...span });
      for (const { record } of answer.records) {
        const { instance, seq, gpu_seconds, cost, currency, prompt_tokens, completion_tokens } = record;
        records.push({
          instance,
          seq,
          gpu_seconds,
          cost,
          currency,
          prompt_tokens,
          completion_tokens,
        } as Listed['records'][number]);
      }
      if (answer.next === null) return { records, gaps: answer.gaps };
      before = answer.next;
    }
  }
}

function fail(why: string): never {
  throw new Error(why);
}

let writer: Writer | null = null;
process.on('message', (asked: Asked) => {
  if (asked.kind === 'open') writer = new Writer(asked);
  void writer?.answer(asked).then((done) => process.send?.(done));
});
process.send?.('ready');
