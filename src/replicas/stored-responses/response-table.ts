import { createSharedClock, openTables, type SharedTable, sizeOfTables } from '#shared-memory';
import {
  idDigestOf,
  isSame,
  type ResponseOrigin,
  type StoredResponse,
  toStoredResponse,
} from './stored-response.ts';

/** How many responses are known at one time. */
export const MAX_STORED_RESPONSES = 65_536;
/** Beyond this time since it was made or last asked for, a response counts as unknown. */
export const MAX_AGE_SECONDS = 24 * 60 * 60;
/** A digest decides in which rows a response may be. When they are full, the one that was used longest ago goes. */
const ROWS_PER_SET = 8;
const SET_COUNT = MAX_STORED_RESPONSES / ROWS_PER_SET;
/** How many new responses the main thread may be behind. */
const MAX_NEWS = 4096;

const RESPONSE_COLUMNS = {
  /** Even: the row can be read; odd: it is being written; 0: it was never used. */
  version: 'int32',
  digest0: 'int32',
  digest1: 'int32',
  digest2: 'int32',
  digest3: 'int32',
  seed: 'int32',
  model0: 'int32',
  model1: 'int32',
  calledAs0: 'int32',
  calledAs1: 'int32',
  owner0: 'int32',
  owner1: 'int32',
  /** Seconds of the clock. */
  usedAt: 'int32',
} as const;

const SHAPES = {
  responses: { rowCount: MAX_STORED_RESPONSES, columns: RESPONSE_COLUMNS },
  /** A ring. The version of an entry is its number, from 1. */
  news: { rowCount: MAX_NEWS, columns: RESPONSE_COLUMNS },
  /** One row: how many entries were ever begun. */
  newsCount: { rowCount: 1, columns: { count: 'int32' } },
} as const;

type Rows = SharedTable<typeof RESPONSE_COLUMNS>;

/** Reserves the memory, filled with zeros. The system provides only what is used of it. */
export function allocateStoredResponses(): SharedArrayBuffer {
  return new SharedArrayBuffer(sizeOfTables(SHAPES));
}

/**
 * Which replica has which response, which model made it, what the client called the model, and whose it is: what all
 * threads of a gateway know. It is bounded, by count and by age. No thread ever blocks: a row that another thread writes at this
 * moment counts as one that is not there.
 */
export class StoredResponses {
  readonly #rows: Rows;
  readonly #news: Rows;
  readonly #newsCount: Int32Array;
  readonly #nowMs: () => number;
  /** How many entries of the news this thread has taken. */
  #takenCount = 0;

  /** @param nowMs a clock that all threads share */
  constructor(buffer: SharedArrayBuffer, nowMs: () => number = createSharedClock()) {
    const tables = openTables(buffer, SHAPES);
    this.#rows = tables.responses;
    this.#news = tables.news;
    this.#newsCount = tables.newsCount.count;
    this.#nowMs = nowMs;
  }

  /** Notes that the response with this id was made so, and tells the main thread. */
  note(id: string, origin: ResponseOrigin): void {
    const response = toStoredResponse(id, origin);
    if (this.learn(response)) this.#tell(response);
  }

  /**
   * Notes a response that another gateway has told. Returns false, and notes nothing, if one with the same id is known
   * whose owner is another: clients can choose the ids of their responses, and would take over those of others.
   *
   * @param idleSeconds how long ago it was used
   */
  learn(response: StoredResponse, idleSeconds = 0): boolean {
    // If another thread takes the row at this moment, the next choice is another one.
    for (let tries = 0; tries < ROWS_PER_SET; tries++) {
      const outcome = this.#write(response, this.#nowSeconds - idleSeconds);
      if (outcome !== 'busy') return outcome === 'written';
    }
    return true;
  }

