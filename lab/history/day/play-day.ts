import { type Counted, isSame, toCost, toGpuSeconds } from './counted.ts';
import { GpuShares, type Share } from './gpu-shares.ts';
import type { DayEvent, Done, GpuFigures, HistorySettings, Listed, Prices } from './messages.ts';
import { ACTS, type Act, DRAIN_MS, OFF, PRICES, type Run, SETTINGS, START_MS } from './script.ts';
import type { DayRequest } from './traffic.ts';
import { WriterProcess } from './writer-process.ts';

/** What a kill may take: the records of the last second. */
const MAY_LACK_MS = 1_000;
const STEP_MS = 1_000;
/** A kill comes so long after a step began, or after a start, by the clock of the machine. */
const KILL_WITHIN_MS = 4;
const KILL_START_WITHIN_MS = 80;

/** Why a record is not in the history. */
export type MissingReason = 'killed' | 'behind' | 'off' | 'unencodable';

/** What the GPUs of a currency have cost, and what of that is in no record. */
export interface Money {
  hoursByPrice: number;
  busy: number;
  idle: number;
  /** Of requests that a kill has cut, and of records that are missing. */
  cut: number;
  missing: number;
}

/** What became of the day. */
export interface PlayedDay {
  /** What the history must have. */
  readonly counted: readonly Counted[];
  readonly missing: Readonly<Record<MissingReason, number>>;
  readonly money: ReadonlyMap<string, Money>;
  readonly ledgers: readonly Uint8Array[];
  readonly runs: { readonly killed: number; readonly closed: number; readonly killedStarts: number };
  readonly failures: readonly string[];
}

/** A step of the plan of a request, or an act. */
interface Planned {
  readonly atMs: number;
  readonly what: 'lease_begins' | 'lease_ends' | 'record' | Act;
  readonly request: DayRequest | null;
  readonly lease: number;
}

/** Plays the day into a history. */
export async function playDay(
  path: string,
  day: {
    readonly requests: readonly DayRequest[];
    readonly runs: readonly Run[];
    readonly random: () => number;
  },
): Promise<PlayedDay> {
  const player = new Player(path, day.random);
  const planned = toPlanned(day.requests);
  let next = 0;
  for (const [index, run] of day.runs.entries()) {
    // What would have happened while nothing runs. Somebody may have set the clock.
    for (; (planned[next]?.atMs ?? run.openMs) < run.openMs; next++) player.miss(planned[next] as Planned);
    await player.open(run, `instance-${index}`);
    for (; next < planned.length; next++) {
      const each = planned[next] as Planned;
      if (each.atMs >= run.untilMs) break;
      await player.play(each);
    }
    await player.end();
  }
  return player.result;
}

function toPlanned(requests: readonly DayRequest[]): readonly Planned[] {
  const ofRequests = requests.flatMap((request): readonly Planned[] => [
    ...request.leases.flatMap(({ fromMs, untilMs }, lease): readonly Planned[] => [
      { atMs: fromMs, what: 'lease_begins', request, lease },
      { atMs: untilMs, what: 'lease_ends', request, lease },
    ]),
    { atMs: request.endMs, what: 'record', request, lease: -1 },
  ]);
  const acts = ACTS.map((act): Planned => ({ atMs: act.atMs, what: act, request: null, lease: -1 }));
  return [...acts, ...ofRequests].toSorted((a, b) => a.atMs - b.atMs);
}

/** A run that goes on. */
interface Life {
  readonly run: Run;
  readonly instance: string;
  readonly shares: GpuShares;
  /** The leases of each request that has arrived and has no record yet. */
  readonly open: Map<DayRequest, Map<number, { readonly id: number; readonly share: Share }>>;
  /** Records that were given to the history and not looked for yet. */
  sent: (Counted & { readonly endMs: number })[];
  /** Up to when the writer has told that it has come. */
  doneMs: number;
  hoursByPrice: number;
  gpus: readonly GpuFigures[];
  /** Null: it is not. */
  diskFullSinceMs: number | null;
  isKilled: boolean;
  hasBeenFull: boolean;
  seq: number;
}

