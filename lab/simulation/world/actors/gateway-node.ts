import type { CloseResult, Gateway } from '#gateway';
import { NO_SECRETS } from '../../../../src/config/secrets/environment-secrets.ts';
import type { Machine } from '../../platform/machine.ts';
import { SimulatedThread } from '../../platform/thread.ts';
import type { Program } from '../../program/program.ts';
import { findLeftOpen } from '../checks/left-open.ts';
import { Losses } from '../checks/losses.ts';
import type { Plan } from '../plan.ts';
import type { WorldParts } from '../world-parts.ts';
import { createConfigOf } from './configure.ts';

export const ADMIN_TOKEN = 'the-token-of-operators';

/** Lines of the log that only a defect writes. */
const DEFECT_LINES = ['request handling failed', 'record handling failed', 'admin call failed'];

/** The longest that a file may be written after a gateway has closed. */
const ENDING_MS = 100;

type Log = (fields: unknown, message?: string) => void;

/** One gateway: a machine, and the process on it, which stops, is killed, and starts again. */
export class GatewayNode {
  readonly index: number;
  readonly machine: Machine;
  readonly losses = new Losses();
  /** How long it waits for the first byte of a replica; a reload changes it. */
  firstByteMs = 3_000;
  state: 'down' | 'starting' | 'serving' | 'stopping' = 'down';
  thread: SimulatedThread | null = null;
  readonly #plan: Plan;
  readonly #program: Program;
  readonly #parts: WorldParts;
  readonly #onLog: (gateway: number, level: string, message: string, fields: unknown) => void;
  #gateway: Gateway | null = null;
  /** Whether it starts when it has stopped. */
  #startsAgain = false;

  constructor(
    index: number,
    machine: Machine,
    surroundings: {
      readonly plan: Plan;
      readonly program: Program;
      readonly parts: WorldParts;
      readonly onLog: (gateway: number, level: string, message: string, fields: unknown) => void;
    },
  ) {
    this.index = index;
    this.machine = machine;
    this.#plan = surroundings.plan;
    this.#program = surroundings.program;
    this.#parts = surroundings.parts;
    this.#onLog = surroundings.onLog;
  }

  /** Starts a process. It serves some time later, or ends again. */
  start(): void {
    if (this.state === 'stopping') this.#startsAgain = true;
    if (this.state !== 'down') return;
    this.#startsAgain = false;
    this.state = 'starting';
    this.losses.onStart();
    const name = `gateway ${this.index} process ${this.machine.nextProcessId()}`;
    const thread = new SimulatedThread(
      name,
      { machine: this.machine, program: this.#program },
      {
        onCrash: (error) => {
          this.#parts.chronicle.violate(
            `${name} crashes: ${error instanceof Error ? error.stack : String(error)}`,
          );
          this.state = 'down';
        },
      },
    );
    this.thread = thread;
    thread.later('starts', 1, () => {
      this.#run(thread).catch((error: unknown) => this.#onStartFailed(thread, error));
    });
  }

  /** Stops the process as SIGTERM does. */
  stop(): void {
    const gateway = this.#gateway;
    const { thread } = this;
    if (gateway === null || thread === null || this.state !== 'serving') return;
    this.state = 'stopping';
    thread.next('SIGTERM', () => {
      gateway.close().then(
        (result) => this.#onClosed(thread, result),
        (error: unknown) => thread.onUncaught(error),
      );
    });
  }

  /** Kills the process: it does nothing more, and the system closes what it had open. */
  kill(): void {
    if (this.thread === null || this.state === 'down') return;
    this.losses.wasKilled = true;
    this.thread.end();
    this.#forget();
  }

  /** Sends SIGHUP. */
  reload(): void {
    const gateway = this.#gateway;
    if (gateway === null || this.state !== 'serving') return;
    this.thread?.next('SIGHUP', () => void gateway.reload());
  }

  /** Workers by index; 0 is the main thread. */
  threadOf(worker: number): SimulatedThread | null {
    if (this.thread === null || worker === 0) return this.thread;
    return [...this.thread.children].find(({ name }) => name.endsWith(`/worker ${worker}`)) ?? null;
  }

  async #run(thread: SimulatedThread): Promise<void> {
    const exports = await this.#program.run(thread, 'create-gateway');
    const createGateway = exports.createGateway as typeof import('#gateway').createGateway;
    const config = createConfigOf(this.#plan, this.index, this.firstByteMs);
    const gateway = createGateway(config, {
      secrets: {
        ...NO_SECRETS,
        tokens: [{ name: 'admin', role: 'admin', token: ADMIN_TOKEN }],
        hashSalt: 'salt',
      },
      log: this.#createLog(thread) as never,
      pid: this.index + 1,
      configSource: {
        config,
        path: 'gateway.yaml',
        read: async () => createConfigOf(this.#plan, this.index, this.firstByteMs),
      },
    });
    this.#gateway = gateway;
    await gateway.start();
    if (!thread.hasEnded) this.state = 'serving';
  }

  #onStartFailed(thread: SimulatedThread, error: unknown): void {
    if (thread.hasEnded) return;
    this.#onLog(this.index, 'fatal', String(error), {});
    if (!(error instanceof Error) || error.name !== 'StartError') {
      this.#parts.chronicle.violate(
        `${thread.name} does not start: ${error instanceof Error ? error.stack : String(error)}`,
      );
    }
    thread.end();
    this.#forget();
    // As its supervisor would.
    this.#parts.schedule.after(1_000, this.#supervisor, 'starts again', () => this.start());
  }

  #onClosed(thread: SimulatedThread, result: CloseResult): void {
    if (thread.hasEnded) return;
    this.losses.onClosed(result);
    // main.ts would end the process now. What was being written to a file meanwhile may end first.
    this.#parts.schedule.after(ENDING_MS, this.#supervisor, 'has closed', () => {
      if (thread.hasEnded) return;
      const left = findLeftOpen(thread);
      if (left !== null) this.#parts.chronicle.violate(left);
      thread.end();
      this.#forget();
      if (this.#startsAgain) this.start();
    });
  }

  #forget(): void {
    this.thread = null;
    this.#gateway = null;
    this.state = 'down';
  }

  readonly #supervisor = {
    name: 'supervisor',
    hasEnded: false,
    stalledUntilMs: 0,
    onUncaught(error: unknown) {
      throw error;
    },
  };

  #createLog(thread: SimulatedThread): Readonly<Record<string, unknown>> {
    const write =
      (level: string): Log =>
      (fields, message = '') => {
        if (thread.hasEnded) return;
        this.#onLog(this.index, level, message, fields);
        this.losses.onLog(message, fields);
        if (DEFECT_LINES.includes(message)) {
          this.#parts.chronicle.violate(
            `gateway ${this.index} logs a defect: ${message} ${JSON.stringify(fields)}`,
          );
        }
      };
    const levels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal'];
    return {
      level: 'info',
      isLevelEnabled: (level: string) => levels.indexOf(level) >= levels.indexOf('info'),
      ...Object.fromEntries(levels.map((level) => [level, write(level)])),
    };
  }
}
