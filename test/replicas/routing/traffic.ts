import { createPrefixHasher } from '../../../src/proxy/record/prefix-hashes.ts';
import { PrefixCache, textPrompt } from '../../../src/simulate/prefix-cache.ts';

/** One simulated request: its text in blocks, and when it comes. */
export interface SimulatedRequest {
  readonly blocks: readonly string[];
  readonly atMs: number;
}

/** Chooses the replica for a request: its index. Loads are requests in flight, by index. */
export type Route = (hashes: readonly string[], loads: readonly number[]) => number;

/** The result of a simulation. */
export interface Outcome {
  /** Requests served, by index. */
  readonly served: readonly number[];
  /** The share of prompt tokens that the replica had in its prefix cache. */
  readonly cachedShare: number;
  /** The highest load of a replica relative to the mean load, averaged over the arrivals. */
  readonly peakToMean: number;
}

const BLOCK_CHARS = 512;
/** Blocks of 16 tokens that a replica can cache: 1,000 of our blocks of 512 characters. */
const CACHE_BLOCKS = 8_000;

/** Random numbers from 0 to 1, the same in every run (mulberry32, public domain). */
export function createRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let bits = Math.imul(state ^ (state >>> 15), 1 | state);
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits;
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Plays requests in virtual time. A cached prompt takes less time. */
export function simulate(requests: readonly SimulatedRequest[], replicaCount: number, route: Route): Outcome {
  const random = createRandom(9);
  const hasher = createPrefixHasher({
    salt: Buffer.from('salt'),
    blockChars: BLOCK_CHARS,
    maxBlocks: 128,
  });
  const caches = Array.from({ length: replicaCount }, () => new PrefixCache(CACHE_BLOCKS));
  const loads = new Array<number>(replicaCount).fill(0);
  const served = new Array<number>(replicaCount).fill(0);
  let running: { readonly index: number; readonly untilMs: number }[] = [];
  let tokens = 0;
  let cached = 0;
  let peaks = 0;
  for (const { blocks, atMs } of requests) {
    for (const { index } of running.filter(({ untilMs }) => untilMs <= atMs))
      loads[index] = at(loads, index) - 1;
    running = running.filter(({ untilMs }) => untilMs > atMs);

    const text = blocks.join('');
    const chain = hasher.begin('m', undefined);
    chain.add(Buffer.from(text));
    const index = route(chain.finish(), loads);
    const prompt = textPrompt(text);
    const { cachedTokens } = at(caches, index).remember('m', prompt);
    tokens += prompt.tokens;
    cached += cachedTokens;
    served[index] = at(served, index) + 1;
    loads[index] = at(loads, index) + 1;
    const prefillMs = (prompt.tokens - cachedTokens) * 0.8;
    running.push({ index, untilMs: atMs + prefillMs + 10_000 * (0.5 + random()) });
    peaks += (Math.max(...loads) * replicaCount) / running.length;
  }
  return { served, cachedShare: cached / tokens, peakToMean: peaks / requests.length };
}

function at<T>(items: readonly T[], index: number): T {
  const item = items[index];
  if (item === undefined) throw new RangeError(`nothing at ${index}`);
  return item;
}

/** Kinds of traffic that share prefixes in different ways: `count` requests each, in the order of arrival. */
export const WORKLOADS: Readonly<Record<string, (count: number) => SimulatedRequest[]>> = {
  /** Conversations that begin with one system prompt. */
  'one application': (count) => {
    const make = new Maker(1);
    const system = make.blocks(4);
    return make.conversations(count, {
      startMs: 1_500,
      thinkMs: 25_000,
      turns: 10,
      start: () => [...system],
    });
  },
  /** Conversations that share nothing. */
  conversations: (count) => {
    const make = new Maker(2);
    return make.conversations(count, { startMs: 1_500, thinkMs: 25_000, turns: 10, start: () => [] });
  },
  /** Questions of 300 tenants, each with its own system prompt; some ask much more than others. */
  tenants: (count) => {
    const make = new Maker(3);
    const systems = Array.from({ length: 300 }, () => make.blocks(2 + make.below(5)));
    return make.questions(count, 300, (owner) => [...at(systems, owner), ...make.blocks(make.below(3))]);
  },
  /** Questions about 150 long documents. */
  documents: (count) => {
    const make = new Maker(4);
    const system = make.blocks(2);
    const documents = Array.from({ length: 150 }, () => make.blocks(10 + make.below(30)));
    return make.questions(count, 150, (owner) => [
      ...system,
      ...at(documents, owner),
      ...make.blocks(make.below(2)),
    ]);
  },
  /** Five agents with long instructions, whose runs take many steps. */
  agents: (count) => {
    const make = new Maker(5);
    const agents = Array.from({ length: 5 }, () => make.blocks(8));
    const start = () => [...at(agents, make.below(agents.length))];
    return make.conversations(count, { startMs: 4_000, thinkMs: 3_000, turns: 30, start });
  },
};

/** Generates texts and times. */
class Maker {
  readonly #random: () => number;
  #made = 0;

  constructor(seed: number) {
    this.#random = createRandom(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  /** Blocks that are all new. */
  blocks(count: number): string[] {
    return Array.from({ length: count }, () => `${this.#made++} `.padEnd(BLOCK_CHARS, 'lorem ipsum '));
  }

  conversations(
    count: number,
    {
      startMs,
      thinkMs,
      turns,
      start,
    }: { startMs: number; thinkMs: number; turns: number; start: () => string[] },
  ): SimulatedRequest[] {
    const requests: SimulatedRequest[] = [];
    for (let beginMs = 0; requests.length < 1.2 * count; beginMs += this.#exponential(startMs)) {
      let atMs = beginMs;
      let blocks = [...start(), ...this.blocks(1)];
      for (let turn = 1 + this.below(turns); turn > 0; turn--) {
        requests.push({ blocks, atMs });
        blocks = [...blocks, ...this.blocks(1 + this.below(3))];
        atMs += 1_000 + this.#exponential(thinkMs);
      }
    }
    return requests.sort((a, b) => a.atMs - b.atMs).slice(0, count);
  }

  /** Each question is from one of the owners; the k-th asks 1/k^0.8 as often as the first. */
  questions(count: number, owners: number, ask: (owner: number) => string[]): SimulatedRequest[] {
    const bounds: number[] = [];
    for (let owner = 0; owner < owners; owner++) bounds.push((bounds.at(-1) ?? 0) + (owner + 1) ** -0.8);
    const pick = () => {
      const mark = this.#random() * (bounds.at(-1) ?? 0);
      return bounds.findIndex((bound) => bound >= mark);
    };
    return Array.from({ length: count }, (_, index) => ({ blocks: ask(pick()), atMs: index * 250 }));
  }

  #exponential(meanMs: number): number {
    return -Math.log(1 - this.#random()) * meanMs;
  }
}
