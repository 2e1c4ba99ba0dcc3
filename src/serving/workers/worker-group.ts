import { url as inspectorUrl } from 'node:inspector';
import { createServer } from 'node:net';
import { waitAtMost } from '#otel/clock.ts';
import { clearEventLoopDelay } from '#otel/metrics/event-loop-delay.ts';
import type { Telemetry } from '#otel/start-telemetry.ts';
import { ClientLimitTable } from '../../client-limits/client-limit-table.ts';
import type { TlsMaterial } from '../../http/client/tls-acceptor.ts';
import { clearLimit } from '../../http/shared-limit.ts';
import type { JwtKeys } from '../../jwt/jwks.ts';
import type { HealthDecision } from '../../replicas/health-decision.ts';
import type { PoolSnapshot } from '../../replicas/pool-snapshot.ts';
import { SharedState } from '../../replicas/shared/shared-state.ts';
import type { JwtAuthority } from '../client-access.ts';
import {
  CUT_NOTICE_MS,
  type ListenOptions,
  type Serving,
  type ServingLog,
  type ServingSettings,
  type WorkerLoopTime,
} from '../serving.ts';
import type { LogLevel, WorkerCall, WorkerQuestion } from './messages.ts';
import { CHECK_INTERVAL_MS, Watchdog } from './watchdog.ts';
import { WorkerThread } from './worker-thread.ts';

/** How long a worker may take to answer a call that needs no work. */
const ANSWER_TIMEOUT_MS = 5_000;
/** How long a reader of figures waits for a busy worker. */
const FIGURES_TIMEOUT_MS = 1_000;

const FIRST_RESTART_DELAY_MS = 100;
const LONGEST_RESTART_DELAY_MS = 10_000;
/** A worker that ran for less counts towards the delay of the next start. */
const SHORT_LIFE_MS = 10_000;

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
  /** Called when a worker has ended unexpectedly. */
  readonly onWorkerEnd: (end: WorkerEnd) => void;
}

/** How a worker ended unexpectedly: on its own, or because the watchdog found that it hangs. */
export type WorkerEnd = 'died' | 'hung';

/** One worker. It keeps its index when a new thread replaces its thread. */
interface WorkerSlot {
  readonly worker: number;
  /** Null between the end of a thread and the start of the next. */
  thread: WorkerThread | null;
  startedAtMs: number;
  /** The number of threads in a row that ended within SHORT_LIFE_MS. */
  shortLives: number;
  /** Whether its thread is being terminated because it hangs. */
  isHung: boolean;
  restart: NodeJS.Timeout | undefined;
}

/**
 * A data plane of several workers. Each has its own thread and its own listener on the same port; the system spreads the
 * connections over them. A worker that hangs is terminated, and a worker that ends is replaced: its requests no longer
 * count as in flight, and their records are counted as lost.
 */
export class WorkerGroup implements Serving {
  #settings: WorkerGroupSettings;
  readonly #collaborators: WorkerGroupCollaborators;
  readonly #shared: SharedState;
  #logLevels: readonly LogLevel[];
  readonly #slots: readonly WorkerSlot[];
  readonly #heartbeats: Int32Array;
  readonly #watchdog: Watchdog;
  readonly #checks: NodeJS.Timeout;
  #topology: PoolSnapshot | null = null;
  #address: ListenOptions | null = null;
  #state: 'starting' | 'serving' | 'closing' = 'starting';
  /** The number of requests that ended with their worker while the group was closing. */
  #lostInClosing = 0;

