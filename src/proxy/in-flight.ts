import type { Exchange } from './exchange.ts';

/**
 * The exchanges that are not over. Not a Set: V8's leaves every table that it outgrew pointing to the next one, so
 * that a dead table of the old generation keeps whole requests alive (2 % of all garbage survived that way).
 */
export class InFlight implements Iterable<Exchange> {
  readonly #exchanges: Exchange[] = [];

  get size(): number {
    return this.#exchanges.length;
  }

  /** Takes in an exchange that is not in it. */
  add(exchange: Exchange): void {
    exchange.inFlightIndex = this.#exchanges.push(exchange) - 1;
  }

  /** Takes out an exchange that is in it; the last one moves to its place. */
  remove(exchange: Exchange): void {
    const last = this.#exchanges.pop();
    if (last === undefined || last === exchange) return;
    last.inFlightIndex = exchange.inFlightIndex;
    this.#exchanges[last.inFlightIndex] = last;
  }

  /** A copy: what is done with one may take it out. */
  [Symbol.iterator](): Iterator<Exchange> {
    return [...this.#exchanges].values();
  }
}
