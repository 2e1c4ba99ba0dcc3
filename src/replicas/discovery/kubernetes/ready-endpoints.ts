import type { Endpoint } from '../resolver.ts';
import type { KubernetesSource } from '../servers.ts';
import type { EndpointSlice, SliceEndpoint } from './endpoint-slice.ts';

/** Which port and which address of a pod is used. */
export type PortChoice = Pick<KubernetesSource, 'port' | 'portName' | 'addressType'>;

/** The servers of a Service. */
export interface ReadyEndpoints {
  /** Those that get requests. */
  readonly endpoints: readonly Endpoint[];
  /** Pods that are not ready and do not terminate, whether or not the Service publishes their addresses. */
  readonly unready: readonly Endpoint[];
  /** Whether some of them have not the port, or several and none is chosen. */
  readonly isPortMissing: boolean;
}

interface Candidate {
  readonly endpoint: SliceEndpoint;
  readonly family: EndpointSlice['addressType'];
  readonly port: number | null;
}

/**
 * The servers of a Service that get new requests: those that are ready and do not terminate. A server may be in several
 * slices: one for each kind of address, and two while Kubernetes moves it. It then gets requests only if all of them say
 * so, because an old entry can only be more hopeful than a new one.
 */
export function toReadyEndpoints(slices: Iterable<EndpointSlice>, choice: PortChoice): ReadyEndpoints {
  const byServer = new Map<string, Candidate[]>();
  for (const slice of slices) {
    const port = choosePort(slice, choice);
    for (const endpoint of slice.endpoints) {
      const key = endpoint.pod?.uid ?? endpoint.pod?.name ?? endpoint.address;
      const entries = byServer.get(key) ?? [];
      entries.push({ endpoint, family: slice.addressType, port });
      byServer.set(key, entries);
    }
  }
  const servers = [...byServer.values()];
  const ready = servers.filter((entries) =>
    entries.every(({ endpoint: { isReady, isTerminating } }) => isReady && !isTerminating),
  );
  const chosen = [ready, servers.filter(isUnreadyPod)].map((list) =>
    list.map((entries) => chooseEntry(entries, choice.addressType)),
  );
  const [endpoints = [], unready = []] = chosen.map((entries) =>
    withoutRepeated(entries.flatMap((entry) => (entry === null ? [] : toEndpoint(entry)))),
  );
  return { endpoints, unready, isPortMissing: chosen.flat().some((entry) => entry?.port === null) };
}

/** An old entry may call a pod unready that is ready by now, but not hide from the others that it terminates. */
function isUnreadyPod(entries: readonly Candidate[]): boolean {
  const [first] = entries;
  if (first?.endpoint.pod == null || entries.some(({ endpoint }) => endpoint.isTerminating)) return false;
  return entries.some(({ endpoint }) => !endpoint.isServing);
}

function choosePort({ ports }: EndpointSlice, { port, portName }: PortChoice): number | null {
  if (port !== null) return port;
  const fitting = portName === null ? ports : ports.filter(({ name }) => name === portName);
  return fitting.length === 1 ? (fitting[0]?.port ?? null) : null;
}

/** The entry with the wanted address; of several the first in an order of their own, whatever that of the slices is. */
function chooseEntry(entries: readonly Candidate[], wanted: PortChoice['addressType']): Candidate | null {
  const fitting = entries.filter(({ family }) => wanted === 'auto' || family === wanted);
  const sorted = fitting.toSorted(
    byText(({ family, port, endpoint: { address, pod, node } }) =>
      [family, address, port, pod?.name, node].join(' '),
    ),
  );
  return sorted.find(({ port }) => port !== null) ?? sorted[0] ?? null;
}

function toEndpoint({ endpoint: { address, pod, node }, port }: Candidate): Endpoint[] {
  return port === null ? [] : [{ host: address, port, server: { pod, node } }];
}

/** Two names for one server would give it two turns. */
function withoutRepeated(endpoints: readonly Endpoint[]): readonly Endpoint[] {
  const byAddress = new Map<string, Endpoint>();
  const sorted = endpoints.toSorted(
    byText(({ server }) => [server?.pod?.name, server?.pod?.uid, server?.node].join(' ')),
  );
  for (const endpoint of sorted) byAddress.set(`${endpoint.host} ${endpoint.port}`, endpoint);
  return [...byAddress.values()];
}

/** Not by localeCompare, for which different texts can be equal. */
function byText<T>(textOf: (value: T) => string): (a: T, b: T) => number {
  return (a, b) => {
    const [one, other] = [textOf(a), textOf(b)];
    return one < other ? -1 : Number(one > other);
  };
}
