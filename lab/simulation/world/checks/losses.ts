import type { CloseResult } from '#gateway';

/** The line that says how many records a full queue has cost. */
const DROPPED_LINE = 'records were dropped because the queue was full';
/** The line that says how many records a dead worker has cost. */
const LOST_LINE = 'worker ended';

/** What the processes of one gateway say themselves of records that did not arrive, and what excuses silence. */
export class Losses {
  wasKilled = false;
  /** Whether its disk has ever had faults. */
  hadDiskFaults = false;
  /** Records that its processes could not deliver or store at their end. */
  undelivered = 0;
  /** Requests that the ends of its processes have cut: among them may be those of a worker that died meanwhile. */
  cut = 0;
  /** Records of dead workers, of all processes, and of the one that runs. */
  lost = 0;
  lostInProcess = 0;
  /** Records that found the queue full: of processes that have ended, and of the one that runs, as far as it says so. */
  #dropped = 0;
  #droppedInProcess = 0;

  /** How many records may be missing. */
  get counted(): number {
    return this.undelivered + this.#dropped + this.#droppedInProcess + this.lost + this.cut;
  }

  onStart(): void {
    this.#dropped += this.#droppedInProcess;
    this.#droppedInProcess = 0;
    this.lostInProcess = 0;
  }

  onLog(message: string, fields: unknown): void {
    const {
      dropped = 0,
      lost = 0,
      restart_ms: restartMs,
    } = fields as { readonly dropped?: number; readonly lost?: number; readonly restart_ms?: number };
    if (message === DROPPED_LINE) this.onDropped(dropped);
    // While the gateway stops, the worker is not started again, and its requests count among those that are cut.
    if (message !== LOST_LINE || restartMs === undefined) return;
    this.lost += lost;
    this.lostInProcess += lost;
  }

  /** Its last line, or the last answer of its admin API, says how many records it has dropped since its start. */
  onDropped(count: number): void {
    this.#droppedInProcess = Math.max(this.#droppedInProcess, count);
  }

  onClosed({ undeliveredRecords, cutRequests }: CloseResult): void {
    this.undelivered += undeliveredRecords;
    this.cut += cutRequests;
  }
}
