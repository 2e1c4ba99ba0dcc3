import { hostname, networkInterfaces } from 'node:os';
import { isLoopback, type ListenAddress, printListenAddress } from '#config/addresses';
import { BASIC_PATHS, PATHS_OF_ENDPOINT } from '../schema/endpoint-paths.ts';
import { configSchema } from '../schema.ts';
import { isObject, type Violation } from './violation.ts';

/**
 * Checks the addresses of the file against each other: no two listeners and no two replicas have the same one, and no
 * URL leads back to this gateway. Reads the data as given; a value that breaks the schema is left out.
 */
export function checkAddresses(data: Readonly<Record<string, unknown>>): Violation[] {
  const listeners = readListeners(data.gateway);
  const targets = readTargets(data);
  return [
    ...checkListeners(listeners),
    ...checkApiPaths(targets),
    ...checkSameServer(targets),
    ...checkOwnAddress(targets, listeners),
  ];
}

interface Listener {
  readonly key: 'listen' | 'admin_listen';
  readonly address: ListenAddress;
}

/** A URL that the gateway calls. */
interface Target {
  readonly path: readonly PropertyKey[];
  readonly url: URL;
  readonly isReplica: boolean;
}

function readListeners(section: unknown): readonly Listener[] {
  const { listen, admin_listen } = configSchema.in.shape.gateway.unwrap().in.shape;
  const given = isObject(section) ? section : {};
  return [
    { key: 'listen' as const, parsed: listen.safeParse(given.listen) },
    { key: 'admin_listen' as const, parsed: admin_listen.safeParse(given.admin_listen) },
  ].flatMap(({ key, parsed }) => (parsed.success ? [{ key, address: parsed.data }] : []));
}

function readTargets(data: Readonly<Record<string, unknown>>): readonly Target[] {
  const replicas: readonly unknown[] = Array.isArray(data.replicas) ? data.replicas : [];
  const { url, dns } = configSchema.in.shape.replicas.element.in.shape;
  const { endpoint } = configSchema.in.shape.export.unwrap().in.shape;
  const read = (path: readonly PropertyKey[], schema: typeof url, given: unknown, isReplica: boolean) => {
    const parsed = schema.safeParse(given);
    return parsed.data === undefined ? [] : [{ path, url: new URL(parsed.data), isReplica }];
  };
  return [
    ...replicas.flatMap((replica, index) => {
      if (!isObject(replica)) return [];
      return [
        ...read(['replicas', index, 'url'], url, replica.url, true),
        ...read(['replicas', index, 'dns'], dns, replica.dns, true),
      ];
    }),
    ...(isObject(data.export) ? read(['export', 'endpoint'], endpoint, data.export.endpoint, false) : []),
  ];
}

/** A replica's URL that goes on to a path of the API, as in the examples of engines for curl. */
function checkApiPaths(targets: readonly Target[]): Violation[] {
  return targets.flatMap(({ path, url: { pathname }, isReplica }) => {
    const found = isReplica ? API_PATHS.find((known) => pathname.endsWith(known)) : undefined;
    if (found === undefined) return [];
    return [{ path, message: `it ends in ${found}: give the base URL, without this path of the API` }];
  });
}

const API_PATHS: readonly string[] = [
  ...BASIC_PATHS,
  ...Object.values(PATHS_OF_ENDPOINT).flat(),
  ...['/v1/models', '/chat/completions', '/api/chat', '/api/generate', '/api/tags'],
].toSorted((a, b) => b.length - a.length);

function checkListeners([first, second]: readonly Listener[]): Violation[] {
  if (first === undefined || second === undefined) return [];
  const [a, b] = [first.address, second.address];
  const isSamePort = a.port === b.port && a.port !== 0;
  if (!isSamePort || !(covers(a, b.host) || covers(b, a.host))) return [];
  const message = `${printListenAddress(b)} is also the address of gateway.listen, ${printListenAddress(a)}: give the admin API another port`;
  return [{ path: ['gateway', second.key], message }];
}

/** Two names for one server would break the promise of a drain: the other name would go on sending requests. */
function checkSameServer(targets: readonly Target[]): Violation[] {
  const firstAt = new Map<string, readonly PropertyKey[]>();
  return targets.flatMap(({ path, url, isReplica }) => {
    if (!isReplica) return [];
    const key = [path.at(-1), url.protocol, toPlainHost(url.hostname), url.port, url.pathname].join(' ');
    const first = firstAt.get(key);
    firstAt.set(key, first ?? path);
    if (first === undefined) return [];
    const other = `replicas[${String(first[1])}].${String(first[2])}`;
    const message = `it is the same server as ${other}; expected one name per server: a drain applies to a name`;
    return [{ path, message }];
  });
}

/** Requests to itself would go round until the connections run out. */
function checkOwnAddress(targets: readonly Target[], listeners: readonly Listener[]): Violation[] {
  const own = new Set([hostname(), ...ownAddresses()].map(toPlainHost));
  const isHere = (host: string) => isAny(host) || isLoopback(host) || own.has(host);
  return targets.flatMap(({ path, url, isReplica }) => {
    const host = toPlainHost(url.hostname);
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
    const listener = listeners.find(({ address }) => {
      if (address.port !== port) return false;
      return host === toPlainHost(address.host) || (isHere(host) && (isAny(host) || covers(address, host)));
    });
    if (listener === undefined) return [];
    const expected = `the URL of ${isReplica ? 'an inference server' : 'a collector'}, not gateway.${listener.key} of this gateway`;
    return [{ path, expected }];
  });
}

/** Whether a listener there takes what is sent to the host. */
function covers(listen: ListenAddress, host: string): boolean {
  const own = toPlainHost(listen.host);
  const other = toPlainHost(host);
  if (own === other || own === '::') return true;
  // A name may have addresses of both versions.
  return own === '0.0.0.0' && (!other.includes(':') || other === '::');
}

function isAny(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Without brackets and a final dot, in lower case; localhost as its usual address. */
function toPlainHost(host: string): string {
  const plain = host
    .toLowerCase()
    .replace(/^\[(.*)\]$/, '$1')
    .replace(/\.$/, '');
  return plain === 'localhost' ? '127.0.0.1' : plain;
}

function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((each) => each?.map(({ address }) => address) ?? []);
}
