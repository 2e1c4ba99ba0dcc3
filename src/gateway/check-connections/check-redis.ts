import { type ConnectionCheck, explain, runCheck } from './connection-check.ts';

/** Sends PING to the Redis server of a fleet. `url` is secret. */
export function checkRedis(url: string): Promise<ConnectionCheck> {
  return runCheck('redis', 'state.redis', async () => {
    const { pingRedis, toRedisAddress } = await import('#fleet');
    const target = toRedisAddress(url);
    const code = await pingRedis(url);
    if (code === null) return { target, isOk: true, result: 'ok', advice: null };
    return { target, isOk: false, ...explain(code, FINDINGS) };
  });
}

/** What the codes of Node and the error words of Redis mean, and what to do. */
const FINDINGS: Parameters<typeof explain>[1] = [
  [/^timeout$/, 'no answer in time', 'check address and network, and whether it wants rediss:// (TLS)'],
  [/^(?:NOAUTH|WRONGPASS)$/, 'wrong password', 'write it into the URL: redis://user:password@host'],
  [/^(?:EPROTO|ERR_SSL_\w+)$/, 'TLS failed', 'the server does not speak TLS at this port: try redis://'],
  [/^(?:ECONNRESET|EPIPE|closed)$/, 'connection reset', 'check the port; it may want rediss:// (TLS)'],
];
