import type { Beat, Ledger } from '../../src/fleet/sheets.ts';
import { PROMISE_MS } from '../../src/fleet/timing.ts';

interface Sheets {
  readonly ledgers: ReadonlyMap<string, Ledger>;
  readonly beats: ReadonlyMap<string, { readonly beat: Beat; readonly expiresAtMs: number }>;
}

const EMPTY: Sheets = { ledgers: new Map(), beats: new Map() };

/** How many earlier states a failover can go back to. */
const HISTORY = 40;

/** The store of the model: takes sheets, forgets beats, and can lose everything or only the latest. */
export class ModelStore {
  #now: Sheets = EMPTY;
  #history: readonly Sheets[] = [];
  /** By replica, the latest version that was ever here. */
  readonly latestVersions = new Map<string, string>();

  /** Writes a beat, and a ledger if it changed; takes away the ledgers of gateways that are gone. */
  write(
    { beat, ledger, gone }: { beat: Beat; ledger: Ledger | null; gone: readonly string[] },
    nowMs: number,
  ): void {
    const ledgers = new Map([...this.#now.ledgers].filter(([id]) => !gone.includes(id)));
    if (ledger !== null) ledgers.set(ledger.id, ledger);
    for (const [replica, { version }] of ledger?.drains ?? []) {
      if (version > (this.latestVersions.get(replica) ?? '')) this.latestVersions.set(replica, version);
    }
    const beats = new Map([...this.#now.beats, [beat.id, { beat, expiresAtMs: nowMs + PROMISE_MS }]]);
    this.#become({ ledgers, beats });
  }

  /** A gateway's last words: its ledger, without a beat. */
  writeLast(ledger: Ledger): void {
    this.#become({ ...this.#now, ledgers: new Map([...this.#now.ledgers, [ledger.id, ledger]]) });
  }

  readLedgers(): readonly Ledger[] {
    return [...this.#now.ledgers.values()];
  }

  readBeats(nowMs: number): readonly Beat[] {
    const living = [...this.#now.beats.values()].filter(({ expiresAtMs }) => nowMs < expiresAtMs);
    return living.map(({ beat }) => beat);
  }

  /** Becomes empty, or an earlier state of itself; returns the way back. */
  lose(howMuch: 'everything' | number): () => void {
    const before = this.#now;
    this.#become(howMuch === 'everything' ? EMPTY : (this.#history.at(-1 - howMuch) ?? before));
    return () => this.#become(before);
  }

  #become(sheets: Sheets): void {
    this.#history = [...this.#history, this.#now].slice(-HISTORY);
    this.#now = sheets;
  }
}
