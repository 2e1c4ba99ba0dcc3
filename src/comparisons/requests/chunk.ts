import type { Observation } from '#verdict/blocks';

/** Requests in a chunk. */
export const CHUNK_SIZE = 8_192;

/** Names by number, which a column of small numbers can hold. Names beyond the last number count as one. */
class NameTable {
  readonly #names: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  numberOf(name: string): number {
    const known = this.#numbers.get(name);
    if (known !== undefined) return known;
    if (this.#names.length >= this.#max) return this.#max;
    this.#numbers.set(name, this.#names.length);
    return this.#names.push(name) - 1;
  }

  nameOf(number: number): string {
    return this.#names[number] ?? 'other';
  }
}

/** A number for null. Counts and times are not negative. */
const UNKNOWN = -1;
const MAX_COUNT = 2 ** 31 - 1;
const OUTCOMES = ['ok', 'error', 'unclear'] as const;
/** In the tables of bytes, 0 is null. */
const MAX_NAMES = 254;

/**
 * The facts of so many requests in columns: 47 bytes for each. A client may send any name of a model, so a chunk tells 254
 * of them apart.
 */
export class Chunk {
  #count = 0;
  readonly #replicas = new NameTable(CHUNK_SIZE);
  readonly #models = new NameTable(MAX_NAMES);
  readonly #endpoints = new NameTable(MAX_NAMES);
  readonly #finishes = new NameTable(MAX_NAMES);
  readonly #ended = new Float64Array(CHUNK_SIZE);
  readonly #replica = new Uint16Array(CHUNK_SIZE);
  /** Whether it was warm, whether it is a stream, and the outcome. */
  readonly #flags = new Uint8Array(CHUNK_SIZE);
  readonly #model = new Uint8Array(CHUNK_SIZE);
  readonly #endpoint = new Uint8Array(CHUNK_SIZE);
  readonly #finish = new Uint8Array(CHUNK_SIZE);
  readonly #promptTokens = new Int32Array(CHUNK_SIZE);
  readonly #cachedTokens = new Int32Array(CHUNK_SIZE);
  readonly #completionTokens = new Int32Array(CHUNK_SIZE);
  readonly #maxTokens = new Float64Array(CHUNK_SIZE);
  readonly #ttft = new Float32Array(CHUNK_SIZE);
  readonly #gap = new Float32Array(CHUNK_SIZE);
  readonly #e2e = new Float32Array(CHUNK_SIZE);

  get count(): number {
    return this.#count;
  }

  /** Adds a request. `isWarm`: its replica had its even share of the turns. */
  add(observation: Observation, endedMs: number, isWarm: boolean): void {
    const at = this.#count++;
    const { model, finish, outcome, stream } = observation;
    this.#ended[at] = endedMs;
    this.#replica[at] = this.#replicas.numberOf(observation.replica);
    this.#flags[at] = Number(isWarm) + 2 * Number(stream) + 4 * OUTCOMES.indexOf(outcome);
    this.#model[at] = model === null ? 0 : this.#models.numberOf(model) + 1;
    this.#endpoint[at] = this.#endpoints.numberOf(observation.endpoint);
    this.#finish[at] = finish === null ? 0 : this.#finishes.numberOf(finish) + 1;
    this.#promptTokens[at] = toCount(observation.promptTokens);
    this.#cachedTokens[at] = toCount(observation.cachedTokens);
    this.#completionTokens[at] = toCount(observation.completionTokens);
    this.#maxTokens[at] = observation.maxTokens ?? UNKNOWN;
    this.#ttft[at] = observation.ttftMs ?? UNKNOWN;
    this.#gap[at] = observation.gapMs ?? UNKNOWN;
    this.#e2e[at] = observation.e2eMs;
  }

  endedMsAt(at: number): number {
    return this.#ended[at] ?? 0;
  }

  e2eMsAt(at: number): number {
    return this.#e2e[at] ?? 0;
  }

  replicaAt(at: number): string {
    return this.#replicas.nameOf(this.#replica[at] ?? 0);
  }

  isWarmAt(at: number): boolean {
    return ((this.#flags[at] ?? 0) & 1) === 1;
  }

  observationAt(at: number): Observation {
    const flags = this.#flags[at] ?? 0;
    const model = this.#model[at] ?? 0;
    const finish = this.#finish[at] ?? 0;
    return {
      replica: this.replicaAt(at),
      model: model === 0 ? null : this.#models.nameOf(model - 1),
      endpoint: this.#endpoints.nameOf(this.#endpoint[at] ?? 0),
      stream: (flags & 2) === 2,
      promptTokens: orNull(this.#promptTokens[at]),
      cachedTokens: orNull(this.#cachedTokens[at]),
      completionTokens: orNull(this.#completionTokens[at]),
      maxTokens: orNull(this.#maxTokens[at]),
      ttftMs: orNull(this.#ttft[at]),
      gapMs: orNull(this.#gap[at]),
      e2eMs: this.e2eMsAt(at),
      outcome: OUTCOMES[flags >> 2] ?? 'unclear',
      finish: finish === 0 ? null : this.#finishes.nameOf(finish - 1),
    };
  }
}

function toCount(value: number | null): number {
  return value === null ? UNKNOWN : Math.min(value, MAX_COUNT);
}

function orNull(value: number | undefined): number | null {
  return value === undefined || value < 0 ? null : value;
}
