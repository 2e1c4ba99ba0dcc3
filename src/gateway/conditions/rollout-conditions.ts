import type { Producer } from '#conditions';
import type { AdminAction } from '#otel/span';

type RolloutStep = Extract<AdminAction, { action: 'rollout_step' }>;

/** How long a rollout that stopped is told. */
const TOLD_MS = 3_600_000;

/** Longer than any step takes by the defaults of `gateway rollout`, whose steps are told at their end. */
const SILENT_MS = 45 * 60_000;

/** The steps after which a replica is not as it was. */
const CHANGING: ReadonlySet<RolloutStep['step']> = new Set([
  'restart',
  'answer',
  'rollout_undrain',
  'ramp',
  'compare',
]);

/** What is known of the latest rollout. */
interface Rollout {
  readonly traceId: string;
  /** The replica of the step that failed first, or else of the latest one. */
  replica: string;
  /** Whether anything was changed. */
  hasBegun: boolean;
  /** Why a replica could not be rolled; null: none has failed. */
  problem: string | null;
  state: 'running' | 'stopped' | 'done';
  /** When the latest step was told: monotonic milliseconds. */
  toldMs: number;
}

/** Watches the latest rollout by the steps that `gateway rollout` tells. */
export class RolloutWatch {
  readonly #nowMs: () => number;
  #latest: Rollout | null = null;

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
  }

  /** Takes a step that has ended. */
  note({ traceId, step, outcome, replica, sentence }: RolloutStep): void {
    const known = this.#latest?.traceId === traceId ? this.#latest : null;
    const rollout = known ?? { ...NEW_ROLLOUT, traceId };
    // What was stopped goes on.
    if (rollout.state === 'stopped') Object.assign(rollout, { state: 'running', problem: null });
    rollout.toldMs = this.#nowMs();
    rollout.hasBegun ||= CHANGING.has(step);
    const hasFailed = outcome !== 'ok' && outcome !== 'good';
    if (replica !== null && rollout.problem === null) rollout.replica = replica;
    if (step === 'replica' && hasFailed) rollout.problem ??= sentence ?? outcome;
    if (step === 'rollout') {
      rollout.state = hasFailed ? 'stopped' : 'done';
      if (hasFailed) rollout.problem ??= outcome;
    }
    this.#latest = rollout;
  }

  /** Tells of a rollout that stopped in the middle, or that nobody has told anything of for long. */
  readonly produce: Producer = () => {
    if (this.#latest === null) return [];
    const { replica, hasBegun, problem, state, toldMs } = this.#latest;
    const silentMs = this.#nowMs() - toldMs;
    const isTold = (beganMs: number) => silentMs >= beganMs && silentMs < beganMs + TOLD_MS;
    const reason =
      state === 'stopped' && isTold(0)
        ? problem
        : state === 'running' && isTold(SILENT_MS)
          ? 'it has told nothing for 45 minutes'
          : null;
    if (reason === null || !hasBegun) return [];
    return [{ id: 'rollout_stopped', subject: replica, figures: { reason } }];
  };
}

const NEW_ROLLOUT = {
  replica: '',
  hasBegun: false,
  problem: null,
  state: 'running',
  toldMs: 0,
} as const satisfies Omit<Rollout, 'traceId'>;
