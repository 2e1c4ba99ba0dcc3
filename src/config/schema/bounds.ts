import { duration, size, wholeNumber } from './codecs.ts';
import { facts, RELOADED, section } from './keys.ts';

/** `timeouts`: how long the gateway waits for others. */
export const timeouts = section({
  connect: duration()
    .prefault('2s')
    .describe('Time to connect to a replica; then the next replica is tried.'),
  first_byte: duration()
    .prefault('15m')
    .describe('Time from the written request to the response headers of a replica. Long prompts need it.'),
  idle: duration()
    .prefault('5m')
    .describe('Time without progress in a response: the replica sends nothing, or the client reads nothing.'),
  silent: duration()
    .optional()
    .describe(
      'Time without a byte in a stream after its first byte, before it ends with an error event (`upstream_timeout`). Less than `idle` gives clients and their limits back sooner what hangs. Default: `idle`.',
    ),
  queue: duration({ minMs: 0 })
    .prefault('30s')
    .describe('Time that a request waits for a replica below its `max_inflight`, over all attempts.'),
  client_headers: duration()
    .prefault('15s')
    .describe('Time to receive all request headers of a client, from their first byte.'),
  client_body: duration().prefault('60s').describe('Time to receive all of a request body from a client.'),
  keep_alive: duration()
    .prefault('75s')
    .describe(
      'An idle connection of a client is closed after this time. Keep it above that of a load balancer in front.',
    ),
  upstream_keep_alive: duration()
    .prefault('4s')
    .describe('An idle connection to a replica is closed after this time. Engines close it after 5s.'),
});

/** `limits`: how much it holds. */
export const limits = section({
  body: size().prefault('32MiB').describe('The maximum size of a request body.').register(facts, RELOADED),
  buffered: size().prefault('512MiB').describe('The maximum size of all request bodies in memory together.'),
  before_model: size({ minBytes: 1024 })
    .prefault('8MiB')
    .describe(
      'How much of a form, such as an audio file, is held while its model is not known. It is known once the part `model` has come, or, without `aliases`, if only one model is served.',
    )
    .register(facts, RELOADED),
  headers: size({ minBytes: 1024 }).prefault('32KiB').describe('The maximum size of a request head.'),
  event: size({ minBytes: 1024 })
    .prefault('1MiB')
    .describe('The maximum size of a stream event that is parsed. A larger one is relayed without parsing.')
    .register(facts, RELOADED),
  queue: wholeNumber(0, 1_000_000)
    .prefault(1_000)
    .describe(
      'The maximum number of requests that wait because all replicas of their model are at `max_inflight`.',
    )
    .register(facts, RELOADED),
  background: duration()
    .prefault('1h')
    .describe(
      'How long a response with `background` counts as work of its replica if the gateway does not see its end.',
    )
    .register(facts, RELOADED),
  connections: wholeNumber(1, 10_000_000)
    .prefault(10_000)
    .describe(
      'The maximum number of client connections. Each takes up to two file descriptors: where the process may open too few files, fewer connections are accepted.',
    ),
});

/** `shutdown`: how long a stop may take. */
export const shutdown = section({
  delay: duration({ minMs: 0 })
    .prefault('0s')
    .describe('How long /healthz answers 503 before the listener closes.'),
  grace: duration({ minMs: 0 }).prefault('20s').describe('How long requests in flight may take to finish.'),
  flush: duration({ minMs: 0 }).prefault('5s').describe('How long the export of queued records may take.'),
});