  #write(response: StoredResponse, usedAt: number): 'written' | 'refused' | 'busy' {
    const { digest } = response;
    const rows = this.#rows;
    const known = this.#find(digest);
    const row = known ?? this.#findVictim(digest);
    const version = Atomics.load(rows.version, row);
    if (version % 2 !== 0) return 'busy';
    if (known !== null) {
      const before = readRow(rows, row);
      if (!this.#holds(row, digest) || Atomics.load(rows.version, row) !== version) return 'busy';
      if (this.#isCurrent(row) && !isSame(before.owner, response.owner)) return 'refused';
      if (isSameResponse(before, response)) {
        // It is not written again, since nobody could read it meanwhile.
        Atomics.store(rows.usedAt, row, usedAt);
        return 'written';
      }
    }
    if (Atomics.compareExchange(rows.version, row, version, version + 1) !== version) return 'busy';
    writeRow(rows, row, response);
    Atomics.store(rows.usedAt, row, usedAt);
    Atomics.store(rows.version, row, nextVersion(version));
    return 'written';
  }

  /** The response with this id; null if it is not known. */
  find(id: string): StoredResponse | null {
    const digest = idDigestOf(id);
    const row = this.#find(digest);
    if (row === null) return null;
    const { version, usedAt } = this.#rows;
    const before = Atomics.load(version, row);
    const found = readRow(this.#rows, row);
    if (!this.#isCurrent(row) || !this.#holds(row, digest) || Atomics.load(version, row) !== before)
      return null;
    Atomics.store(usedAt, row, this.#nowSeconds);
    return found;
  }

  /** All responses that are known, and how long ago each was used. Of rows that were never used it reads the version alone. */
  entries(): readonly { readonly response: StoredResponse; readonly idleSeconds: number }[] {
    const { version, usedAt } = this.#rows;
    const now = this.#nowSeconds;
    const entries = [];
    for (let row = 0; row < version.length; row++) {
      const before = Atomics.load(version, row);
      if (before === 0 || before % 2 !== 0) continue;
      const response = readRow(this.#rows, row);
      if (Atomics.load(version, row) !== before || !this.#isCurrent(row)) continue;
      entries.push({ response, idleSeconds: Math.max(0, now - Atomics.load(usedAt, row)) });
    }
    return entries;
  }

  /** The responses that were noted since the last call, without those that `MAX_NEWS` others came after. */
  takeNews(): readonly StoredResponse[] {
    const news: StoredResponse[] = [];
    const count = Atomics.load(this.#newsCount, 0);
    this.#takenCount = Math.max(this.#takenCount, count - MAX_NEWS);
    while (this.#takenCount < count) {
      const entry = this.#takenCount % MAX_NEWS;
      const number = this.#takenCount + 1;
      const written = Atomics.load(this.#news.version, entry);
      // Not written yet: the thread that writes it wakes this one again.
      if (written < number) break;
      const response = readRow(this.#news, entry);
      if (written === number && Atomics.load(this.#news.version, entry) === number) news.push(response);
      this.#takenCount++;
    }
    return news;
  }

  /** Resolves when a response was noted that `takeNews` has not returned. */
  async untilNews(): Promise<void> {
    const count = Atomics.load(this.#newsCount, 0);
    if (count === this.#takenCount) await Atomics.waitAsync(this.#newsCount, 0, count).value;
  }

  get #nowSeconds(): number {
    return Math.floor(this.#nowMs() / 1000);
  }

  #isCurrent(row: number): boolean {
    return this.#nowSeconds - Atomics.load(this.#rows.usedAt, row) <= MAX_AGE_SECONDS;
  }

  #tell(response: StoredResponse): void {
    const index = Atomics.add(this.#newsCount, 0, 1);
    const entry = index % MAX_NEWS;
    Atomics.store(this.#news.version, entry, 0);
    writeRow(this.#news, entry, response);
    Atomics.store(this.#news.version, entry, index + 1);
    Atomics.notify(this.#newsCount, 0);
  }

  #find(digest: StoredResponse['digest']): number | null {
    const first = firstRowOf(digest);
    for (let row = first; row < first + ROWS_PER_SET; row++) if (this.#holds(row, digest)) return row;
    return null;
  }

  #findVictim(digest: StoredResponse['digest']): number {
    const first = firstRowOf(digest);
    const { version, usedAt } = this.#rows;
    let victim: number | null = null;
    for (let row = first; row < first + ROWS_PER_SET; row++) {
      const rowVersion = Atomics.load(version, row);
      if (rowVersion === 0) return row;
      // Being written now, or for ever: its thread may have been killed.
      if (rowVersion % 2 !== 0) continue;
      if (victim === null || Atomics.load(usedAt, row) < Atomics.load(usedAt, victim)) victim = row;
    }
    return victim ?? first;
  }

  /** Whether a row can be read and has this digest. */
  #holds(row: number, [first, second, third, fourth]: StoredResponse['digest']): boolean {
    const { version, digest0, digest1, digest2, digest3 } = this.#rows;
    const before = Atomics.load(version, row);
    if (before === 0 || before % 2 !== 0) return false;
    const isEqual =
      Atomics.load(digest0, row) === first &&
      Atomics.load(digest1, row) === second &&
      Atomics.load(digest2, row) === third &&
      Atomics.load(digest3, row) === fourth;
    return isEqual && Atomics.load(version, row) === before;
  }
}

function firstRowOf([first]: StoredResponse['digest']): number {
  return ((first >>> 0) % SET_COUNT) * ROWS_PER_SET;
}

/** The next even version, which is never 0. */
function nextVersion(version: number): number {
  return version >= 2 ** 30 ? 2 : version + 2;
}

function writeRow(rows: Rows, row: number, { digest, seed, model, calledAs, owner }: StoredResponse): void {
  Atomics.store(rows.digest0, row, digest[0]);
  Atomics.store(rows.digest1, row, digest[1]);
  Atomics.store(rows.digest2, row, digest[2]);
  Atomics.store(rows.digest3, row, digest[3]);
  Atomics.store(rows.seed, row, seed);
  Atomics.store(rows.model0, row, model[0]);
  Atomics.store(rows.model1, row, model[1]);
  Atomics.store(rows.calledAs0, row, calledAs[0]);
  Atomics.store(rows.calledAs1, row, calledAs[1]);
  Atomics.store(rows.owner0, row, owner[0]);
  Atomics.store(rows.owner1, row, owner[1]);
}

function readRow(rows: Rows, row: number): StoredResponse {
  const digest = [
    Atomics.load(rows.digest0, row),
    Atomics.load(rows.digest1, row),
    Atomics.load(rows.digest2, row),
    Atomics.load(rows.digest3, row),
  ] as const;
  const model = [Atomics.load(rows.model0, row), Atomics.load(rows.model1, row)] as const;
  const calledAs = [Atomics.load(rows.calledAs0, row), Atomics.load(rows.calledAs1, row)] as const;
  const owner = [Atomics.load(rows.owner0, row), Atomics.load(rows.owner1, row)] as const;
  return { digest, seed: Atomics.load(rows.seed, row), model, calledAs, owner };
}

function isSameResponse(one: StoredResponse, other: StoredResponse): boolean {
  return (
    one.digest.every((word, index) => word === other.digest[index]) &&
    one.seed === other.seed &&
    isSame(one.model, other.model) &&
    isSame(one.calledAs, other.calledAs) &&
    isSame(one.owner, other.owner)
  );
}