class Player {
  readonly #path: string;
  readonly #random: () => number;
  readonly #counted: Counted[] = [];
  readonly #missing = { killed: 0, behind: 0, off: 0, unencodable: 0 };
  readonly #money = new Map<string, Money>();
  readonly #ledgers: Uint8Array[] = [];
  readonly #runs = { killed: 0, closed: 0, killedStarts: 0 };
  readonly #failures: string[] = [];
  #process: WriterProcess | null = null;
  #life: Life | null = null;
  #ended: Life | null = null;
  #events: DayEvent[] = [];
  #stepEndMs = 0;
  #lease = 0;
  #prices: Prices = PRICES;
  #settings: HistorySettings | null = SETTINGS;
  #startMs = START_MS;

  constructor(path: string, random: () => number) {
    this.#path = path;
    this.#random = random;
  }

  get result(): PlayedDay {
    return {
      counted: this.#counted,
      missing: this.#missing,
      money: this.#money,
      ledgers: this.#ledgers,
      runs: this.#runs,
      failures: this.#failures,
    };
  }

  async open(run: Run, instance: string): Promise<void> {
    const { openMs: nowMs, currency } = run;
    const opening = {
      ...({ kind: 'open', path: this.#path, settings: this.#settings ?? SETTINGS, nowMs } as const),
      startMs: this.#startMs,
      prices: this.#prices,
      currency,
    };
    for (let index = 0; index < run.killedStarts; index++) {
      await this.#writer.killWhile(opening, this.#random() * KILL_START_WITHIN_MS);
      this.#runs.killedStarts += 1;
      this.#process = null;
    }
    this.#take(await this.#writer.ask(opening));
    if (this.#ended !== null) await this.#look(this.#ended);
    this.#life = {
      run,
      instance,
      shares: new GpuShares(nowMs, this.#prices),
      open: new Map(),
      sent: [],
      doneMs: nowMs,
      hoursByPrice: 0,
      gpus: [],
      diskFullSinceMs: null,
      hasBeenFull: false,
      isKilled: false,
      seq: 0,
    };
    this.#stepEndMs = nowMs;
  }

  /** Nothing runs. */
  miss({ what }: Planned): void {
    if (typeof what === 'string') return;
    if (what.kind !== 'clock') throw new Error(`nothing runs when it is time for ${what.kind}`);
    this.#startMs = what.startMs;
  }

  async play({ atMs, what, request, lease }: Planned): Promise<void> {
    const life = this.#living;
    if (request !== null && !this.#isServed(request, life)) return;
    await this.#reach(atMs);
    if (typeof what !== 'string') await this.#act(what, life);
    else if (request !== null) this.#advance(request, { atMs, what, lease }, life);
  }

  /** Ends the run: in order, or in the middle of its last step. */
  async end(): Promise<void> {
    const life = this.#living;
    const { end, untilMs } = life.run;
    this.#runs[end] += 1;
    if (end === 'killed') {
      await this.#reach(untilMs - 1);
      life.isKilled = true;
      // What has just ended is written a second later.
      const step = { kind: 'step', untilMs: untilMs + STEP_MS, events: this.#events } as const;
      await this.#writer.killWhile(step, this.#random() * KILL_WITHIN_MS);
    } else {
      this.#stepEndMs = untilMs;
      await this.#step();
      this.#take(await this.#writer.ask({ kind: 'settle' }));
      await this.#look(life);
      this.#take(await this.#writer.ask({ kind: 'close' }));
      await this.#writer.end();
    }
    this.#events = [];
    this.#bill(life);
    this.#ended = end === 'killed' ? life : null;
    this.#life = null;
    this.#process = null;
  }

  get #writer(): WriterProcess {
    this.#process ??= new WriterProcess();
    return this.#process;
  }

  get #living(): Life {
    if (this.#life === null) throw new Error('nothing runs');
    return this.#life;
  }

  #isServed({ arriveMs }: DayRequest, { run }: Life): boolean {
    if (arriveMs < run.openMs) return false;
    return run.end === 'killed' || arriveMs < run.untilMs - DRAIN_MS;
  }

  /** Begins the step that a moment is in: the writer has done all before. */
  async #reach(atMs: number): Promise<void> {
    const beginMs = Math.floor(atMs / STEP_MS) * STEP_MS;
    if (atMs >= this.#stepEndMs) await this.#step();
    // Nothing comes in between, but the time passes.
    if (beginMs > this.#stepEndMs) {
      this.#stepEndMs = beginMs;
      await this.#step();
    }
    this.#stepEndMs = Math.max(this.#stepEndMs, beginMs + STEP_MS);
  }

  /** Lets the writer do what has gathered. */
  async #step(): Promise<void> {
    const life = this.#living;
    const untilMs = this.#stepEndMs;
    const events = this.#events;
    this.#events = [];
    const { gpus } = this.#take(await this.#writer.ask({ kind: 'step', untilMs, events }));
    life.shares.pass(untilMs);
    Object.assign(life, { doneMs: untilMs, hoursByPrice: life.shares.hoursByPrice, gpus });
  }

  #take(done: Done): Done {
    this.#ledgers.push(...done.ledgers);
    return done;
  }

  async #act(act: Act, life: Life): Promise<void> {
    switch (act.kind) {
      case 'disk':
        life.diskFullSinceMs = act.isFull ? act.atMs : null;
        life.hasBeenFull ||= act.isFull;
        this.#writer.fillDisk(act.isFull);
        break;
      case 'settle':
        this.#stepEndMs = act.atMs;
        await this.#step();
        this.#take(await this.#writer.ask({ kind: 'settle' }));
        await this.#look(life);
        break;
      case 'prices':
        this.#prices = act.prices;
        life.shares.setPrices(act.prices, act.atMs);
        this.#events.push(act);
        break;
      case 'reload':
        this.#settings = act.settings;
        this.#events.push(act);
        break;
      case 'clock':
        this.#startMs = act.startMs;
        this.#events.push(act);
    }
  }

