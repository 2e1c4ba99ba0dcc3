import type { KubernetesSource } from '../servers.ts';
import { ApiError, callApi, readText, toStatusError } from './api-call.ts';
import { parseSliceList, parseWatchEvent, type SliceList, type WatchEvent } from './endpoint-slice.ts';
import { readLines } from './json-lines.ts';

/** For a whole list. */
const LIST_TIMEOUT_MS = 20_000;
/** The API server is asked to end a watch after this time. A connection that died silently is noticed by then. */
const WATCH_SECONDS = 60;
const WATCH_TIMEOUT_MS = (WATCH_SECONDS + 15) * 1_000;

/** A slice has up to 1,000 endpoints, and an object up to 1.5 MiB. */
const MAX_LIST_BYTES = 16 * 1024 ** 2;
const MAX_EVENT_BYTES = 4 * 1024 ** 2;

/** The EndpointSlices of one Service at the API server. */
export interface SliceApi {
  /** Rejects with an ApiError. */
  list(signal: AbortSignal): Promise<SliceList>;
  /**
   * The changes after a position, until the API server ends the watch. `onOpen`: it has accepted the watch. Throws an
   * ApiError.
   */
  watch(resourceVersion: string, signal: AbortSignal, onOpen: () => void): AsyncIterable<WatchEvent>;
}

/** Creates the access. */
export function createSliceApi(source: KubernetesSource): SliceApi {
  const open = async (query: Readonly<Record<string, string>>, signal: AbortSignal) => {
    const labelSelector = `kubernetes.io/service-name=${source.service}`;
    const search = new URLSearchParams({ labelSelector, ...query });
    const path = (namespace: string) =>
      `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?${search}`;
    const call = await callApi(source, { path }, signal);
    if (call.status === 200) return call;
    await call[Symbol.asyncDispose]();
    throw toStatusError(call);
  };
  return {
    async list(signal) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(LIST_TIMEOUT_MS)]);
      await using call = await open({}, limited);
      const list = parseSliceList(await readText(call.body, MAX_LIST_BYTES));
      if (list === null) throw new ApiError('malformed_answer');
      return list;
    },

    async *watch(resourceVersion, signal, onOpen) {
      const limited = AbortSignal.any([signal, AbortSignal.timeout(WATCH_TIMEOUT_MS)]);
      const query = {
        watch: 'true',
        allowWatchBookmarks: 'true',
        resourceVersion,
        timeoutSeconds: String(WATCH_SECONDS),
      };
      await using call = await open(query, limited);
      onOpen();
      for await (const line of readLines(call.body, MAX_EVENT_BYTES)) {
        const event = parseWatchEvent(line);
        if (event === null) throw new ApiError('malformed_answer');
        if (event.type === 'error') throw toStatusError({ status: event.code, retryAfterMs: 0 });
        yield event;
      }
    },
  };
}
