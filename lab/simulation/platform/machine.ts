import { Disk } from '../engine/disk.ts';
import type { Network } from '../engine/network.ts';
import type { Schedule } from '../engine/schedule.ts';
import { Futexes } from './futexes.ts';

/** The time of day at the start of the world. */
const START_EPOCH_MS = Date.UTC(2026, 0, 1);

/** What the machines of a world share. */
export interface MachineSurroundings {
  readonly seed: number;
  readonly schedule: Schedule;
  readonly network: Network;
}

/** A computer: an address, a disk and a clock, which outlive the processes on it. */
export class Machine {
  readonly host: string;
  readonly disk: Disk;
  readonly futexes = new Futexes();
  readonly seed: number;
  readonly schedule: Schedule;
  readonly network: Network;
  readonly #clockErrorMs: number;
  #lastProcess = 0;
  #lastSocketFile = 0;

  /** `clockErrorMs`: how far its time of day is ahead. */
  constructor(host: string, clockErrorMs: number, { seed, schedule, network }: MachineSurroundings) {
    this.host = host;
    this.seed = seed;
    this.schedule = schedule;
    this.network = network;
    this.#clockErrorMs = clockErrorMs;
    this.disk = new Disk(() => this.epochMs);
  }

  get epochMs(): number {
    return START_EPOCH_MS + this.#clockErrorMs + this.schedule.nowMs;
  }

  /** The time since the machine has started. */
  get uptimeSeconds(): number {
    return 1_000 + this.schedule.nowMs / 1_000;
  }

  /** A number for the next process. */
  nextProcessId(): number {
    return ++this.#lastProcess;
  }

  /** The address of a listening socket by the path of its file; null if there is none. */
  toSocketAddress(path: string): string | null {
    const node = this.disk.find(path);
    return node?.kind === 'socket' ? node.address : null;
  }

  /** Makes the file of a listening socket. */
  createSocketFile(path: string): { readonly address: string; readonly release: () => void } {
    const address = `unix-${this.host}-${++this.#lastSocketFile}`;
    const node = this.disk.create(path, { kind: 'socket', address, changedAtMs: this.epochMs }, 'listen');
    return {
      address,
      // As libuv does: it removes the name that the socket was made with.
      release: () => {
        if (this.disk.find(path) === node) this.disk.unlink(path);
      },
    };
  }
}
