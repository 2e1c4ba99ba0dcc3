import { ClientUseExchange } from '../../../src/fleet/client-use.ts';
import { inFile, type Limit, testedBy } from '../limit.ts';

/** Kubernetes, Redis, the log, files of other programs. */
export const SOURCES: readonly Limit[] = [
  {
    what: "Kubernetes' list of EndpointSlices",
    source: inFile('src/replicas/discovery/kubernetes/slice-api.ts', 'MAX_LIST_BYTES'),
    past: 'what was known stays; the list is asked for again',
    proof: testedBy(
      'test/gateway/discovery/kubernetes-api-server.test.ts',
      'a list that is too large, or comes never, does not keep the gateway from its start',
    ),
  },
  {
    what: 'a Kubernetes event',
    source: inFile('src/replicas/discovery/kubernetes/slice-api.ts', 'MAX_EVENT_BYTES'),
    past: 'the list is asked for again',
    proof: testedBy(
      'test/replicas/discovery/kubernetes/endpoint-slice.test.ts',
      'a line that is too long is an error before it ends',
    ),
  },
  {
    what: "Kubernetes' answer to a patch of a pod",
    source: inFile('src/replicas/discovery/kubernetes/gate/pod-condition-api.ts', 'MAX_POD_BYTES'),
    past: 'the pod is not confirmed; the gateway tries again',
    proof: testedBy('test/replicas/discovery/kubernetes/gate/pod-condition-api.test.ts', '%s is a failure'),
  },
  {
    what: 'waiting pods named in the admin API',
    source: inFile('src/replicas/discovery/kubernetes/gate/readiness-gate.ts', 'MAX_SHOWN_PODS'),
    past: 'those that have waited longest are named; `waiting` counts all',
    proof: testedBy(
      'test/replicas/discovery/kubernetes/gate/readiness-gate.test.ts',
      'of many waiting pods those are named that wait for the longest time',
    ),
  },
  {
    what: 'a value of another gateway in Redis',
    source: inFile('src/fleet/redis/redis-store.ts', 'MAX_MESSAGE_CHARS'),
    past: 'it is not read: that gateway counts as not alive; one log line',
    proof: testedBy(
      'test/e2e/fleet/foreign/values.test.ts',
      'a value of 20 MB is ignored, even if reading it takes long',
    ),
  },
  {
    what: 'clients and tenants whose use a gateway tells the others each second',
    source: inFile('src/fleet/client-use.ts', 'MAX_CLIENTS'),
    past: 'the rest follow when others have been idle for ten seconds',
    proof: {
      send: async (size) => {
        const changed = new Map(
          Array.from({ length: size }, (_, index) => [`c${index}`, { requests: 1, tokens: 1 }]),
        );
        const taken = [changed];
        const exchange = new ClientUseExchange({
          takeChanged: () => taken.shift() ?? new Map(),
          onForgotten: () => undefined,
          charge: () => undefined,
        });
        const told = new Set<string>();
        for (let count = 1; ; count++) {
          for (const name of exchange.nextReport().keys()) told.add(name);
          if (told.size === size) return count === 1 ? 'all at once' : 'all, in several heartbeats';
        }
      },
      at: 'all at once',
      past: 'all, in several heartbeats',
    },
  },
  {
    what: 'log lines that wait for the reader of a pipe',
    source: inFile('src/cli/serve/log/log-output.ts', 'MAX_WAITING_BYTES'),
    past: 'lines are lost, and counted in the log later',
    proof: testedBy(
      'test/cli/serve/log/log-output.test.ts',
      'a reader that is far behind loses lines until it has caught up with half of them',
    ),
  },
  {
    what: 'a line of a file for `gateway verify` and `gateway export-trace`',
    source: inFile('src/records/files/file-lines.ts', 'MAX_LINE_BYTES'),
    past: 'it is counted, but not read',
    proof: testedBy('test/records/verify/verify.test.ts', 'are counted when they are no records'),
  },
];
