import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { listen } from '#testkit/servers/local-server.ts';
import type { KubernetesApi, KubernetesList } from './api.ts';
import { HOST_IP } from './control-plane.ts';

const POLL_MS = 200;

/** What kube-proxy is to a Service: each new connection goes to one of its ready pods, and stays there. */
export interface ServiceProxy extends AsyncDisposable {
  readonly url: string;
}

interface Slice {
  readonly ports: readonly { readonly port: number }[];
  readonly endpoints:
    | readonly { readonly addresses: readonly [string]; readonly conditions: { readonly ready?: boolean } }[]
    | null;
}

/** Stands for a Service on port 8080 of this side. While the API server is away, the pods stay as they were. */
export function startServiceProxy(api: KubernetesApi, namespace: string, service: string): ServiceProxy {
  let addresses: readonly { readonly host: string; readonly port: number }[] = [];
  const ended = new AbortController();
  const query = new URLSearchParams({ labelSelector: `kubernetes.io/service-name=${service}` });
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?${query}`;
  const poll = async () => {
    while (!ended.signal.aborted) {
      const list = await api.get<KubernetesList<Slice>>(path).catch(() => null);
      if (list !== null)
        addresses = list.items.flatMap(({ ports, endpoints }) =>
          (endpoints ?? [])
            .filter(({ conditions }) => conditions.ready === true)
            .map((endpoint) => ({ host: endpoint.addresses[0], port: ports[0]?.port ?? 0 })),
        );
      await sleep(POLL_MS, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  };
  const polling = poll();
  let turn = 0;
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const address = addresses[turn++ % Math.max(1, addresses.length)];
    if (address === undefined) return void client.destroy();
    const pod = connect(address);
    for (const [from, to] of [
      [client, pod],
      [pod, client],
    ] as const) {
      open.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy());
      from.on('close', () => open.delete(from));
    }
  });
  const listening = listen(server, 8080, HOST_IP);
  return {
    url: `http://${HOST_IP}:8080`,
    async [Symbol.asyncDispose]() {
      ended.abort();
      await Promise.all([polling, listening]);
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
