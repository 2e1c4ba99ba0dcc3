import type { SourcePatch } from '../program/bundle.ts';
import type { Plan } from '../world/plan.ts';
import type { WorldFilter } from './search.ts';

/** A fault that the simulation must find. */
export interface PlantedFault {
  readonly name: string;
  readonly patch: SourcePatch;
  /** The worlds that can find it; absent: any may. The others are left out. */
  readonly needs?: WorldFilter;
}

/** The faults, each a change of a line or two of the sources. They are applied to the bundle, never to the files. */
export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    name: 'a lease on the second replica that is tried is not given back',
    patch: {
      file: 'src/proxy/attempt/forward.ts',
      from: 'lease[Symbol.dispose]();',
      to: 'if (tried.size < 1) lease[Symbol.dispose]();',
    },
  },
  {
    name: 'the drain flag is read when the replica is picked, not when the request is written',
    patch: {
      file: 'src/proxy/attempt/send.ts',
      from: 'if (this.#isOver || replica.isClosed) {',
      to: 'if (this.#isOver) {',
    },
  },
  {
    name: 'chunks that come in one read are joined one byte short',
    patch: {
      file: 'src/wire/message/body-reader.ts',
      from: 'this.#joinedEnd += end - start;',
      to: 'this.#joinedEnd += end - start - 1;',
    },
  },
  {
    name: 'a chunk that ends with a read is not noticed to end',
    patch: {
      file: 'src/wire/message/body-reader.ts',
      from: 'if (this.#leftBytes === 0) this.#state =',
      to: 'if (this.#leftBytes === 0 && end < bytes.length) this.#state =',
    },
  },
  {
    name: 'the records that a partial success rejects are not counted',
    patch: {
      file: 'otel/queue/export-loop/export-loop.ts',
      from: "counters.add('rejected', rejectedCount);",
      to: '',
    },
    needs: ({ actions }) => actions.some((action) => action.kind === 'collector' && action.to === 'partial'),
  },
  {
    name: 'a record too many leaves the queue with a batch',
    patch: {
      file: 'otel/queue/export-loop/export-loop.ts',
      from: 'queue.remove(encodedSpans.length);',
      to: 'queue.remove(encodedSpans.length + 1);',
    },
  },
  {
    name: 'the first record of each spool file is forgotten',
    patch: {
      file: 'otel/queue/export-loop/spool-transfer.ts',
      from: 'this.#unsettled = encodedSpans.map(',
      to: 'this.#unsettled = encodedSpans.slice(1).map(',
    },
    needs: ({ actions }) => ['stop', 'collector'].every((each) => actions.some(({ kind }) => kind === each)),
  },
  {
    name: 'requests of a worker that has died stay in flight',
    patch: {
      file: 'src/gateway/serving/serving-memory.ts',
      from: 'new SharedState(memory.replicas).clearWorker(worker);',
      to: '',
    },
    needs: killsWorker,
  },
  {
    name: 'the lost records of a worker that has died are not counted',
    patch: { file: 'otel/queue/record-receiver.ts', from: "counters.add('lost', lost);", to: '' },
    needs: killsWorker,
  },
  {
    name: 'a client that did not ask for usage gets the usage chunk',
    patch: {
      file: 'src/proxy/response/undo-usage.ts',
      from: "? 'cut_usage' : 'withhold';",
      to: "? 'cut_usage' : 'pass';",
    },
  },
  {
    name: 'safe_to_stop does not wait for gateways that have not confirmed',
    patch: {
      file: 'src/fleet/rules/drain-status.ts',
      from: 'const isKnown = background.unknown === 0 && unconfirmed.length === 0 && isStable(state, nowMs);',
      to: 'const isKnown = background.unknown === 0 && isStable(state, nowMs);',
    },
    needs: drainsInFleet,
  },
  {
    name: 'safe_to_stop counts only the requests of the gateway that is asked',
    patch: {
      file: 'src/fleet/rules/drain-status.ts',
      from: 'inflight += heartbeat.inflight.get(replica) ?? 0;',
      to: '',
    },
    needs: drainsInStableFleet,
  },
  {
    name: 'a replica that was held back for a slow client is not read again',
    patch: {
      file: 'src/proxy/response/relay.ts',
      from: 'http.onDrain = () => this.#source?.resume();',
      to: '',
    },
  },
  {
    name: 'a number is left out after each record of the main thread',
    patch: {
      file: 'otel/queue/record-receiver.ts',
      from: 'record.seq = ++this.#lastSeq;',
      to: 'record.seq = this.#lastSeq += 2;',
    },
  },
  {
    name: 'the ledger does not know the requests that a dead worker had begun',
    patch: {
      file: 'otel/ledger/numbered-ledger.ts',
      from: 'const lost = (begun - lastSeq) >>> 0;',
      to: 'const lost = 0;',
    },
    needs: (plan) => plan.hasLedger && killsWorker(plan),
  },
  {
    name: 'a ledger span that the collector has not taken is not stored',
    patch: {
      file: 'otel/ledger/ledger-outbox.ts',
      from: 'const storedCount = await this.#spool.put(this.#waiting);',
      to: 'const storedCount = this.#waiting.length;',
    },
    needs: ({ hasLedger }) => hasLedger,
  },
];

function killsWorker({ actions }: Plan): boolean {
  return actions.some(({ kind }) => kind === 'kill_worker');
}

/** Before a fleet has been readable for 5 s, nothing is known to be safe. */
function drainsInStableFleet({ gateways, actions }: Plan): boolean {
  return gateways > 1 && actions.some(({ kind, atMs }) => kind === 'drain' && atMs > 5_000);
}

function drainsInFleet({ gateways, actions }: Plan): boolean {
  return gateways > 1 && actions.some(({ kind }) => kind === 'drain');
}
