import { EventEmitter } from 'node:events';
import type { Server, Socket } from 'node:net';
import { type Chance, createChance } from '../engine/chance.ts';
import type { Owner, ScheduledEvent } from '../engine/schedule.ts';
import type { Machine } from './machine.ts';
import { Timers, type TimerThread } from './timers.ts';

/** The thread that runs a copy of the code at present. */
export type CurrentThread = () => SimulatedThread;

/** The code that threads run. */
export interface ThreadProgram {
  /** Runs a copy of a script in a thread. Resolves with what it exports. */
  run(thread: SimulatedThread, name: string): Promise<Readonly<Record<string, unknown>>>;
}

/** What the thread's creator is told. */
export interface ThreadHandlers {
  /** An error that nothing in the thread handles has ended it. */
  onCrash(error: unknown): void;
}

/**
 * One thread with an event loop of its own: the main thread of a gateway, or a worker. It runs a copy of the program of
 * its own, with globals and modules of its own.
 */
export class SimulatedThread implements Owner, TimerThread {
  readonly name: string;
  readonly machine: Machine;
  readonly program: ThreadProgram;
  readonly chance: Chance;
  readonly timers: Timers;
  /** The `process` of the thread emits what Node's does. */
  readonly processEvents = new EventEmitter();
  /** Node's servers that have not closed. */
  readonly servers = new Set<Server>();
  /** Node's sockets that have not closed. */
  readonly sockets = new Set<Socket>();
  /** The paths of open files. */
  readonly openFiles = new Map<object, string>();
  readonly children = new Set<SimulatedThread>();
  stalledUntilMs = 0;
  readonly #startedMs: number;
  readonly #handlers: ThreadHandlers;
  #hasEnded = false;
  #lastChild = 0;

  constructor(
    name: string,
    { machine, program }: { machine: Machine; program: ThreadProgram },
    handlers: ThreadHandlers,
  ) {
    this.name = name;
    this.machine = machine;
    this.program = program;
    this.#handlers = handlers;
    this.chance = createChance(machine.seed, name);
    this.timers = new Timers(this);
    this.#startedMs = machine.schedule.nowMs - this.chance.between(1, 50);
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The `performance.now()` of the thread. */
  get nowMs(): number {
    return this.machine.schedule.nowMs - this.#startedMs;
  }

  /** Each child has a number of its own, so that a worker that replaces another has other luck. */
  nextChildNumber(): number {
    return ++this.#lastChild;
  }

  later(label: string, delayMs: number, run: () => void): ScheduledEvent {
    return this.machine.schedule.after(delayMs, this, `${this.name} ${label}`, run);
  }

  next(label: string, run: () => void): ScheduledEvent {
    return this.machine.schedule.next(this, `${this.name} ${label}`, run);
  }

  cancel(event: ScheduledEvent): void {
    this.machine.schedule.cancel(event);
  }

  onUncaught(error: unknown): void {
    if (this.#hasEnded) return;
    if (this.processEvents.listenerCount('uncaughtException') > 0) {
      this.processEvents.emit('uncaughtException', error);
      return;
    }
    this.abort(error);
  }

  /** Ends the thread with an error that it cannot handle, such as the end of its memory. */
  abort(error: unknown): void {
    if (this.#hasEnded) return;
    this.end();
    this.#handlers.onCrash(error);
  }

  /** Ends the thread at once. The system closes what it had open. */
  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const child of this.children) child.end();
    this.machine.network.closeAllOf(this);
    // They hold a timer of Node.
    for (const server of this.servers) server.close();
    for (const socket of this.sockets) freeParser(socket);
  }
}

/** Frees what parses HTTP on a socket that will never close: Node itself holds it, and with it the whole world. */
function freeParser(socket: Socket & { parser?: HttpParser | null }): void {
  const { parser } = socket;
  if (parser == null) return;
  socket.parser = null;
  parser.remove();
  parser.close();
}

interface HttpParser {
  remove(): void;
  close(): void;
}
