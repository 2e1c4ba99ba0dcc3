import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { text } from 'node:stream/consumers';
import { EventLog } from '../event-log.ts';
import { type FakePatch, type FakePod, FakePods } from './fake-pods.ts';
import { closeServer, listen } from './local-server.ts';

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
  readonly accept: string | undefined;
}

type Answer = (response: ServerResponse) => void;
type Kind = 'list' | 'watch' | 'patch' | 'pods';

/**
 * A server that speaks as much of the Kubernetes API as the gateway uses: lists and watches of EndpointSlices, lists of
 * pods by their labels, and patches of their status.
 */
export interface FakeApiServer extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly FakeCall[];
  /** The patches of pods, whatever was answered. */
  readonly patches: readonly FakePatch[];
  /** Its pods. Those of slices are among them. */
  readonly pods: FakePods;
  /** Resolves with the patches as soon as there are at least this many. */
  untilPatches(count: number): Promise<readonly FakePatch[]>;
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
  answer(kind: Kind, answer: Answer | null): void;
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
  const given = new Map<string, FakeSlice>();
  const pods = new FakePods();
  const patches = new EventLog<FakePatch>();
  let history: { readonly version: number; readonly line: string }[] = [];
  let version = 100;
  let compactedAt = 0;
  let isSplit = false;
  const answers: Record<Kind, Answer | null> = { list: null, watch: null, patch: null, pods: null };
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

  const put = (slice: FakeSlice) => {
    const { name, addressType = 'IPv4', ports = [] } = slice;
    version += 1;
    const type = slices.has(name) ? 'MODIFIED' : 'ADDED';
    const endpoints = slice.pods.map((pod) => pods.toEndpoint(pod));
    const object = {
      kind: 'EndpointSlice',
      apiVersion: 'discovery.k8s.io/v1',
      addressType,
      ports,
      metadata: { name, namespace: 'llm', resourceVersion: String(version) },
      endpoints: endpoints.length === 0 ? null : endpoints,
    };
    slices.set(name, object);
    given.set(name, slice);
    tell(type, object);
  };

  const respondToPatch = async (request: IncomingMessage, response: ServerResponse, pod: string) => {
    const patch = {
      pod,
      contentType: request.headers['content-type'],
      body: JSON.parse(await text(request)),
    };
    if (answers.patch !== null) answers.patch(response);
    else {
      const [status, body] = pods.patch(patch);
      json(response, status, body);
      // Kubernetes looks at its readiness gates again.
      if (status === 200) {
        for (const slice of given.values()) if (slice.pods.some(({ name }) => name === pod)) put(slice);
      }
    }
    patches.push(patch);
  };

  const respond = (request: IncomingMessage, response: ServerResponse) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://api');
    const [, pod] = /^\/api\/v1\/namespaces\/llm\/pods\/([^/]+)\/status$/.exec(pathname) ?? [];
    if (request.method === 'PATCH' && pod !== undefined) {
      void respondToPatch(request, response, pod);
      return;
    }
    const isWatch = searchParams.get('watch') === 'true';
    const isOfPods = pathname === '/api/v1/namespaces/llm/pods';
    const { authorization, accept } = request.headers;
    calls.push({ isWatch, search: searchParams, path: pathname, authorization, accept });
    const answer = answers[isOfPods ? 'pods' : isWatch ? 'watch' : 'list'];
    if (answer !== null) answer(response);
    else if (!isAllowed(authorization)) json(response, 401, { kind: 'Status', code: 401 });
    else if (isOfPods) {
      const items = pods.list(searchParams.get('labelSelector') ?? '');
      json(response, 200, { kind: 'PartialObjectMetadataList', apiVersion: 'meta.k8s.io/v1', items });
    } else if (!isWatch) {
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
    patches: patches.items,
    pods,
    untilPatches: (count) => patches.count(count),
    async untilCalls(count, isFitting = () => true) {
      await calls.until(() => calls.items.filter(isFitting).length >= count);
      return calls.items.filter(isFitting);
    },
    async untilWatched(count = 1) {
      await opened.count(count);
    },
    put(slice) {
      pods.put(slice.pods);
      put(slice);
    },
    delete(name) {
      version += 1;
      slices.delete(name);
      given.delete(name);
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
