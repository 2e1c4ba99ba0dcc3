import { exchangeRaw, type RawResponse } from '../../raw-http.ts';
import { ADMIN_TOKEN } from '../../start-gateway.ts';
import { toOutcome } from '../exchange.ts';
import { inFile, inKey, type Limit, testedBy } from '../limit.ts';
import type { World } from '../world.ts';

const LISTENER = 'test/gateway/admin/admin-listener.test.ts';

/** Sends a call with the admin's token. */
async function call(
  world: World,
  line: string,
  fields: readonly string[] = [],
  body = '',
): Promise<RawResponse> {
  const { adminUrl } = await world.gateway();
  const lines = [`${line} HTTP/1.1`, 'Host: 127.0.0.1', `Authorization: Bearer ${ADMIN_TOKEN}`, ...fields];
  return await exchangeRaw(adminUrl, `${lines.join('\r\n')}\r\n\r\n${body}`);
}

/** Undrains the replica, so that the next request is served. */
async function undrain(world: World): Promise<void> {
  await call(world, 'POST /admin/replicas/a/undrain');
}

/** The admin API. */
export const ADMIN: readonly Limit[] = [
  {
    what: 'the target and header fields of a call',
    source: inKey('limits.headers'),
    past: '431 `headers_too_large`; the connection is closed',
    proof: {
      send: async (size, world) => {
        const fields = { Host: '127.0.0.1', Authorization: `Bearer ${ADMIN_TOKEN}`, 'X-Pad': '' };
        const counted = ['/admin/stats', ...Object.entries(fields).flat()].join('').length;
        return toOutcome(await call(world, 'GET /admin/stats', [`X-Pad: ${'x'.repeat(size - counted)}`]));
      },
      at: '200',
      past: '431 headers_too_large',
    },
  },
  {
    what: 'the body of a call',
    source: inFile('src/admin/listener/admin-connection.ts', 'MAX_BODY_BYTES'),
    past: '413 `request_too_large`; the connection is closed',
    proof: {
      send: async (size, world) => {
        const sized = await call(world, 'GET /admin/stats', [`Content-Length: ${size}`], 'x'.repeat(size));
        const chunk = `${size.toString(16)}\r\n${'x'.repeat(size)}\r\n0\r\n\r\n`;
        const inChunks = await call(world, 'GET /admin/stats', ['Transfer-Encoding: chunked'], chunk);
        return `${toOutcome(sized)}, in chunks ${toOutcome(inChunks)}`;
      },
      at: '200, in chunks 200',
      past: '413 request_too_large, in chunks 413 request_too_large',
    },
  },
  {
    what: 'connections to the admin API',
    source: inFile('src/admin/listener/admin-listener.ts', 'MAX_CONNECTIONS'),
    past: 'a new one is closed, and so are those idle for half a second; one log line per minute',
    proof: testedBy(
      LISTENER,
      'a connection beyond a thousand is refused, which is logged, and those that are idle are closed for the next ones',
    ),
  },
  {
    what: 'calls that wait on one connection',
    source: inFile('src/admin/listener/admin-connection.ts', 'MAX_WAITING'),
    past: 'the connection is closed after their answers',
    proof: testedBy(
      LISTENER,
      'has one call handled at a time, and is closed after the responses when it sends too many',
    ),
  },
  {
    what: 'calls that wait for a drain (`?wait=`)',
    source: inFile('src/admin/drains/idle-watcher.ts', 'MAX_WAITS'),
    past: '503 `too_many_waits`, nothing is drained; the connection is closed; a call without `wait` is served',
    proof: testedBy(LISTENER, 'waits are refused beyond five hundred'),
  },
  {
    what: 'the `wait` of a drain',
    source: inFile('src/admin/routes/drain.ts', 'MAX_WAIT_MS'),
    past: '400 `invalid_request`',
    proof: {
      send: async (size, world) => {
        const answer = await call(world, `POST /admin/replicas/a/drain?wait=${size}ms`);
        await undrain(world);
        return toOutcome(answer);
      },
      at: '200',
      past: '400 invalid_request',
    },
  },
  {
    what: 'the `ramp` of an undrain',
    source: inFile('src/replicas/drain-state/next-drain-state.ts', 'MAX_RAMP_MS'),
    past: '400 `invalid_request`',
    proof: {
      send: async (size, world) =>
        toOutcome(await call(world, `POST /admin/replicas/a/undrain?ramp=${size}ms`)),
      at: '200',
      past: '400 invalid_request',
    },
  },
  {
    what: 'the `reason` of a drain',
    source: inFile('src/admin/routes/drain.ts', 'MAX_REASON_CHARS'),
    past: 'it is cut',
    proof: testedBy('test/gateway/drains/drain.test.ts', 'is one line of at most 256 characters'),
  },
  {
    what: 'the records in one answer of the page',
    source: inFile('src/admin/routes/telemetry/overview.ts', 'MAX_RECORDS'),
    past: 'the page shows the latest',
    proof: testedBy('test/gateway/admin/overview.test.ts', 'stay when hundreds of successes have followed'),
  },
  {
    what: 'requests kept for `GET /admin/verdict`',
    source: inFile('src/comparisons/requests/request-ring.ts', 'CAPACITY'),
    past: 'the answer says since when it has all',
    proof: testedBy(
      'test/comparisons/requests/request-ring.test.ts',
      'the latest 262,144 requests are kept at least, and it says since when all are',
    ),
  },
  {
    what: 'comparisons at the same time',
    source: inFile('src/comparisons/judge/gateway-judge.ts', 'MAX_RUNNING'),
    past: 'the one not asked for the longest makes room',
    proof: testedBy(
      'test/comparisons/judge/gateway-judge.test.ts',
      'many comparisons take bounded memory: the one that nobody has asked for longest makes room',
    ),
  },
  {
    what: 'wrong tokens from one address; one per second is forgiven',
    source: inFile('src/admin/access/failed-tokens.ts', 'BURST'),
    past: '429 `too_many_wrong_tokens`, except for tokens that were right from there before',
    proof: testedBy(
      'test/admin/access/failed-tokens.test.ts',
      'ten wrong tokens from a source are answered, then one per second',
    ),
  },
  {
    what: 'addresses with wrong tokens',
    source: inFile('src/admin/access/failed-tokens.ts', 'MAX_SOURCES'),
    past: 'the least recent is forgotten',
    proof: testedBy(
      'test/admin/access/failed-tokens.test.ts',
      'many sources take bounded memory: the one that called least recently is forgotten',
    ),
  },
  {
    what: 'models and tenants with their own row on the page and in `gateway top`',
    source: inFile('src/admin/dashboard/traffic/top-names.ts', 'MAX_NAMES'),
    past: '`_OTHER` has the rest',
    proof: testedBy(
      'test/admin/dashboard/traffic/top-names.test.ts',
      'gets at most 50 rows, and no request is lost from the sum',
    ),
  },
];
