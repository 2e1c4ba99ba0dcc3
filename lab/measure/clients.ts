import { createHash } from 'node:crypto';
import { mkdir, mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { spendOnChats, WARM_REQUESTS } from '#testkit/load/cpu-of-chats.ts';
import { startPlainReplica } from '#testkit/load/plain-replica.ts';
import { type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { readCircumstances } from '#testkit/programs/results.ts';
import { median } from '#testkit/programs/statistics.ts';

const USAGE = `npm run lab -- measure/clients [options]
  Measures what API keys, limits and tokens of an issuer cost: the CPU time of a request through gateways that differ in
  nothing else, in turn. Linux only.
  --rounds N    turns of each (default 9); the result is the median
  --requests N  requests of a turn (default 4000)`;

const { rounds, requests } = startProgram(USAGE, {
  rounds: { type: 'string', default: '9' },
  requests: { type: 'string', default: '4000' },
});
const ROUNDS = toCount(rounds);
const REQUESTS = toCount(requests);
const ISSUER = 'https://issuer.example';
const AUDIENCE = 'spangate';

/** A gateway, what its clients send, and what its requests have cost. */
interface Contender {
  readonly name: string;
  readonly gateway: GatewayProcess;
  readonly token: string;
  readonly spentUs: number[];
}

await measure();

async function measure(): Promise<void> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-clients-'))).path;
  const replica = cleanUp.use(await startPlainReplica());
  const contenders: Contender[] = [];
  for (const { name, config, token } of await toKinds(folder)) {
    const own = join(folder, String(contenders.length));
    await mkdir(own);
    const whole = {
      gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
      state_dir: join(own, 'state'),
      replicas: [{ name: 'a', url: replica.url, models: ['m'], engine: 'openai' }],
      export: { endpoint: replica.url },
      ...config,
    };
    const gateway = cleanUp.use(await startGateway(own, whole, { SVC_HASH_SALT: 'measurement' }));
    contenders.push({ name, gateway, token, spentUs: [] });
  }
  for (const contender of contenders) await load(contender, WARM_REQUESTS);
  for (let round = 0; round < ROUNDS; round++) {
    for (const contender of contenders) contender.spentUs.push((await load(contender, REQUESTS)) / REQUESTS);
  }
  const base = median(contenders[0]?.spentUs ?? []);
  const { date, commit, machine } = readCircumstances();
  console.log(`${date}, commit ${commit}, ${machine}, ${ROUNDS} rounds of ${REQUESTS} requests\n`);
  console.log('| clients | CPU per request, µs | beside no keys |\n|---|---:|---:|');
  for (const { name, spentUs } of contenders) {
    const spent = median(spentUs);
    console.log(`| ${name} | ${spent.toFixed(1)} | ${(spent / base).toFixed(2)} × |`);
  }
}

/** The configurations that are compared, each with a key or token that it accepts. */
async function toKinds(folder: string) {
  const limits = {
    requests_per_minute: 10_000_000,
    tokens_per_minute: 1_000_000_000,
    max_inflight: 10_000,
  };
  const issued = await issue(folder);
  return [
    { name: 'no keys', config: {}, token: 'none' },
    { name: '10 keys', config: { clients: toEntries(10) }, token: 'key-1' },
    { name: '100,000 keys', config: { clients_file: await writeClients(folder, 100_000) }, token: 'key-1' },
    {
      name: '10 keys with all three limits',
      config: { clients: toEntries(10).map((entry) => ({ ...entry, ...limits })) },
      token: 'key-1',
    },
    { name: 'a token of an issuer, seen before', config: { jwt: issued.config }, token: issued.token },
  ];
}

function toEntries(count: number) {
  return Array.from({ length: count }, (_, index) => ({
    name: `client-${index}`,
    key_sha256: createHash('sha256').update(`key-${index}`).digest('hex'),
  }));
}

async function writeClients(folder: string, count: number): Promise<string> {
  const path = join(folder, 'clients.jsonl');
  await writeFile(
    path,
    toEntries(count).map((entry) => `${JSON.stringify(entry)}\n`),
  );
  return path;
}

/** A token, and what accepts it. */
async function issue(folder: string) {
  const { publicKey, privateKey } = await generateKeyPair('ES256');
  const jwks = join(folder, 'jwks.json');
  await writeFile(
    jwks,
    JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: '1', alg: 'ES256' }] }),
  );
  const token = await new SignJWT({ tenant: 'acme' })
    .setProtectedHeader({ alg: 'ES256', kid: '1' })
    .setIssuer(ISSUER)
    .setAudience(AUDIENCE)
    .setExpirationTime('1h')
    .sign(privateKey);
  return { token, config: { issuer: ISSUER, audience: AUDIENCE, jwks, tenant_claim: 'tenant' } };
}

/** The CPU time in µs of these requests. */
function load({ gateway, token }: Contender, requestCount: number): Promise<number> {
  return spendOnChats(gateway, requestCount, { fields: { Authorization: `Bearer ${token}` } });
}
