import { copyFile, mkdir, mkdtempDisposable } from 'node:fs/promises';
import { Agent } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { createSimulatedReplica } from '#simulate';
import { createAuthority, type IssuedCertificate } from '#testkit/certificates.ts';
import { Load } from '#testkit/load/load.ts';
import { ADMIN_TOKEN, askAdmin, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { printFailures, printFigures } from '#testkit/programs/results.ts';

const USAGE = `npm run lab -- tls/rotation [options]
  Replaces the certificate of a gateway again and again under load. Half of the requests come on kept connections, half
  on new ones. Before each replacement, a reload finds a certificate with the key of another and must refuse it. Exits
  with 1 if a request failed.
  --rate N       requests per second (default 300)
  --rotations N  replacements (default 10), each after as many requests as come in a second
  --workers N    workers of the gateway (default 2)`;

/** How much is done. */
export interface RotationSettings {
  readonly perSecond: number;
  readonly rotationCount: number;
  /** Requests that end between two changes of the files. */
  readonly requestsBetween: number;
  readonly workers: number;
}

/** What came of it. */
export interface RotationResult {
  readonly requests: number;
  readonly perSecond: number;
  readonly failures: readonly string[];
  /** TLS connections of clients that were opened; each kept one carried many requests. */
  readonly kept: number;
  readonly fresh: number;
  /** The status of each reload that found a key of another certificate. */
  readonly refusedStatuses: readonly number[];
  /** The subject that a new connection saw after each replacement. */
  readonly subjects: readonly string[];
}

/** Runs a gateway with TLS under load, and replaces its certificate. */
export async function rotateUnderLoad(settings: RotationSettings): Promise<RotationResult> {
  await using temporary = await mkdtempDisposable(join(tmpdir(), 'spangate-rotation-'));
  await using authority = await createAuthority();
  const folder = temporary.path;
  const files = { cert: join(folder, 'cert.pem'), key: join(folder, 'key.pem') };
  const first = await authority.issue('0');
  await putCertificate(first, files.cert);
  await putKey(first, files.key);

  await using stack = new AsyncDisposableStack();
  const replica = createSimulatedReplica({ name: 'a', models: ['m'], ttftMs: 5, gapMs: 2, tokens: 8 });
  stack.defer(() => replica.close());
  const { url: replicaUrl } = await replica.start();
  await mkdir(join(folder, 'gateway'));
  const gateway = await startGateway(join(folder, 'gateway'), {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', workers: settings.workers, tls: files },
    state_dir: join(folder, 'state'),
    replicas: [{ name: 'a', url: replicaUrl, models: ['m'], engine: 'vllm' }],
    export: { to: 'file' },
  });
  stack.use(gateway);
  const url = gateway.url.replace('http:', 'https:');
  const { ca } = authority;
  const kept = new CountingAgent({ ca: ca.cert, keepAlive: true });
  const fresh = new CountingAgent({ ca: ca.cert, keepAlive: false, maxCachedSessions: 0 });
  const load = new Load(url, settings.perSecond, [kept, fresh]);
  const refusedStatuses: number[] = [];
  const subjects: string[] = [];
  for (let rotation = 1; rotation <= settings.rotationCount; rotation++) {
    const next = await authority.issue(String(rotation));
    await load.untilEnded(settings.requestsBetween);
    await putCertificate(next, files.cert);
    refusedStatuses.push(await reload(gateway.adminUrl));
    await load.untilEnded(settings.requestsBetween);
    await putKey(next, files.key);
    await askAdmin(gateway.adminUrl, 'POST', '/admin/reload');
    subjects.push(await readSubject(url, ca.cert));
  }
  await load.untilEnded(settings.requestsBetween);
  const { requests, perSecond, failures } = await load.stop();
  const counts = { kept: kept.openedCount, fresh: fresh.openedCount };
  return { requests, perSecond, failures, ...counts, refusedStatuses, subjects };
}

const putCertificate = ({ certPath }: IssuedCertificate, path: string) => copyFile(certPath, path);
const putKey = ({ keyPath }: IssuedCertificate, path: string) => copyFile(keyPath, path);

/** An agent that counts its connections. */
class CountingAgent extends Agent {
  openedCount = 0;

  override createConnection(...args: Parameters<Agent['createConnection']>) {
    this.openedCount += 1;
    return super.createConnection(...args);
  }
}

/** The status of a reload, whatever it is. */
async function reload(adminUrl: string): Promise<number> {
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const response = await fetch(`${adminUrl}/admin/reload`, { method: 'POST', headers });
  await response.body?.cancel();
  return response.status;
}

/** The common name in the certificate that a new connection gets. */
function readSubject(url: string, ca: string): Promise<string> {
  const { hostname: host, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ca });
    socket.once('secureConnect', () => {
      const { CN } = socket.getPeerCertificate().subject;
      socket.destroy();
      resolve(String(CN));
    });
    socket.once('error', reject);
  });
}

async function main(): Promise<void> {
  const values = startProgram(USAGE, {
    rate: { type: 'string', default: '300' },
    rotations: { type: 'string', default: '10' },
    workers: { type: 'string', default: '2' },
  });
  const perSecond = toCount(values.rate);
  const result = await rotateUnderLoad({
    perSecond,
    rotationCount: toCount(values.rotations),
    requestsBetween: Math.ceil(perSecond / 2),
    workers: toCount(values.workers),
  });
  printFigures('certificates replaced under load', [
    ['replacements', new Set(result.subjects).size],
    ['reloads refused, with the wrong key', result.refusedStatuses.filter((status) => status === 422).length],
    ['requests', result.requests],
    ['requests per second', result.perSecond],
    ['connections kept, opened anew', `${result.kept}, ${result.fresh}`],
    ['failed requests', result.failures.length],
  ]);
  printFailures(result.failures);
  process.exitCode = result.failures.length === 0 ? 0 : 1;
}

if (import.meta.main) await main();
