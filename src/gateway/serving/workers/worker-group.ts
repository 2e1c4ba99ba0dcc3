import { url as inspectorUrl } from 'node:inspector';
import type { JwtKeys } from '#access/jwt';
import type { Telemetry } from '#otel';
import { waitAtMost } from '#otel/base';
import type { BackgroundResponse } from '#proxy';
import type { HealthDecision, PoolSnapshot } from '#replicas/terms';
import type { TlsMaterial } from '#wire';
import type { JwtAuthority } from '../client-access.ts';
import {
  CUT_NOTICE_MS,
  type ListenOptions,
  type Serving,
  type ServingLog,
  type ServingSettings,
  type WorkerLoopTime,
} from '../serving.ts';
import { freeWorkerMemory } from '../serving-memory.ts';
import { findFreePort } from './free-port.ts';
import type { LogLevel, WorkerCall, WorkerQuestion } from './messages.ts';
import { CHECK_INTERVAL_MS, Watchdog } from './watchdog.ts';
import { type WorkerEnd, WorkerSlot } from './worker-slot.ts';
import { WorkerThread } from './worker-thread.ts';

/** How long a worker may take to answer a call that needs no work. */
const ANSWER_TIMEOUT_MS = 5_000;
/** How long a reader of figures waits for a busy worker. */
const FIGURES_TIMEOUT_MS = 1_000;

const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** The settings of each worker, and how many there are. */
export type WorkerGroupSettings = Omit<ServingSettings, 'worker'> & { readonly workerCount: number };

/** What the group works with. A pino logger fits as `log`. */
export interface WorkerGroupCollaborators {
  readonly authority: JwtAuthority;
  readonly telemetry: Pick<Telemetry, 'queueMemory' | 'receive' | 'workerStarted' | 'workerEnded'>;
  readonly log: ServingLog & { isLevelEnabled(level: LogLevel): boolean };
  /** See `ServingCollaborators`. */
  readonly onHealth: (decision: HealthDecision) => void;
  /** See `ServingCollaborators`. */
  readonly onBackground: (response: BackgroundResponse) => void;
  /** Called when the thread of a worker has ended, after everything that it has sent. */
  readonly onThreadEnd: (worker: number) => void;
  /** Called when a worker has ended unexpectedly. */
  readonly onWorkerEnd: (end: WorkerEnd) => void;
}

/**
 * A data plane of several workers. Each has its own thread and its own listener on the same port; the system spreads the
 * connections over them. A worker that hangs is terminated, and a worker that ends is replaced: its requests no longer
 * count as in flight, and their records are counted as lost.
 */
export class WorkerGroup implements Serving {
  #settings: WorkerGroupSettings;
  readonly #collaborators: WorkerGroupCollaborators;
  #logLevels: readonly LogLevel[];
  readonly #slots: readonly WorkerSlot[];
  readonly #heartbeats: Int32Array;
  readonly #watchdog: Watchdog;
  readonly #checks: NodeJS.Timeout;
  #topology: PoolSnapshot | null = null;

  constructor({ workerCount, ...settings }: WorkerGroupSettings, collaborators: WorkerGroupCollaborators) {
    this.#settings = { workerCount, ...settings };
    this.#collaborators = collaborators;
    this.#logLevels = this.#enabledLevels();
    this.#heartbeats = new Int32Array(new SharedArrayBuffer(workerCount * Int32Array.BYTES_PER_ELEMENT));
    this.#watchdog = new Watchdog(this.#heartbeats);
    this.#checks = setInterval(() => this.#terminateHungWorkers(), CHECK_INTERVAL_MS).unref();
    this.#slots = Array.from({ length: workerCount }, (_, worker) => this.#createSlot(worker));
  }