  #advance(
    request: DayRequest,
    { atMs, what, lease }: { readonly atMs: number; readonly what: string; readonly lease: number },
    life: Life,
  ): void {
    const leases = life.open.get(request) ?? new Map();
    life.open.set(request, leases);
    if (what === 'lease_begins') {
      const replica = request.leases[lease]?.replica ?? 0;
      const id = ++this.#lease;
      leases.set(lease, { id, share: life.shares.begin(replica, atMs) });
      this.#events.push({ atMs, kind: 'lease_begins', lease: id, replica });
    } else if (what === 'lease_ends') {
      const { id, share } = leases.get(lease);
      life.shares.end(share, atMs);
      this.#events.push({ atMs, kind: 'lease_ends', lease: id });
    } else {
      life.open.delete(request);
      const held = [...leases.values()];
      const { fields, hashCount, arriveMs } = request;
      // Soon before a kill each has a span: nobody could say whether the word was lost that one has none.
      const isLate = life.run.end === 'killed' && atMs > life.run.untilMs - 3 * MAY_LACK_MS;
      const fate = isLate ? 'queued' : request.fate;
      const { instance } = life;
      const seq = ++life.seq;
      const recorded = { arriveMs, instance, seq, leases: held.map(({ id }) => id) };
      this.#events.push({ atMs, kind: 'record', ...recorded, request: { fields, fate, hashCount } });
      life.sent.push({
        instance,
        seq,
        request,
        endMs: atMs,
        currency: life.run.currency,
        arriveEpochMs: this.#startMs + arriveMs,
        endEpochMs: this.#startMs + atMs,
        shares: held.map(({ share }) => share),
      });
    }
  }

  /** Looks which of the records of a run are in the history. */
  async #look(life: Life): Promise<void> {
    const { sent, instance } = life;
    const times = sent.map(({ arriveEpochMs }) => arriveEpochMs);
    if (times.length === 0) return;
    const span = { fromMs: Math.min(...times), untilMs: Math.max(...times) + 1 };
    const { listed } = this.#take(await this.#writer.ask({ kind: 'list', ...span }));
    if (listed === null) throw new Error('nothing is listed');
    const known = new Map<number, Listed['records'][number]>();
    const given = new Set(sent.map(({ seq }) => seq));
    for (const record of listed.records) {
      const { seq = 0 } = record;
      if (record.instance !== instance || !given.has(seq)) continue;
      if (known.has(seq)) this.#failures.push(`${instance} ${seq} is in the history twice`);
      known.set(seq, record);
    }
    const missing: Life['sent'] = [];
    for (const each of sent) {
      const record = known.get(each.seq);
      if (record === undefined) missing.push(each);
      else {
        this.#counted.push(each);
        this.#compare(each, record);
      }
    }
    life.sent = [];
    for (const each of missing) this.#explain(each, life, listed.gaps);
  }

  /** The figures of a record that are reckoned here too. */
  #compare(each: Counted, record: Listed['records'][number]): void {
    const { instance, seq, currency } = each;
    const cost = toCost(each);
    if (!isSame(record.gpu_seconds, toGpuSeconds(each)))
      this.#failures.push(
        `${instance} ${seq} has ${record.gpu_seconds} GPU seconds, not ${toGpuSeconds(each)}`,
      );
    if (!isSame(record.cost, cost) || record.currency !== (cost === undefined ? undefined : currency))
      this.#failures.push(
        `${instance} ${seq} costs ${record.cost} ${record.currency}, not ${cost} ${currency}`,
      );
  }

  /** A record is missing: the history must have said so, and why. */
  #explain(each: Life['sent'][number], life: Life, gaps: Listed['gaps']): void {
    const { instance, seq, endMs, endEpochMs } = each;
    const reason = this.#reasonOf(each, life);
    this.#missing[reason] += 1;
    this.#moneyOf(life.run.currency).missing += toCost(each) ?? 0;
    const isSaid = gaps.some(
      (gap) => gap.reason === reason && endEpochMs >= gap.fromMs && endEpochMs <= gap.toMs,
    );
    const name = `${instance} ${seq}, which ended at ${new Date(endEpochMs).toISOString()},`;
    if (!isSaid) this.#failures.push(`${name} is missing (${reason}), and no gap says so`);
    if (reason !== 'killed') return;
    if (!life.isKilled) this.#failures.push(`${name} is missing, and nothing was killed`);
    else if (endMs <= toLostMs(life))
      this.#failures.push(`${name} is missing, ${life.doneMs - endMs} ms before a kill`);
  }

  #reasonOf({ request, endMs }: Life['sent'][number], life: Life): MissingReason {
    if (endMs >= OFF.fromMs && endMs < OFF.untilMs) return 'off';
    // What was lost with the end of a run was lost with the word of it.
    if (life.isKilled && endMs > toLostMs(life)) return 'killed';
    if (request.fate === 'unencodable') return 'unencodable';
    return life.hasBeenFull ? 'behind' : 'killed';
  }

  #bill(life: Life): void {
    const money = this.#moneyOf(life.run.currency);
    money.hoursByPrice += life.hoursByPrice;
    for (const { busyCost, idleCost } of life.gpus) {
      money.busy += busyCost;
      money.idle += idleCost;
    }
    for (const leases of life.open.values())
      money.cut += toCost({ shares: [...leases.values()].map(({ share }) => share) }) ?? 0;
  }

  #moneyOf(currency: string): Money {
    const known = this.#money.get(currency);
    if (known !== undefined) return known;
    const money = { hoursByPrice: 0, busy: 0, idle: 0, cut: 0, missing: 0 };
    this.#money.set(currency, money);
    return money;
  }
}

/** What ended after this moment may be lost with a kill: the last second, or all since the disk is full. */
function toLostMs({ doneMs, diskFullSinceMs }: Life): number {
  return Math.min(doneMs, diskFullSinceMs ?? doneMs) - MAY_LACK_MS;
}
