import { duration, size, wholeNumber } from './codecs.ts';
import { facts, RELOADED, section } from './keys.ts';

/** `timeouts`: how long the gateway waits for others. */
export const timeouts = section({
  connect: duration().prefault('2s').describe('Connecting to a replica; then the next one is tried.'),
  first_byte: duration()
    .prefault('15m')
    .describe('From the end of the request to the head of the response; then 504. Long prompts need it.'),
  idle: duration()
    .prefault('5m')
    .describe(
      'No progress in a response: the replica sends nothing, or the client reads nothing. The response then breaks off, a stream with an error event.',
    ),
  silent: duration()
    .optional()
    .describe(
      'No byte in a stream after its first one; it then ends with `upstream_timeout`. Default: `idle`.',
    ),
  queue: duration({ minMs: 0 })
    .prefault('30s')
    .describe('Waiting for a replica below its `max_inflight`, over all attempts; then 503 `overloaded`.'),
  client_headers: duration()
    .prefault('15s')
    .describe('Receiving the request headers, from their first byte; then 408.'),
  client_body: duration().prefault('60s').describe('Receiving the request body; then 408.'),
  keep_alive: duration()
    .prefault('75s')
    .describe('An idle connection of a client. Keep it longer than that of a load balancer in front.'),
  upstream_keep_alive: duration()
    .prefault('4s')
    .describe('An idle connection to a replica. Engines close it after 5s.'),
});

/** `limits`: how much it holds. */
export const limits = section({
  body: size().prefault('32MiB').describe('A request body. A larger one gets 413.').register(facts, RELOADED),
  buffered: size()
    .prefault('512MiB')
    .describe(
      'All request bodies in memory; those above 256 KiB share seven eighths of it. Beyond it: 503 `overloaded`.',
    ),
  before_model: size({ minBytes: 1024 })
    .prefault('8MiB')
    .describe('What is held of a form until its model is known. Beyond it: 400 `late_model`.')
    .register(facts, RELOADED),
  headers: size({ minBytes: 1024 })
    .prefault('32KiB')
    .describe('The request line and headers, also of admin calls. Beyond it: 431.'),
  event: size({ minBytes: 1024 })
    .prefault('1MiB')
    .describe('A stream event. A larger one is relayed unread.')
    .register(facts, RELOADED),
  queue: wholeNumber(0, 1_000_000)
    .prefault(1_000)
    .describe(
      'Requests that wait because all replicas of their model are at `max_inflight`. Beyond it: 503 `overloaded`.',
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
      'Client connections; new ones are then closed. Each takes up to two file descriptors: there are fewer if `ulimit -n` is too low.',
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