  /** Binds the port exclusively first, so that a port in use is an error. */
  async listen(address: ListenOptions): Promise<number> {
    const port = await findFreePort(address);
    await Promise.all(this.#slots.map((slot) => slot.listen({ ...address, port, reusePort: true })));
    return port;
  }

  async apply(topology: PoolSnapshot): Promise<void> {
    this.#topology = topology;
    await this.#callAll({ kind: 'apply', topology });
  }

  async configure(config: ServingSettings['config']): Promise<void> {
    this.#settings = { ...this.#settings, config };
    this.#logLevels = this.#enabledLevels();
    await this.#callAll({ kind: 'configure', config, logLevels: this.#logLevels });
  }

  async useClients(clients: ServingSettings['clients']): Promise<void> {
    this.#settings = { ...this.#settings, clients };
    await this.#callAll({ kind: 'useClients', clients });
  }

  async useJwtKeys(jwtKeys: JwtKeys): Promise<void> {
    this.#settings = { ...this.#settings, jwtKeys };
    await this.#callAll({ kind: 'useJwtKeys', keys: jwtKeys });
  }

  async useTls(material: TlsMaterial): Promise<void> {
    this.#settings = { ...this.#settings, tls: material };
    await this.#callAll({ kind: 'useTls', material });
  }

  async confirm(): Promise<readonly number[]> {
    const answers = this.#slots.map(async ({ thread }, worker) => {
      if (thread === null) return null;
      // A worker that ends meanwhile writes nothing more.
      const answered = thread.call({ kind: 'confirm' }).catch(() => 0);
      return (await waitAtMost(ANSWER_TIMEOUT_MS, answered)) === null ? worker + 1 : null;
    });
    return (await Promise.all(answers)).filter((worker) => worker !== null);
  }

  /** The records of a worker arrive before its answer. A worker that stays busy is not waited for. */
  async settleRecords(): Promise<void> {
    await Promise.all(
      this.#threads().map((thread) => thread.callWithin(FIGURES_TIMEOUT_MS, { kind: 'settleRecords' })),
    );
  }

  eventLoopTimes(): readonly WorkerLoopTime[] {
    return this.#slots.flatMap(({ thread }, worker) => {
      if (thread === null) return [];
      const { active, idle } = thread.eventLoopUtilization();
      return [{ worker: worker + 1, activeMs: active, idleMs: idle }];
    });
  }

  startClosing(): void {
    this.#stopReplacing();
    for (const thread of this.#threads()) thread.call({ kind: 'startClosing' }).catch(() => undefined);
  }

  async finish(graceMs: number): Promise<number> {
    this.#stopReplacing();
    const cuts = this.#threads().map(async (thread) => {
      const cut = await thread.callWithin(graceMs + CUT_NOTICE_MS + ANSWER_TIMEOUT_MS, {
        kind: 'finish',
        graceMs,
      });
      // The requests of a worker that does not answer are counted when it has ended.
      if (cut === null) await thread.terminate();
      return cut ?? 0;
    });
    const sum = (await Promise.all(cuts)).reduce((total, cut) => total + cut, 0);
    return this.#slots.reduce((total, { lostInClosing }) => total + lostInClosing, sum);
  }

  async close(): Promise<void> {
    this.#stopReplacing();
    await Promise.all(
      this.#threads().map(async (thread) => {
        await thread.callWithin(ANSWER_TIMEOUT_MS, { kind: 'close' });
        await thread.terminate();
      }),
    );
  }

  #stopReplacing(): void {
    clearInterval(this.#checks);
    for (const slot of this.#slots) slot.stopReplacing();
  }

  #terminateHungWorkers(): void {
    // A worker at a breakpoint does not hang.
    if (inspectorUrl() !== undefined) return;
    for (const slot of this.#slots) slot.terminateIfHung();
  }

  #createSlot(index: number): WorkerSlot {
    const { telemetry, onThreadEnd, onWorkerEnd, log } = this.#collaborators;
    return new WorkerSlot(index, {
      startThread: (worker, onEnd) => this.#startThread(worker, onEnd),
      free: (worker) => {
        const lost = telemetry.workerEnded(worker);
        onThreadEnd(worker);
        freeWorkerMemory(this.#settings.memory, worker);
        return lost;
      },
      watchdog: this.#watchdog,
      onWorkerEnd,
      log,
    });
  }

  #threads(): readonly WorkerThread[] {
    return this.#slots.flatMap(({ thread }) => thread ?? []);
  }

  async #callAll(call: WorkerCall): Promise<void> {
    await Promise.all(
      this.#threads().map(async (thread) => {
        // A worker with older settings is terminated; its replacement starts with the current ones.
        await thread.call(call).catch((error: Error) => thread.terminate(error));
      }),
    );
  }

  #enabledLevels(): readonly LogLevel[] {
    return LOG_LEVELS.filter((level) => this.#collaborators.log.isLevelEnabled(level));
  }

  #startThread(worker: number, onEnd: (reason: Error) => void): WorkerThread {
    const { workerCount: _, ...settings } = this.#settings;
    const { telemetry, onHealth, onBackground, log } = this.#collaborators;
    return new WorkerThread(
      {
        settings: { ...settings, worker },
        queueMemory: telemetry.queueMemory,
        instance: telemetry.workerStarted(worker),
        heartbeats: this.#heartbeats,
        logLevels: this.#logLevels,
        topology: this.#topology,
      },
      {
        onRecords: (records) => telemetry.receive(worker, records),
        onQuestion: (question) => this.#answer(question),
        onHealth,
        onBackground,
        onLog: (level, fields, message) => log[level]({ worker: worker + 1, ...fields }, message),
        onEnd,
      },
    );
  }

  async #answer(question: WorkerQuestion): Promise<number | null> {
    const { authority } = this.#collaborators;
    if (question.kind === 'limitRowOf') return await authority.limitRowOf(question.of, question.tenant);
    await authority.refreshKeys();
    return null;
  }
}
