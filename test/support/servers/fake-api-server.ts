import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { EventLog } from '../event-log.ts';
import { closeServer, listen } from './local-server.ts';

/** A pod in an EndpointSlice. */
export interface FakePod {
  readonly name: string;
  readonly address: string;
  readonly uid?: string;
  readonly ready?: boolean;
  readonly terminating?: boolean;
  readonly node?: string;
}

/** An EndpointSlice as the API server has it; `resourceVersion` is added. */
export interface FakeSlice {
  readonly name: string;
  readonly addressType?: string;
  readonly ports?: readonly object[] | null;
  readonly pods: readonly FakePod[];
}

/** One call, as it arrived. */
interface FakeCall {
  readonly isWatch: boolean;
  readonly search: URLSearchParams;
  readonly path: string;
  readonly authorization: string | undefined;
}

type Answer = (response: ServerResponse) => void;

/** A server that speaks as much of the Kubernetes API as lists and watches of EndpointSlices need. */
export interface FakeApiServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly FakeCall[];
  /** Resolves with the calls as soon as there are at least this many that fit. */
  untilCalls(count: number, isFitting?: (call: FakeCall) => boolean): Promise<readonly FakeCall[]>;
  /** Resolves as soon as at least this many watches are open. */
  untilWatched(count?: number): Promise<void>;
  /** Creates or changes a slice, and tells all watches. */
  put(slice: FakeSlice): void;
  delete(name: string): void;
  bookmark(): void;
  /** Sends bytes to all watches. */
  send(text: string): void;
  /** Ends all watches in order. */
  endWatches(): void;
  /** Breaks the connections of all watches. */
  cutWatches(): void;
  /** Forgets what was before now: watches from there get 410. */
  compact(): void;
  /** Answers the next calls of a kind in this way instead; null: as usual again. */
  answer(kind: 'list' | 'watch', answer: Answer | null): void;
  /** Sends each byte of a watch by itself. */
  splitEvents(): void;
}

/** Starts it on a free port. `tls`: PEM. `isAllowed`: whether a call with this Authorization is answered. */
export async function startFakeApiServer({
  tls,
  isAllowed = () => true,
}: {
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly isAllowed?: (authorization: string | undefined) => boolean;
} = {}): Promise<FakeApiServer> {
  const slices = new Map<string, object>();
  let history: { readonly version: number; readonly line: string }[] = [];
  let version = 100;
  let compactedAt = 0;
  let isSplit = false;
  const answers: Record<'list' | 'watch', Answer | null> = { list: null, watch: null };
  const watches = new Set<ServerResponse>();
  const calls = new EventLog<FakeCall>();
  const opened = new EventLog<ServerResponse>();

  const write = (response: ServerResponse, text: string) => {
    if (isSplit) for (const byte of Buffer.from(text)) response.write(Buffer.of(byte));
    else response.write(text);
  };
  const tell = (type: string, object: object) => {
    const line = `${JSON.stringify({ type, object })}\n`;
    history.push({ version, line });
    for (const watch of watches) write(watch, line);
  };
  const json = (response: ServerResponse, status: number, body: object) => {
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  };

  const respond = (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api');
    const isWatch = searchParams.get('watch') === 'true';
    const { authorization } = request.headers;
    calls.push({ isWatch, search: searchParams, path: pathname, authorization });
    const answer = answers[isWatch ? 'watch' : 'list'];
    if (answer !== null) answer(response);
    else if (!isAllowed(authorization)) json(response, 401, { kind: 'Status', code: 401 });
    else if (!isWatch) {
      const metadata = { resourceVersion: String(version) };
      json(response, 200, { kind: 'EndpointSliceList', metadata, items: [...slices.values()] });
    } else {
      const from = Number(searchParams.get('resourceVersion'));
      response.writeHead(200, { 'Content-Type': 'application/json' }).flushHeaders();
      if (from < compactedAt) {
        response.end(`${JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410 } })}\n`);
        return;
      }
      watches.add(response);
      response.on('close', () => watches.delete(response));
      for (const { version: at, line } of history) if (at > from) write(response, line);
      opened.push(response);
    }
  };

  const server = tls === undefined ? createServer(respond) : createTlsServer(tls, respond);
  const port = await listen(server);
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    calls: calls.items,
    async untilCalls(count, isFitting = () => true) {
      await calls.until(() => calls.items.filter(isFitting).length >= count);
      return calls.items.filter(isFitting);
    },
    async untilWatched(count = 1) {
      await opened.count(count);
    },
    put({ name, addressType = 'IPv4', ports = [], pods }) {
      version += 1;
      const type = slices.has(name) ? 'MODIFIED' : 'ADDED';
      const slice = {
        ...{ kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', addressType, ports },
        metadata: { name, namespace: 'llm', resourceVersion: String(version) },
        endpoints: pods.length === 0 ? null : pods.map(toEndpoint),
      };
      slices.set(name, slice);
      tell(type, slice);
    },
    delete(name) {
      version += 1;
      slices.delete(name);
      tell('DELETED', { kind: 'EndpointSlice', metadata: { name, resourceVersion: String(version) } });
    },
    bookmark() {
      version += 1;
      tell('BOOKMARK', { kind: 'EndpointSlice', metadata: { resourceVersion: String(version) } });
    },
    send(text) {
      for (const watch of watches) write(watch, text);
    },
    endWatches() {
      for (const watch of watches) watch.end();
      watches.clear();
    },
    cutWatches() {
      for (const watch of watches) watch.destroy();
      watches.clear();
    },
    compact() {
      version += 1;
      compactedAt = version;
      history = [];
    },
    answer(kind, answer) {
      answers[kind] = answer;
    },
    splitEvents() {
      isSplit = true;
    },
    [Symbol.asyncDispose]: () => closeServer(server),
  };
}

function toEndpoint({ name, address, uid = `uid-of-${name}`, ready, terminating, node }: FakePod): object {
  return {
    addresses: [address],
    conditions: { ready, terminating, serving: true },
    targetRef: { kind: 'Pod', name, uid },
    ...(node === undefined ? {} : { nodeName: node }),
  };
}
