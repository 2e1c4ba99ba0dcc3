import { type Clock, systemClock } from '#otel/base';
import { type ApiError, toApiError } from './api-call.ts';
import { nextDelayMs } from './back-off.ts';
import type { EndpointSlice, WatchEvent } from './endpoint-slice.ts';
import type { SliceApi } from './slice-api.ts';

/** What a watch tells, and what it takes time and chance from. */
export interface SliceWatchCollaborators {
  readonly api: SliceApi;
  /** Called with all slices after each change. */
  readonly onSlices: (slices: readonly EndpointSlice[]) => void;
  /** The slices may be old from now on. Called for each failed call but a first cut. */
  readonly onFailure: (error: ApiError) => void;
  /** The slices are those of the API server. */
  readonly onSuccess: () => void;
  readonly clock?: Clock;
  readonly random?: () => number;
}

/** A watch that ended sooner, and told nothing, counts as a failure: it must not be repeated at once. */
const SHORT_WATCH_MS = 1_000;

/**
 * Keeps the EndpointSlices of one Service: lists them, follows their changes, resumes where a watch ended, and lists
 * again where it cannot resume. While the API server cannot be asked, the slices stay as they are.
 */
export class SliceWatch {
  readonly #collaborators: Required<SliceWatchCollaborators>;
  readonly #stopped = new AbortController();
  #slices = new Map<string, EndpointSlice>();
  /** Null: the list must be read. */
  #resourceVersion: string | null = null;
  /** Failed calls in a row. */
  #failures = 0;

  constructor(collaborators: SliceWatchCollaborators) {
    this.#collaborators = { clock: systemClock, random: Math.random, ...collaborators };
  }

  /** Runs until `stop`. Never rejects. */
  async run(): Promise<void> {
    const { clock, random } = this.#collaborators;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      const position = this.#resourceVersion;
      try {
        await this.#follow(position ?? (await this.#list(signal)), signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#noteFailure(toApiError(error), position !== null);
      }
      await clock.sleep(nextDelayMs(this.#failures, random()), signal);
    }
  }

  stop(): void {
    this.#stopped.abort();
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { api, onSlices, onSuccess } = this.#collaborators;
    const { slices, resourceVersion } = await api.list(signal);
    this.#slices = new Map(slices.map((slice) => [slice.name, slice]));
    this.#resourceVersion = resourceVersion;
    if (signal.aborted) return resourceVersion;
    onSuccess();
    onSlices(slices);
    return resourceVersion;
  }

  /** Follows the changes until the API server ends the watch. */
  async #follow(from: string, signal: AbortSignal): Promise<void> {
    const { api, clock, onSuccess } = this.#collaborators;
    const beganMs = clock.nowMs();
    let hasTold = false;
    for await (const event of api.watch(from, signal, onSuccess)) {
      if (signal.aborted) return;
      hasTold = true;
      this.#failures = 0;
      this.#apply(event);
    }
    const isShort = !hasTold && clock.nowMs() - beganMs < SHORT_WATCH_MS;
    this.#failures = isShort ? this.#failures + 1 : 0;
  }

  #apply(event: WatchEvent): void {
    if (event.type === 'error') return;
    this.#resourceVersion = event.resourceVersion;
    if (event.type === 'bookmark') return;
    if (event.type === 'deleted') this.#slices.delete(event.name);
    else this.#slices.set(event.slice.name, event.slice);
    this.#collaborators.onSlices([...this.#slices.values()]);
  }

  /**
   * A position that is gone, or an answer that makes no sense, is followed by a new list: at once, if an old position is
   * gone, because the API server answers now, whatever failed before.
   */
  #noteFailure(error: ApiError, isResumed: boolean): void {
    this.#failures = error.code === 'gone' && isResumed ? 1 : this.#failures + 1;
    if (error.code !== 'cut' && error.code !== 'unreachable' && error.code !== 'refused') {
      this.#resourceVersion = null;
    }
    const isOrdinary = this.#failures === 1 && (error.code === 'cut' || error.code === 'gone');
    if (!isOrdinary) this.#collaborators.onFailure(error);
  }
}
