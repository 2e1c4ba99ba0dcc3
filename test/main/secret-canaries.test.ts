import { createHash } from 'node:crypto';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { Agent, request } from 'undici';
import { expect, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { EventLog } from '#testkit/event-log.ts';
import { runMain, spawnMain, startReplica, writeConfig } from '#testkit/processes/main-process.ts';
import { startRedisServer } from '#testkit/servers/redis-server.ts';
import { ROUTES } from '../../src/admin/route-table.ts';

/** One for each place where a secret stands. No cleaning changes them, and none is part of another. */
const SECRETS = {
  inlineApiKey: 'canary-qzxa-inline-api-key',
  fileApiKey: 'canary-qzxb-file-api-key',
  nextFileApiKey: 'canary-qzxn-next-file-api-key',
  redisPassword: 'canary-qzxc-redis-password',
  adminToken: 'canary-qzxd-admin-token',
  nextAdminToken: 'canary-qzxe-next-admin-token',
  operatorToken: 'canary-qzxf-operator-token',
  readToken: 'canary-qzxg-read-token',
  wrongToken: 'canary-qzxh-wrong-token',
  salt: 'canary-qzxi-salt',
  clientKey: 'canary-qzxj-client-key',
  wrongClientKey: 'canary-qzxk-wrong-client-key',
  otlpHeader: 'canary-qzxl-otlp-header',
  otlpPassword: 'canary-qzxm-otlp-password',
} as const;

const sha256 = (key: string) => createHash('sha256').update(key).digest('hex');

test('no secret is in a log, an answer, a metric, a record, a message, a crash or a file but its own', async () => {
  await using authority = await createAuthority();
  const server = await authority.issue('canary-server');
  await using redis = await startRedisServer();
  await redis.command('ACL', 'SETUSER', 'gw', 'on', `>${SECRETS.redisPassword}`, '~*', '&*', '+@all');
  const link = await redis.openLink();
  const replica = await startReplica();
  const configPath = await writeConfig('');
  const directory = dirname(configPath);
  const write = (name: string, content: string) => writeFile(join(directory, name), content);
  await write('api-key', `${SECRETS.fileApiKey}\n`);
  await write('redis-password', `${SECRETS.redisPassword}\n`);
  await write('admin-tokens', `old: ${SECRETS.adminToken}\nnew: ${SECRETS.nextAdminToken}\n`);
  await write('operator-token', SECRETS.operatorToken);
  await write('read-token', SECRETS.readToken);
  await write('salt', SECRETS.salt);
  const own = new Set(['api-key', 'redis-password', 'admin-tokens', 'operator-token', 'read-token', 'salt']);
  const config = `gateway:
  listen: 127.0.0.1:0
  admin_listen: 127.0.0.1:0
  tls: { cert: ${server.certPath}, key: ${server.keyPath} }
  admin_tls: { cert: ${server.certPath}, key: ${server.keyPath} }
clients: [{ name: team, key_sha256: ${sha256(SECRETS.clientKey)} }]
replicas:
  - { name: a, url: "${replica.url}", models: [m], engine: openai, api_key: "\${file:api-key}" }
  - { name: b, url: "http://127.0.0.1:9/v1", models: [m], engine: openai, api_key: ${SECRETS.inlineApiKey} }
state: { redis: "redis://gw:\${file:redis-password}@${new URL(link.url).host}" }
export: { batch_size: 1, retry: { initial: 1ms, max: 5ms } }
shutdown: { flush: 0s }
log: { level: trace, requests: true }
`;
  await write('gateway.yaml', config);
  own.add('gateway.yaml');
  const env = {
    SVC_CONFIG: configPath,
    SVC_ADMIN_TOKEN_FILE: join(directory, 'admin-tokens'),
    SVC_OPERATOR_TOKEN_FILE: join(directory, 'operator-token'),
    SVC_READ_TOKEN_FILE: join(directory, 'read-token'),
    SVC_HASH_SALT_FILE: join(directory, 'salt'),
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://user:${SECRETS.otlpPassword}@127.0.0.1:9`,
    OTEL_EXPORTER_OTLP_HEADERS: `x-key=${SECRETS.otlpHeader}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '100',
  };
  const words = JSON.stringify(Object.values(SECRETS).map((secret) => [...secret]));
  const preload = `const words = ${words};
    process.on('SIGUSR2', () => { throw new TypeError(words.map((each) => each.join('')).join(' ')) })`;

  const { child, stdout, stderr, closed } = spawnMain([], { env, preload });
  const lines = new EventLog<string>();
  createInterface({ input: stdout }).on('line', (line) => lines.push(line));
  const said = text(stderr);
  const findStart = () => lines.items.find((line) => line.includes('"msg":"serving"'));
  await lines.until(() => findStart() !== undefined);
  const { listen, adminListen } = JSON.parse(findStart() ?? '{}') as Record<string, string>;
  const dispatcher = new Agent({ connect: { ca: authority.ca.cert } });
  const answers: string[] = [];
  const call = async (url: string, token: string, method: 'GET' | 'POST' = 'GET', body?: string) => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await request(url, {
      dispatcher,
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    answers.push(JSON.stringify(answer.headers) + (await answer.body.text()));
    return answer.statusCode;
  };
  const chat = (key: string) =>
    call(`https://${listen}/v1/chat/completions`, key, 'POST', '{"model":"m","messages":[]}');
  const admin = (path: string, token: string, method: 'GET' | 'POST' = 'GET') =>
    call(`https://${adminListen}${path}`, token, method);

  expect([await chat(SECRETS.clientKey), await chat(SECRETS.clientKey)]).toEqual([200, 200]);
  expect(await chat(SECRETS.wrongClientKey)).toBe(401);
  for (const token of [
    SECRETS.adminToken,
    SECRETS.nextAdminToken,
    SECRETS.operatorToken,
    SECRETS.readToken,
  ]) {
    expect(await admin('/admin/replicas', token)).toBe(200);
  }
  expect(await admin('/admin/reload', SECRETS.operatorToken, 'POST')).toBe(403);
  expect(await admin('/admin/replicas/b/drain', SECRETS.operatorToken, 'POST')).toBe(200);
  for (let count = 0; count < 12; count += 1) await admin('/admin/stats', SECRETS.wrongToken + count);
  await write('gateway.yaml', `${config}headers: { tenant: "not a header \${file:api-key}" }\n`);
  expect(await admin('/admin/reload', SECRETS.adminToken, 'POST')).toBe(422);
  const refusedCheck = await runMain(['check'], { env });
  await write('gateway.yaml', config);
  await write('api-key', SECRETS.nextFileApiKey);
  expect(await admin('/admin/reload', SECRETS.nextAdminToken, 'POST')).toBe(200);
  expect(await chat(SECRETS.clientKey)).toBe(200);
  link.become('cut');
  await lines.until(() => lines.items.some((line) => line.includes('"condition":"redis_away"')));
  for (const { method, path } of ROUTES) {
    if (method === 'GET') await admin(path.replace('{name}', 'a'), SECRETS.readToken);
  }
  const checks = await Promise.all([
    runMain(['check'], { env }),
    runMain(['check', '--connect'], { env }),
    runMain(['replicas', '--admin', `https://${adminListen}`, '--ca', authority.ca.certPath], { env }),
  ]);
  expect(refusedCheck).toMatchObject({ code: 2, stderr: expect.stringContaining('headers.tenant') });
  expect(checks.map(({ code }) => code)).toEqual([0, 1, 0]);
  await dispatcher.close();
  child.kill('SIGUSR2');
  expect(await closed).toMatchObject({ code: 1 });

  const replicaKeys = replica.requests.flatMap((each) => each.header('Authorization'));
  expect(new Set(replicaKeys)).toEqual(
    new Set([`Bearer ${SECRETS.fileApiKey}`, `Bearer ${SECRETS.nextFileApiKey}`]),
  );
  const files = await readFilesBeside(directory, own);
  expect(files).toMatch(/spool/);
  const kept = {
    log: lines.items.join('\n'),
    stderr: await said,
    answers: answers.join('\n'),
    commands: JSON.stringify([...checks, refusedCheck]),
    files,
  };
  expect(kept.log).toContain('"token_name":"new"');
  expect(kept.log).toContain('wrong admin token');
  const keyText = server.key.split('\n')[1] ?? '';
  expect(keyText.length).toBeGreaterThan(40);
  for (const [where, found] of Object.entries(kept)) {
    for (const secret of [...Object.values(SECRETS), keyText]) {
      for (const form of formsOf(secret)) expect(found.includes(form), `${secret} in ${where}`).toBe(false);
    }
  }
});

/** A secret as it is, as its digest unless the configuration shows that, and as base64 wherever it begins in the text that is encoded. */
function formsOf(secret: string): readonly string[] {
  const encoded = [0, 1, 2].map((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
    // The first and last characters depend on what is beside it.
    return bytes.toString('base64').slice(4, -4);
  });
  return [secret, ...(secret === SECRETS.clientKey ? [] : [sha256(secret)]), ...encoded];
}

/** Names and contents of all files below a directory, but for those. */
async function readFilesBeside(directory: string, excluded: ReadonlySet<string>): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !excluded.has(entry.name));
  const contents = await Promise.all(
    files.map(async ({ parentPath, name }) => {
      const path = join(parentPath, name);
      return `${path}\n${await readFile(path, 'latin1')}`;
    }),
  );
  return contents.join('\n');
}
