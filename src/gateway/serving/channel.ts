import { startDeadline } from '#otel/base';

/** A call that has arguments and perhaps a result. */
type Call = (...args: never[]) => unknown;

/**
 * How a call crosses threads. `tell`: one way; `moves`: the same, with memory that moves instead of being copied. `ask`:
 * it is answered, however long that takes; `withinMs`: it rejects if there is no answer by then. `keep`: it is answered,
 * and a worker that replaces another gets the last one.
 */
type HowOf<C> = C extends (...args: infer Args) => Promise<unknown>
  ? 'ask' | 'keep' | { readonly withinMs: (...args: Args) => number }
  : C extends (...args: infer Args) => void
    ? 'tell' | { readonly moves: (...args: Args) => ArrayBuffer[] }
    : never;

/** The calls of one direction, with how each crosses threads. */
export type CallTable<T> = { readonly [K in keyof T]: HowOf<T[K]> };

/** What all workers have answered. */
export interface Answers<R> {
  readonly results: readonly R[];
  /** The numbers, from 1, of the workers that run, but have failed, or have not answered in time. */
  readonly silent: readonly number[];
}

/** The calls of a table, each made to all workers. */
export type CallsOfAll<T> = {
  readonly [K in keyof T]: T[K] extends (...args: infer Args) => Promise<infer R>
    ? (...args: Args) => Promise<Answers<R>>
    : T[K];
};

/** Makes an object with a function for each call of a table. */
export function toCalls<T, Made = T>(
  table: CallTable<T>,
  toCall: (name: keyof T & string, how: CallTable<T>[keyof T]) => (...args: unknown[]) => unknown,
): Made {
  const names = Object.keys(table) as (keyof T & string)[];
  return Object.fromEntries(names.map((name) => [name, toCall(name, table[name])])) as Made;
}

/** The calls of a table to all workers, of which there is only one, in this thread. */
export function toDirectCalls<T>(table: CallTable<T>, own: T): CallsOfAll<T> {
  return toCalls(table, (name, how) => {
    if (how === 'tell') return (...args) => carryOut(own, name, args);
    return async (...args) => ({ results: [await carryOut(own, name, args)], silent: [] });
  });
}

/** Carries out a call. */
export function carryOut<T>(own: T, name: keyof T, args: readonly unknown[]): unknown {
  return (own[name] as Call)(...(args as never[]));
}

/** What crosses threads. A call without `id` is not answered. An error loses its `code` there, so that is separate. */
type Message =
  | {
      readonly kind: 'call';
      readonly id: number | null;
      readonly name: string;
      readonly args: readonly unknown[];
    }
  | { readonly kind: 'result'; readonly id: number; readonly result: unknown }
  | ErrorMessage;

interface ErrorMessage {
  readonly kind: 'error';
  readonly id: number;
  readonly message: string;
  readonly code: string | null;
}

/** One end between two threads: a `Worker`, or a `MessagePort`. It keeps the order of messages. */
export interface ChannelPort {
  postMessage(message: Message, moved: ArrayBuffer[]): void;
  on(event: 'message', listener: (message: Message) => void): unknown;
}

interface OpenCall {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly endDeadline: (() => void) | undefined;
}

/** One end of a channel between two threads, each of which calls the other. */
export class Channel<Theirs> {
  /** The calls that the other end carries out. Those with answers reject if that fails, or when the channel closes. */
  readonly calls: Theirs;
  readonly #port: ChannelPort;
  readonly #open = new Map<number, OpenCall>();
  #lastId = 0;
  #closedBy: Error | null = null;

  constructor(port: ChannelPort, theirs: CallTable<Theirs>) {
    this.#port = port;
    this.calls = toCalls(theirs, (name, how) => {
      if (how === 'tell') return (...args) => this.#tell(name, args, []);
      if (typeof how !== 'object') return (...args) => this.#ask(name, args, null);
      if ('withinMs' in how) return (...args) => this.#ask(name, args, how.withinMs(...(args as never[])));
      return (...args) => this.#tell(name, args, how.moves(...(args as never[])));
    });
  }

  /**
   * Reads what arrives from now on, and has `own` carry out the calls of the other end. What `beforeAnswer` sends comes
   * before the answer.
   */
  serve<Own>(own: Own, beforeAnswer = (): void => undefined): void {
    const answer = async (id: number, name: keyof Own, args: readonly unknown[]) => {
      try {
        const result = await carryOut(own, name, args);
        beforeAnswer();
        this.#port.postMessage({ kind: 'result', id, result }, []);
      } catch (error) {
        this.#port.postMessage(toErrorMessage(id, error), []);
      }
    };
    this.#port.on('message', (message) => {
      switch (message.kind) {
        case 'call':
          // An error in a call that is not answered is uncaught here, as it would be without a channel.
          if (message.id === null) carryOut(own, message.name as keyof Own, message.args);
          else void answer(message.id, message.name as keyof Own, message.args);
          break;
        case 'result':
          this.#take(message.id)?.resolve(message.result);
          break;
        case 'error':
          this.#take(message.id)?.reject(toError(message));
          break;
      }
    });
  }

  /** The other end is gone: what it has not answered rejects with the error, and so does every later `ask`. */
  close(error: Error): void {
    this.#closedBy = error;
    for (const id of this.#open.keys()) this.#take(id)?.reject(error);
  }

  #tell(name: string, args: readonly unknown[], moved: ArrayBuffer[]): void {
    this.#port.postMessage({ kind: 'call', id: null, name, args }, moved);
  }

  #ask(name: string, args: readonly unknown[], withinMs: number | null): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#closedBy !== null) throw this.#closedBy;
      const id = ++this.#lastId;
      this.#port.postMessage({ kind: 'call', id, name, args }, []);
      const tooLate = () => this.#take(id)?.reject(new Error(`${name} was not answered in time`));
      const endDeadline = withinMs === null ? undefined : startDeadline(withinMs, tooLate);
      this.#open.set(id, { resolve, reject, endDeadline });
    });
  }

  #take(id: number): OpenCall | undefined {
    const call = this.#open.get(id);
    this.#open.delete(id);
    call?.endDeadline?.();
    return call;
  }
}

function toErrorMessage(id: number, error: unknown): ErrorMessage {
  if (!(error instanceof Error)) return { kind: 'error', id, message: 'unknown error', code: null };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  return { kind: 'error', id, message: error.message, code };
}

function toError({ message, code }: ErrorMessage): Error {
  const error = new Error(message);
  return code === null ? error : Object.assign(error, { code });
}