  constructor({ workerCount, ...settings }: WorkerGroupSettings, collaborators: WorkerGroupCollaborators) {
    this.#settings = { workerCount, ...settings };
    this.#collaborators = collaborators;
    this.#shared = new SharedState(settings.memory.replicas);
    this.#logLevels = this.#enabledLevels();
    this.#heartbeats = new Int32Array(new SharedArrayBuffer(workerCount * Int32Array.BYTES_PER_ELEMENT));
    this.#watchdog = new Watchdog(this.#heartbeats);
    this.#checks = setInterval(() => this.#terminateHungWorkers(), CHECK_INTERVAL_MS).unref();
    this.#slots = Array.from({ length: workerCount }, (_, worker) => this.#createSlot(worker));
    for (const slot of this.#slots) this.#startThread(slot);
  }

  /** Binds the port exclusively first, so that a port in use is an error. */
  async listen(address: ListenOptions): Promise<number> {
    const port = await findFreePort(address);
    this.#address = { ...address, port, reusePort: true };
    await Promise.all(this.#slots.map((slot) => this.#listenIn(slot)));
    this.#state = 'serving';
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
    const answers = this.#slots.map(async ({ worker, thread }) => {
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
      this.#threads().map((thread) => callWithin(thread, { kind: 'settleRecords' }, FIGURES_TIMEOUT_MS)),
    );
  }

  eventLoopTimes(): readonly WorkerLoopTime[] {
    return this.#slots.flatMap(({ worker, thread }) => {
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
      const cut = await callWithin(
        thread,
        { kind: 'finish', graceMs },
        graceMs + CUT_NOTICE_MS + ANSWER_TIMEOUT_MS,
      );
      // The requests of a worker that does not answer are counted when it has ended.
      if (cut === null) await thread.terminate();
      return cut ?? 0;
    });
    const sum = (await Promise.all(cuts)).reduce((total, cut) => total + cut, 0);
    return sum + this.#lostInClosing;
  }

  async close(): Promise<void> {
    this.#stopReplacing();
    await Promise.all(
      this.#threads().map(async (thread) => {
        await callWithin(thread, { kind: 'close' }, ANSWER_TIMEOUT_MS);
        await thread.terminate();
      }),
    );
  }

  /** From now on no thread is replaced. */
  #stopReplacing(): void {
    this.#state = 'closing';
    clearInterval(this.#checks);
    for (const { restart } of this.#slots) clearTimeout(restart);
  }

  /** Terminates a thread even in an endless loop or a blocking wait; `#ended` then replaces it. */
  #terminateHungWorkers(): void {
    // A worker at a breakpoint does not hang.
    if (inspectorUrl() !== undefined) return;
    for (const slot of this.#slots) {
      const { worker, thread, isHung } = slot;
      if (thread === null || isHung || !this.#watchdog.isHung(worker)) continue;
      slot.isHung = true;
      this.#collaborators.log.error({ worker: worker + 1 }, 'worker hangs');
      void thread.terminate();
    }
  }

  #createSlot(worker: number): WorkerSlot {
    return { worker, thread: null, startedAtMs: 0, shortLives: 0, isHung: false, restart: undefined };
  }

  #threads(): readonly WorkerThread[] {
    return this.#slots.flatMap(({ thread }) => thread ?? []);
  }

  async #callAll(call: WorkerCall): Promise<void> {
    await Promise.all(
      this.#threads().map(async (thread) => {
        // A worker with older settings is terminated; its replacement starts with the current ones.
        if ((await thread.call(call).catch(() => null)) === null) await thread.terminate();
      }),
    );
  }

  #enabledLevels(): readonly LogLevel[] {
    return LOG_LEVELS.filter((level) => this.#collaborators.log.isLevelEnabled(level));
  }

  #startThread(slot: WorkerSlot): WorkerThread {
    const { worker } = slot;
    const { workerCount: _, ...settings } = this.#settings;
    const { telemetry, onHealth, log } = this.#collaborators;
    const thread = new WorkerThread(
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
        onLog: (level, fields, message) => log[level]({ worker: worker + 1, ...fields }, message),
        onEnd: (error) => this.#ended(slot, error),
      },
    );
    this.#watchdog.reset(worker);
    slot.thread = thread;
    slot.isHung = false;
    slot.startedAtMs = performance.now();
    return thread;
  }

  async #answer(question: WorkerQuestion): Promise<number | null> {
    const { authority } = this.#collaborators;
    if (question.kind === 'limitRowOf') return await authority.limitRowOf(question.of, question.tenant);
    await authority.refreshKeys();
    return null;
  }

  async #listenIn({ thread }: WorkerSlot): Promise<void> {
    if (thread === null || this.#address === null) throw new Error('a worker ended before it could listen');
    await thread.call({ kind: 'listen', address: this.#address });
  }

  /** Frees what the thread had acquired in shared memory, and replaces it. The thread sends no more messages. */
  #ended(slot: WorkerSlot, error: unknown): void {
    const { worker } = slot;
    const { memory } = this.#settings;
    slot.thread = null;
    const lost = this.#collaborators.telemetry.workerEnded(worker);
    this.#shared.clearWorker(worker);
    new ClientLimitTable(memory.clientLimits).clearWorker(worker);
    clearLimit(memory.buffered, worker);
    clearLimit(memory.connections, worker);
    clearEventLoopDelay(memory.eventLoopDelays, worker + 1);
    if (this.#state === 'closing') {
      this.#lostInClosing += lost;
      return;
    }
    this.#collaborators.onWorkerEnd(slot.isHung ? 'hung' : 'died');
    const isShortLife = performance.now() - slot.startedAtMs < SHORT_LIFE_MS;
    slot.shortLives = isShortLife ? slot.shortLives + 1 : 0;
    const delayMs = restartDelayMs(slot.shortLives);
    this.#collaborators.log.error(
      { worker: worker + 1, err: error, lost, restart_ms: delayMs },
      'worker ended',
    );
    if (this.#state === 'serving') slot.restart = setTimeout(() => void this.#restart(slot), delayMs);
  }

  async #restart(slot: WorkerSlot): Promise<void> {
    const thread = this.#startThread(slot);
    try {
      await this.#listenIn(slot);
      this.#collaborators.log.info({ worker: slot.worker + 1 }, 'worker replaced');
    } catch (error) {
      this.#collaborators.log.error({ worker: slot.worker + 1, err: error }, 'worker cannot listen');
      await thread.terminate();
    }
  }
}

/** Returns the result of a call, or null if the worker fails, ends, or takes longer than `ms`. */
function callWithin(thread: WorkerThread, call: WorkerCall, ms: number): Promise<number | null> {
  const answer: Promise<number | null> = thread.call(call).catch(() => null);
  return waitAtMost(ms, answer);
}

/**
 * How long to wait before a worker is replaced, after `shortLives` threads in a row that ended soon. The first is
 * replaced at once; the delay then doubles, so that a worker that cannot start costs next to nothing.
 */
export function restartDelayMs(shortLives: number): number {
  if (shortLives <= 1) return 0;
  return Math.min(LONGEST_RESTART_DELAY_MS, FIRST_RESTART_DELAY_MS * 2 ** (shortLives - 2));
}

/**
 * Binds an address exclusively and closes it again. Returns the port, which the system picks for port 0; rejects with
 * the system's error. Listeners with SO_REUSEPORT alone would not notice that another gateway uses the port.
 */
function findFreePort(address: { readonly host: string; readonly port: number }): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen({ host: address.host, port: address.port, exclusive: true }, () => {
      const bound = server.address();
      const port = typeof bound === 'object' && bound !== null ? bound.port : address.port;
      server.close(() => resolve(port));
    });
  });
}
