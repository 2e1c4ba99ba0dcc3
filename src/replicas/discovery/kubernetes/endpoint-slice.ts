import { isIP } from 'node:net';

/** One server of a Service, as an EndpointSlice lists it (discovery.k8s.io/v1). */
export interface SliceEndpoint {
  /** The first of its addresses: all of them lead to the same server. */
  readonly address: string;
  /** False for a pod that terminates, unless the Service publishes addresses that are not ready. */
  readonly isReady: boolean;
  /** Whether the pod is ready, even if it terminates, and if the Service publishes addresses that are not ready. */
  readonly isServing: boolean;
  readonly isTerminating: boolean;
  /** Null: it is no pod. */
  readonly pod: { readonly name: string; readonly uid: string | null } | null;
  /** The node that it runs on. */
  readonly node: string | null;
}

/** A part of the endpoints of a Service. */
export interface EndpointSlice {
  readonly name: string;
  /** `other`: host names, which a Service of pods does not have. */
  readonly addressType: 'IPv4' | 'IPv6' | 'other';
  /** Those of TCP. */
  readonly ports: readonly { readonly name: string; readonly port: number }[];
  readonly endpoints: readonly SliceEndpoint[];
}

/** All slices of a Service, and the position of the list, from which a watch goes on. */
export interface SliceList {
  readonly slices: readonly EndpointSlice[];
  readonly resourceVersion: string;
}

/** One line of a watch. `code`: the status with which the API server ends it. */
export type WatchEvent =
  | { readonly type: 'present'; readonly slice: EndpointSlice; readonly resourceVersion: string }
  | { readonly type: 'deleted'; readonly name: string; readonly resourceVersion: string }
  | { readonly type: 'bookmark'; readonly resourceVersion: string }
  | { readonly type: 'error'; readonly code: number };

/** A text of the API server was not what it should be. */
class MalformedError extends Error {}

/** Parses the answer to a list. Null if it is not a list of EndpointSlices. */
export function parseSliceList(text: string): SliceList | null {
  return orNull(() => {
    const list = toObject(JSON.parse(text));
    if (list.kind !== 'EndpointSliceList') throw new MalformedError();
    return {
      slices: toList(list.items).map(toSlice),
      resourceVersion: toResourceVersion(list.metadata),
    };
  });
}

/** Parses one line of a watch. Null if it is not an event of EndpointSlices. */
export function parseWatchEvent(line: string): WatchEvent | null {
  return orNull(() => {
    const { type, object: given } = toObject(JSON.parse(line));
    const object = toObject(given);
    if (type === 'ERROR')
      return { type: 'error', code: Number.isSafeInteger(object.code) ? Number(object.code) : 0 };
    const resourceVersion = toResourceVersion(object.metadata);
    if (type === 'BOOKMARK') return { type: 'bookmark', resourceVersion };
    if (type === 'DELETED') return { type: 'deleted', name: toNameOf(object), resourceVersion };
    if (type !== 'ADDED' && type !== 'MODIFIED') throw new MalformedError();
    return { type: 'present', slice: toSlice(object), resourceVersion };
  });
}

function orNull<T>(parse: () => T): T | null {
  try {
    return parse();
  } catch (error) {
    if (error instanceof MalformedError || error instanceof SyntaxError) return null;
    throw error;
  }
}

function toSlice(given: unknown): EndpointSlice {
  const slice = toObject(given);
  const { addressType } = slice;
  const family = addressType === 'IPv4' ? 4 : addressType === 'IPv6' ? 6 : 0;
  return {
    name: toNameOf(slice),
    addressType: addressType === 'IPv4' || addressType === 'IPv6' ? addressType : 'other',
    ports: toList(slice.ports).flatMap(toPort),
    endpoints: family === 0 ? [] : toList(slice.endpoints).map((each) => toEndpoint(each, family)),
  };
}

/** The name of a port is empty if it has none. A port without a number stands for all ports. */
function toPort(given: unknown): EndpointSlice['ports'][number][] {
  const { name, port, protocol } = toObject(given);
  if ((protocol ?? 'TCP') !== 'TCP' || port === undefined || port === null) return [];
  if (!Number.isSafeInteger(port) || Number(port) < 1 || Number(port) > 65_535) throw new MalformedError();
  return [{ name: toTextOrNull(name) ?? '', port: Number(port) }];
}

/** Conditions that are not set count as Kubernetes says: ready, serving if it is ready, and not terminating. */
function toEndpoint(given: unknown, family: 4 | 6): SliceEndpoint {
  const { addresses, conditions, targetRef, nodeName } = toObject(given);
  const [address] = toList(addresses);
  if (typeof address !== 'string' || isIP(address) !== family || address.includes('%')) {
    throw new MalformedError();
  }
  const { ready, serving, terminating } = toObject(conditions ?? {});
  const isReady = toFlag(ready, true);
  const target = toObject(targetRef ?? {});
  const podName = target.kind === 'Pod' ? toTextOrNull(target.name) : null;
  return {
    address,
    isReady,
    isServing: toFlag(serving, isReady),
    isTerminating: toFlag(terminating, false),
    pod: podName === null ? null : { name: podName, uid: toTextOrNull(target.uid) },
    node: toTextOrNull(nodeName),
  };
}

function toNameOf(object: Readonly<Record<string, unknown>>): string {
  const name = toTextOrNull(toObject(object.metadata).name);
  if (name === null) throw new MalformedError();
  return name;
}

/** It has no meaning for clients, and they send it back in a URL. */
function toResourceVersion(metadata: unknown): string {
  const { resourceVersion } = toObject(metadata);
  if (typeof resourceVersion !== 'string' || !/^[\w.~-]{1,256}$/.test(resourceVersion))
    throw new MalformedError();
  return resourceVersion;
}

function toObject(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new MalformedError();
  return value as Readonly<Record<string, unknown>>;
}

/** An empty list is `null` in the JSON of the API server. */
function toList(value: unknown): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new MalformedError();
  return value;
}

function toFlag(value: unknown, whenUnset: boolean): boolean {
  if (value === undefined || value === null) return whenUnset;
  if (typeof value !== 'boolean') throw new MalformedError();
  return value;
}

function toTextOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' && value.length <= 253 ? value : null;
}
