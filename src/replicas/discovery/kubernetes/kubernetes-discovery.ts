import { type Log, waitAtMost } from '#otel/base';
import type { Endpoint } from '../resolver.ts';
import type { KubernetesSource, ServiceConfig } from '../servers.ts';
import { type SourceStatus, toFailing, toOk, UNKNOWN_STATUS } from '../source-state.ts';
import type { EndpointSlice } from './endpoint-slice.ts';
import { explainRefusal, WATCH_RULE } from './explain-refusal.ts';
import { toReadyEndpoints } from './ready-endpoints.ts';
import { createSliceApi } from './slice-api.ts';
import { SliceWatch } from './slice-watch.ts';

export interface KubernetesCollaborators {
  readonly log: Log<'info' | 'warn'>;
  /** Called when the servers of a Service have changed. */
  readonly onChange: () => void;
}

/** One Service that is watched. */
interface Watched {
  readonly watch: SliceWatch;
  /** Resolves after the first list, or the first failure. */
  readonly asked: Promise<void>;
  endpoints: readonly Endpoint[] | null;
  /** Pods that may become ready. */
  unready: readonly Endpoint[];
  status: SourceStatus;
}

/** The servers behind the Services of Kubernetes. Each Service is watched; what was known of it stays while it is not. */
export class KubernetesDiscovery {
  readonly #collaborators: KubernetesCollaborators;
  /** By source: entries with the same one share a watch. */
  readonly #watched = new Map<string, Watched>();
  #isStopped = false;

  constructor(collaborators: KubernetesCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Null if the list was never read. */
  endpointsOf(source: KubernetesSource): readonly Endpoint[] | null {
    return this.#watched.get(keyOf(source))?.endpoints ?? null;
  }

  /** The pods that are not ready, and do not terminate. */
  unreadyOf(source: KubernetesSource): readonly Endpoint[] {
    return this.#watched.get(keyOf(source))?.unready ?? [];
  }

  /** Watches these too. Waits for their first lists, at most `timeoutMs`. */
  async watch(services: readonly ServiceConfig[], timeoutMs: number): Promise<void> {
    if (this.#isStopped) return;
    const asked = services.flatMap(({ name, kubernetes }) => {
      if (kubernetes === null) return [];
      const key = keyOf(kubernetes);
      const watched = this.#watched.get(key) ?? this.#begin(name, kubernetes);
      this.#watched.set(key, watched);
      return [watched.asked];
    });
    await waitAtMost(timeoutMs, Promise.all(asked));
  }

  /** Ends the watches of all others. */
  keepOnly(services: readonly ServiceConfig[]): void {
    const wanted = new Set(services.map(({ kubernetes }) => kubernetes && keyOf(kubernetes)));
    for (const [key, { watch }] of this.#watched) {
      if (wanted.has(key)) continue;
      watch.stop();
      this.#watched.delete(key);
    }
  }

  /** Whether the Service is watched. */
  statusOf(source: KubernetesSource): SourceStatus {
    return this.#watched.get(keyOf(source))?.status ?? UNKNOWN_STATUS;
  }

  stop(): void {
    this.#isStopped = true;
    this.keepOnly([]);
  }

  #begin(name: string, source: KubernetesSource): Watched {
    const { log, onChange } = this.#collaborators;
    const asked = Promise.withResolvers<void>();
    const fields = { service: name, kubernetes_service: source.service };
    let wasPortMissing = false;
    const warnOfPort = (isMissing: boolean) => {
      if (isMissing && !wasPortMissing) {
        log.warn(fields, 'pods left out: set port or port_name to one that the Service has');
      }
      wasPortMissing = isMissing;
    };
    const watched: Watched = {
      asked: asked.promise,
      endpoints: null,
      unready: [],
      status: UNKNOWN_STATUS,
      watch: new SliceWatch({
        api: createSliceApi(source),
        onSlices(slices: readonly EndpointSlice[]) {
          const { endpoints, unready, isPortMissing } = toReadyEndpoints(slices, source);
          watched.endpoints = endpoints;
          watched.unready = unready;
          warnOfPort(isPortMissing);
          asked.resolve();
          onChange();
        },
        onFailure(error) {
          const { code, status, reason } = error;
          const advice = explainRefusal(error, WATCH_RULE);
          asked.resolve();
          const isKnown = watched.status.errorCode === code && watched.status.advice === advice;
          watched.status = toFailing(watched.status, code, { cause: reason, advice });
          if (isKnown) return;
          const kept = watched.endpoints?.length ?? 0;
          log.info(
            {
              ...fields,
              error_code: code,
              ...(status === null ? {} : { status }),
              ...(reason === null ? {} : { cause: reason }),
              ...(advice === null ? {} : { advice }),
              kept,
            },
            'service not watched',
          );
        },
        onSuccess() {
          if (watched.status.state === 'failing') log.info(fields, 'service watched again');
          watched.status = toOk(watched.status);
        },
      }),
    };
    void watched.watch.run();
    return watched;
  }
}

/** What of a source decides what is watched. */
function keyOf({ readinessGate: _, ...source }: KubernetesSource): string {
  return JSON.stringify(source);
}
