/**
 * In what order the parts of a gateway start. They stop in reverse, so that a rolling update loses no request and no
 * record. Parts of one stage start together, and stop together.
 */
const STAGES = [
  /** state_dir belongs to this gateway until all else has stopped. */
  'state',
  /** Hears of records and actions until all else has stopped. */
  'history',
  'replicas',
  'stored responses',
  /** The threads that serve clients, and the live figures about them. */
  'workers',
  /** Before clients: one that gets an answer can already drain. Until the last record is sent it answers. */
  'admin API',
  'export',
  /** Before it serves, a gateway has found its replicas, and the fleet knows it and has told it what is drained. */
  'topology',
  'background',
  /** What goes on by itself: health checks, and files and keys that are read again. */
  'watches',
  'clients',
] as const;

export type Stage = (typeof STAGES)[number];

/** How long the steps of a shutdown may take. */
export interface ShutdownSteps {
  readonly delayMs: number;
  readonly graceMs: number;
  readonly flushMs: number;
}

/** What a shutdown could not complete. */
export interface CloseResult {
  readonly cutRequests: number;
  readonly undeliveredRecords: number;
}

/** Something that lives as long as the gateway. */
export interface Part {
  /** Rejects with a StartError. Unset: nothing is to be started. */
  readonly start?: () => unknown;
  /** Also called if `start` was not, or has failed. It adds to `lost` what it could not complete. */
  readonly stop?: (steps: ShutdownSteps, lost: { -readonly [Key in keyof CloseResult]: number }) => unknown;
}

/** All parts of a gateway. Each is added when it is created, so that one that could not start leaves nothing behind. */
export class Parts {
  readonly #stages = new Map<Stage, Part[]>(STAGES.map((stage) => [stage, []]));

  add(stage: Stage, part: Part): void {
    this.#stages.get(stage)?.push(part);
  }

  /** Starts all parts. Rejects with the first error, or with the reason of `stopped` as soon as it aborts. */
  async start(stopped?: AbortSignal): Promise<void> {
    const aborted = Promise.withResolvers<never>();
    stopped?.addEventListener('abort', () => aborted.reject(stopped.reason));
    for (const parts of this.#stages.values()) {
      stopped?.throwIfAborted();
      await Promise.race([aborted.promise, Promise.all(parts.map(async (part) => part.start?.()))]);
    }
  }

  /** Stops all parts, also if one of them fails: then it rejects with the first error, in the end. */
  async stop(steps: ShutdownSteps): Promise<CloseResult> {
    const lost = { cutRequests: 0, undeliveredRecords: 0 };
    const errors: unknown[] = [];
    for (const parts of [...this.#stages.values()].toReversed()) {
      const stopped = await Promise.allSettled(parts.map(async (part) => await part.stop?.(steps, lost)));
      errors.push(...stopped.flatMap((each) => (each.status === 'rejected' ? [each.reason] : [])));
    }
    if (errors.length > 0) throw errors[0];
    return lost;
  }
}
