import type { End } from '../../engine/end.ts';
import { hostOf, PORTS } from '../addresses.ts';
import type { WorldParts } from '../world-parts.ts';
import { Actor } from './actor.ts';

type Reply = string | number | null | Error | readonly Reply[];

interface Entry {
  readonly value: string | Map<string, string>;
  readonly expiresAtMs: number;
}

/** A Redis server with the commands that a fleet uses. It speaks RESP2 with the real client of the gateways. */
export class Redis {
  /** It reads commands and answers none. */
  isHanging = false;
  readonly #parts: WorldParts;
  readonly #entries = new Map<string, Entry>();
  #actor = new Actor('redis');
  #isUp = false;

  constructor(parts: WorldParts) {
    this.#parts = parts;
  }

  start(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#actor = new Actor('redis');
    this.#parts.network.listen(`${hostOf.redis}:${PORTS.redis}`, {
      owner: this.#actor,
      reusesPort: false,
      accept: (end) => this.#serve(end),
    });
  }

  stop(): void {
    this.#isUp = false;
    this.#actor.hasEnded = true;
    this.#parts.network.closeAllOf(this.#actor);
  }

  /** It comes back without its data. */
  wipe(): void {
    this.#entries.clear();
  }

  #serve(end: End): void {
    let unread = '';
    let queued: (readonly string[])[] | null = null;
    const answer = (command: readonly string[]): Reply => {
      const name = command[0]?.toLowerCase();
      if (name === 'multi') {
        queued = [];
        return OK;
      }
      if (name === 'exec') {
        const replies = (queued ?? []).map((each) => this.#run(each));
        queued = null;
        return replies;
      }
      if (queued !== null) {
        queued.push(command);
        return QUEUED;
      }
      return this.#run(command);
    };
    end.handler = {
      onData: (bytes) => {
        unread += bytes.toString('latin1');
        for (;;) {
          const read = readCommand(unread);
          if (read === null) return;
          unread = read.rest;
          const reply = answer(read.command);
          if (!this.isHanging) end.write(Buffer.from(print(reply), 'latin1'), () => undefined);
        }
      },
      onEnd: () => end.close(),
      onError: () => end.close(),
    };
    end.startReading();
  }

  #run([name = '', key = '', ...args]: readonly string[]): Reply {
    switch (name.toLowerCase()) {
      case 'ping':
        return PONG;
      case 'select':
        return OK;
      case 'set': {
        const [value = '', , expiryMs] = args;
        const expiresAtMs = this.#parts.schedule.nowMs + Number(expiryMs ?? Number.POSITIVE_INFINITY);
        this.#entries.set(key, { value, expiresAtMs });
        return OK;
      }
      case 'mget':
        return [key, ...args].map((each) => {
          const value = this.#get(each);
          return typeof value === 'string' ? value : null;
        });
      case 'hgetall':
        return [...this.#hash(key)].flat();
      case 'hmget':
        return args.map((field) => this.#hash(key).get(field) ?? null);
      case 'hset':
        return this.#change(key, (hash) => {
          for (let at = 0; at + 1 < args.length; at += 2) hash.set(args[at] ?? '', args[at + 1] ?? '');
        });
      case 'hdel':
        return this.#change(key, (hash) => {
          for (const field of args) hash.delete(field);
        });
      case 'del':
        for (const each of [key, ...args]) this.#entries.delete(each);
        return 1;
      default:
        return new Error(`ERR unknown command '${name}'`);
    }
  }

  #get(key: string): Entry['value'] | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined || entry.expiresAtMs <= this.#parts.schedule.nowMs ? undefined : entry.value;
  }

  #hash(key: string): Map<string, string> {
    const value = this.#get(key);
    return value instanceof Map ? value : new Map();
  }

  #change(key: string, change: (hash: Map<string, string>) => void): number {
    const hash = this.#hash(key);
    change(hash);
    if (hash.size === 0) this.#entries.delete(key);
    else this.#entries.set(key, { value: hash, expiresAtMs: Number.POSITIVE_INFINITY });
    return 1;
  }
}

/** Replies that are no bulk strings. */
class Status {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

const OK = new Status('OK') as unknown as string;
const QUEUED = new Status('QUEUED') as unknown as string;
const PONG = new Status('PONG') as unknown as string;

/** Reads one command, an array of bulk strings in latin-1; null while it is incomplete. */
function readCommand(text: string): { readonly command: readonly string[]; readonly rest: string } | null {
  const head = /^\*(\d+)\r\n/.exec(text);
  if (head === null) return null;
  const command: string[] = [];
  let at = head[0].length;
  for (let left = Number(head[1]); left > 0; left--) {
    const lineEnd = text.indexOf('\r\n', at);
    if (lineEnd === -1) return null;
    const size = Number(text.slice(at + 1, lineEnd));
    const end = lineEnd + 2 + size;
    if (text.length < end + 2) return null;
    command.push(text.slice(lineEnd + 2, end));
    at = end + 2;
  }
  return { command, rest: text.slice(at) };
}

function print(reply: Reply | Status): string {
  if (reply instanceof Status) return `+${reply.text}\r\n`;
  if (reply instanceof Error) return `-${reply.message}\r\n`;
  if (reply === null) return '$-1\r\n';
  if (typeof reply === 'number') return `:${reply}\r\n`;
  if (typeof reply === 'string') return `$${reply.length}\r\n${reply}\r\n`;
  return `*${reply.length}\r\n${reply.map(print).join('')}`;
}
