import { isIPv6 } from 'node:net';
import { atMostOncePerMinute } from '#base';
import type { Log } from '#otel/base';
import type { Access, WrongToken } from './admin-access.ts';
import type { Caller } from './caller.ts';

/** How many different wrong tokens a source may send at once. */
const BURST = 10;
/** How soon one more is forgiven. */
const FORGIVEN_AFTER_MS = 1_000;
/** How many sources are remembered. The one that called least recently is forgotten. */
const MAX_SOURCES = 4_096;

/** What is known of the clients behind one address. */
interface Source {
  /** Wrong tokens, each counted once, that are not forgiven yet, at `atMs`. */
  failures: number;
  atMs: number;
  /** The digests of the latest wrong tokens, at most BURST, oldest first. */
  readonly wrong: Set<string>;
  /** Whose tokens were right from here. */
  readonly known: WeakSet<Caller>;
}

/**
 * Limits how often one source may guess a token. Above the limit, only tokens that were right from the same source
 * before are accepted, so guesses behind a proxy do not lock out who works behind it already. A right token that is new
 * there is answered like a wrong one meanwhile, because anything else would tell that it is right.
 *
 * A wrong token that comes again is no new guess: a script with an old token does not use up what others may try.
 */
export class FailedTokens {
  readonly #sources = new Map<string, Source>();
  readonly #nowMs: () => number;
  readonly #logOnce: (source: string) => void;
  #count = 0;
  #loggedCount = 0;

  constructor(log: Log<'warn'>, nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;
    this.#logOnce = atMostOncePerMinute((source) => {
      log.warn({ source, failed: this.#count - this.#loggedCount }, 'wrong admin token');
      this.#loggedCount = this.#count;
    });
  }

  /** How many calls had a wrong token, or came from a source above its limit. */
  get count(): number {
    return this.#count;
  }

  /** Notes a call with a token. `limited`: it must be refused although its token may be right. */
  admit(address: string | undefined, access: Access): Exclude<Access, WrongToken> | 'wrong' | 'limited' {
    if (access === 'missing' || access === 'admin_disabled') return access;
    const key = toSource(address);
    const source = this.#find(key);
    const isLimited = source.failures > BURST - 1;
    if ('role' in access && (!isLimited || source.known.has(access))) {
      source.known.add(access);
      return access;
    }
    this.#count += 1;
    this.#logOnce(key);
    if ('digest' in access && source.wrong.has(access.digest)) return 'wrong';
    if (isLimited) return 'limited';
    source.failures += 1;
    if ('digest' in access) rememberWrong(source.wrong, access.digest);
    return 'wrong';
  }

  /** Moves the source to the end, which is forgotten last. */
  #find(key: string): Source {
    const nowMs = this.#nowMs();
    const found = this.#sources.get(key) ?? {
      failures: 0,
      atMs: nowMs,
      known: new WeakSet<Caller>(),
      wrong: new Set<string>(),
    };
    found.failures = Math.max(0, found.failures - (nowMs - found.atMs) / FORGIVEN_AFTER_MS);
    found.atMs = nowMs;
    this.#sources.delete(key);
    this.#sources.set(key, found);
    const [oldest] = this.#sources.keys();
    if (this.#sources.size > MAX_SOURCES && oldest !== undefined) this.#sources.delete(oldest);
    return found;
  }
}

function rememberWrong(wrong: Set<string>, digest: string): void {
  wrong.add(digest);
  const [oldest] = wrong;
  if (wrong.size > BURST && oldest !== undefined) wrong.delete(oldest);
}

/** The address; of an IPv6 address the first 64 bits, because one machine has all addresses behind them. */
function toSource(address: string | undefined): string {
  if (address === undefined) return 'unknown';
  if (address === '::1') return address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  if (!isIPv6(address)) return address;
  const [before = '', after] = address.replace(/%.*$/, '').split('::');
  const head = before === '' ? [] : before.split(':');
  const tail = after === undefined || after === '' ? [] : after.split(':');
  const groups = [...head, ...Array(Math.max(0, 8 - head.length - tail.length)).fill('0'), ...tail];
  return `${groups.slice(0, 4).join(':')}::/64`;
}
