import { answerJson, startFakeReplica } from '../../fake-replica.ts';
import { startGateway } from '../../start-gateway.ts';
import { sendChat } from '../exchange.ts';
import { inFile, inKey, type Limit, testedBy } from '../limit.ts';
import type { World } from '../world.ts';

const CHAT = '{"model":"m"}';
const EMPTY = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n';

/** Lets the replica answer the next request with these bytes. */
async function answered(world: World, bytes: string): Promise<string> {
  const { replica } = await world.gateway();
  replica.answerOnce(({ raw }) => raw(bytes));
  return await sendChat(world, CHAT);
}

/** What replicas answer, and what the gateway reads of them. */
export const REPLICAS: readonly Limit[] = [
  {
    what: 'the head of an answer',
    source: inFile('src/wire/upstream/response-head-reader.ts', 'MAX_HEAD_BYTES'),
    past: '502 `upstream_failed`',
    proof: {
      send: (size, world) => {
        const head = `${EMPTY}X-Pad: \r\n\r\n`;
        return answered(world, `${head.replace('X-Pad: ', `X-Pad: ${'x'.repeat(size - head.length)}`)}{}`);
      },
      at: '200',
      past: '502 upstream_failed',
    },
  },
  {
    what: '1xx answers before the final one',
    source: inFile('src/wire/upstream/response-head-reader.ts', 'MAX_INFORMATIONAL'),
    past: '502 `upstream_failed`',
    proof: {
      send: (size, world) =>
        answered(world, `${'HTTP/1.1 102 Processing\r\n\r\n'.repeat(size)}${EMPTY}\r\n{}`),
      at: '200',
      past: '502 upstream_failed',
    },
  },
  {
    what: 'the usage and timings of an answer',
    source: inFile('src/json/member-scanner.ts', 'MAX_MEMBER_BYTES'),
    past: 'they are not recorded',
    proof: testedBy('test/json/member-scanner.test.ts', 'keeps nothing of a member that is too large'),
  },
  {
    what: 'choices read of an answer that is not a stream',
    source: inFile('src/json/member-scanner.ts', 'MAX_ITEMS'),
    past: 'the rest is not read',
    proof: testedBy('test/json/member-scanner.test.ts', 'keeps at most 1024 items'),
  },
  {
    what: 'what is read of a 400 or 422 to see if the engine refuses `stream_options`, and of a 503 to see if it is loading',
    source: inFile('src/proxy/attempt/judge-answer.ts', 'HELD_BYTES'),
    past: 'the answer is relayed',
    proof: testedBy(
      'test/gateway/responses/usage.test.ts',
      'beyond the first 64 KiB of its answer is not understood, and relayed whole',
    ),
  },
  {
    what: "a replica's list of models",
    source: inFile('src/replicas/discovery/replica-prober.ts', 'MAX_LIST_BYTES'),
    past: 'it is not read; its models stay unknown',
    proof: {
      send: async (size) => {
        const list = '{"data":[{"id":"m"}],"pad":""}';
        const body = list.replace('""}', `"${'x'.repeat(size - list.length)}"}`);
        await using replica = await startFakeReplica();
        replica.answerProbes(answerJson(body));
        await using gateway = await startGateway({
          replicas: [{ name: 'a', url: replica.url, models: 'auto' }],
        });
        await replica.untilProbes(1);
        for (;;) {
          const [shown] = await gateway.replicas();
          if (shown !== undefined && shown.reachability !== 'unknown')
            return `${shown.reachability} ${shown.models}`;
        }
      },
      at: 'reachable m',
      past: 'unreachable null',
    },
  },
  {
    what: 'replicas, including removed ones that finish their requests',
    source: inFile('src/replicas/shared/shared-state.ts', 'MAX_REPLICAS'),
    past: 'the start or reload is refused; further pods and addresses are left out',
    proof: {
      send: async (size) => {
        const replicas = Array.from({ length: size }, (_, index) => ({
          name: `r${index}`,
          url: `http://127.0.0.1:9/${index}`,
        }));
        try {
          await using gateway = await startGateway({
            replicas,
            config: { discovery: { models_interval: '1h' } },
          });
          return `started with ${(await gateway.replicas()).length}`;
        } catch (error) {
          return error instanceof Error ? error.message : String(error);
        }
      },
      at: 'started with 6144',
      past: 'replicas: more than 6144 replicas, including removed ones that finish their requests',
    },
  },
  {
    what: 'stored responses that lead back to their replica',
    source: inFile('src/replicas/stored-responses/response-table.ts', 'MAX_STORED_RESPONSES'),
    past: 'an old one is forgotten: its request goes to the next replica, or with keys gets 404',
    proof: testedBy(
      'test/replicas/stored-responses/response-table.test.ts',
      'new responses replace those that were used longest ago',
    ),
  },
  {
    what: 'responses in the background that are followed',
    source: inFile('src/background/background-work.ts', 'MAX_FOLLOWED_RESPONSES'),
    past: 'a further one is recorded at once, and counts for `limits.background`',
    proof: testedBy(
      'test/background/background-work.test.ts',
      'those beyond the bound count until the limit is over',
    ),
  },
  {
    what: 'their records together, as JSON',
    source: inFile('src/background/background-work.ts', 'MAX_FOLLOWED_BYTES'),
    past: 'likewise',
    proof: testedBy(
      'test/background/background-work.test.ts',
      'those beyond the bound count until the limit is over',
    ),
  },
  {
    what: "a replica's answer about one of them",
    source: inFile('src/background/ask-for-response.ts', 'MAX_ANSWER_BYTES'),
    past: 'its progress is unknown',
    proof: testedBy('test/background/ask-for-response.test.ts', 'an answer that is too long says nothing'),
  },
  {
    what: 'how long such a response counts as work of its replica if its end is not seen',
    source: inKey('limits.background'),
    unit: 'ms',
    past: 'it no longer counts; its record says `over_limit`',
    proof: testedBy(
      'test/gateway/background/background-ends.test.ts',
      'is over for the drain when it is older than limits.background',
    ),
  },
  {
    what: 'how long a stored response is remembered after its last use',
    source: inFile('src/replicas/stored-responses/response-table.ts', 'MAX_AGE_SECONDS'),
    unit: 's',
    past: 'it is forgotten',
    proof: testedBy(
      'test/replicas/stored-responses/response-table.test.ts',
      'a response is forgotten a day after it was last asked for',
    ),
  },
  {
    what: 'the time to connect to a replica',
    source: inKey('timeouts.connect'),
    past: 'the next replica is tried; 502 `no_replica_reachable` after the last',
    proof: testedBy('test/gateway/replicas/connecting.test.ts', "config: { timeouts: { connect: '50ms' } }"),
  },
  {
    what: 'the time from the request to the head of the answer',
    source: inKey('timeouts.first_byte'),
    past: '504 `upstream_timeout`',
    proof: testedBy('test/gateway/responses/errors.test.ts', "config: { timeouts: { first_byte: '30ms' } }"),
  },
  {
    what: 'the time without a byte of an answer, from the replica or to the client',
    source: inKey('timeouts.idle'),
    past: 'the answer breaks off, a stream with an error event; a client that reads nothing is closed',
    proof: testedBy('test/gateway/responses/endings.test.ts', "timeouts: { idle: '30ms' }"),
  },
  {
    what: 'models whose usual times are kept, to tell which streams are silent',
    source: inFile('src/replicas/health/stream-silence-learner.ts', 'MAX_KINDS'),
    past: 'the one without an ended stream for the longest time is forgotten',
    proof: testedBy(
      'test/replicas/health/stream-silence-learner.test.ts',
      'a thousand models are kept: those of which streams ended last',
    ),
  },
  {
    what: 'limits of clients and tenants, per replica, that a worker names as taken up by silent streams',
    source: inFile('src/replicas/silence/silent-holders.ts', 'MAX_SILENT_HOLDERS'),
    past: 'those with the fewest silent streams are not named',
    proof: testedBy(
      'test/replicas/data/silence-sampler.test.ts',
      'of more limits than there is room for, those with most silent streams are told',
    ),
  },
  {
    what: 'the time without a byte of a stream, after its first one',
    source: inKey('timeouts.silent', 'timeouts.idle'),
    past: 'the stream ends with an error event',
    proof: testedBy('test/gateway/replicas/silent-streams.test.ts', "timeouts: { silent: '2s' }"),
  },
  {
    what: 'the time a connection to a replica is idle',
    source: inKey('timeouts.upstream_keep_alive'),
    past: 'it is closed',
    proof: testedBy(
      'test/gateway/replicas/connecting.test.ts',
      'an idle connection is closed after timeouts.upstream_keep_alive',
    ),
  },
  {
    what: 'the time a request waits for a replica below its `max_inflight`',
    source: inKey('timeouts.queue'),
    past: '503 `overloaded`',
    proof: testedBy(
      'test/gateway/replicas/max-inflight.test.ts',
      'by timeouts.queue: then it is a 503 with Retry-After, and the record says how long it waited',
    ),
  },
];
