import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { type Child, startChild } from '#testkit/programs/child.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { KubernetesApi } from './api.ts';

const run = promisify(execFile);

/** The address of the API server, of the balancer's side and of what stands beside the cluster. */
export const HOST_IP = '10.97.0.1';
const SERVICE_RANGE = '10.98.0.0/24';
/** How long a program may take to be ready. */
const READY_MS = 120_000;

/** The programs of a cluster without nodes, each in a process of its own. */
export interface ControlPlane extends AsyncDisposable {
  /** With the rights of `system:masters`. */
  readonly api: KubernetesApi;
  /** For the same rights. */
  readonly kubeconfig: string;
  /** The authority of the API server's certificate: PEM. */
  readonly ca: string;
  /** The key that signs the tokens of service accounts. */
  readonly signingKeyPath: string;
  /** What the API server says it is, such as v1.37.2. */
  readonly version: string;
  /** Lines of its audit log: who was answered what. */
  readonly auditPath: string;
  /** Runs kubectl. Rejects if it fails. */
  kubectl(...args: readonly string[]): Promise<string>;
  /** Ends the API server at once (SIGKILL). */
  stopApiServer(): Promise<void>;
  /** Starts it again; resolves when it answers. */
  startApiServer(): Promise<void>;
  /** Makes etcd forget all older states. */
  compact(): Promise<void>;
}

/** Builds a part, if it is not there yet, and returns the folder of its programs. */
export async function findPrograms(part: string, ...version: readonly string[]): Promise<string> {
  const { stdout } = await run(join(ROOT, 'scripts/kubernetes/build.sh'), [part, ...version]);
  return stdout.trim();
}

/** Builds helm, if it is not there yet, and returns its path. */
export async function findHelm(): Promise<string> {
  return (await run(join(ROOT, 'scripts/helm.sh'))).stdout.trim();
}

/** Starts a control plane in the network namespace of this process. `version`: such as 1.37.2; default: that of build.sh. */
export async function startControlPlane(
  folder: string,
  ...version: readonly string[]
): Promise<ControlPlane> {
  const [etcd, kubernetes, kwok] = await Promise.all([
    findPrograms('etcd'),
    findPrograms('kubernetes', ...version),
    findPrograms('kwok'),
  ]);
  await using parts = new AsyncDisposableStack();
  const files = await writeFiles(folder);
  const start = (program: string, args: readonly string[]) =>
    startChild({ file: program, args }, { logPath: join(folder, `${program.split('/').at(-1)}.log`) });

  const database = ['--data-dir', join(folder, 'etcd'), '--unsafe-no-fsync'];
  const clientUrl = 'http://127.0.0.1:2379';
  parts.use(
    start(join(etcd, 'etcd'), [
      ...database,
      ...['--listen-client-urls', clientUrl, '--advertise-client-urls', clientUrl],
      ...['--listen-peer-urls', 'http://127.0.0.1:2380'],
    ]),
  );
  const origin = `https://${HOST_IP}`;
  const api = new KubernetesApi({ origin, ca: files.ca, token: files.token });
  parts.defer(() => api.close());
  let apiServer: Child | null = null;
  parts.defer(async () => void (await apiServer?.end('SIGKILL')));
  const startApiServer = async () => {
    apiServer = start(join(kubernetes, 'kube-apiserver'), [
      ...['--etcd-servers', clientUrl, '--secure-port', '443', '--bind-address', '0.0.0.0'],
      ...['--advertise-address', HOST_IP, '--service-cluster-ip-range', SERVICE_RANGE],
      ...['--tls-cert-file', files.certPath, '--tls-private-key-file', files.keyPath],
      ...['--token-auth-file', files.tokensPath, '--authorization-mode', 'RBAC', '--cert-dir', folder],
      ...['--service-account-issuer', 'https://kubernetes.default.svc'],
      ...['--service-account-key-file', files.publicPath],
      ...['--service-account-signing-key-file', files.signingKeyPath],
      ...['--audit-policy-file', files.policyPath, '--audit-log-path', join(folder, 'audit.log')],
    ]);
    await untilReady(api, apiServer);
  };
  await startApiServer();
  const config = ['--kubeconfig', files.kubeconfig];
  parts.use(
    start(join(kubernetes, 'kube-controller-manager'), [
      ...[...config, '--service-account-private-key-file', files.signingKeyPath],
      ...['--root-ca-file', files.caPath, '--use-service-account-credentials', '--leader-elect=false'],
    ]),
  );
  parts.use(start(join(kubernetes, 'kube-scheduler'), [...config, '--leader-elect=false']));
  parts.use(
    start(join(kwok, 'kwok'), [
      ...[...config, '--config', join(kwok, 'nodes.yaml'), '--config', files.stagePath],
      // Without leases the controller manager takes the nodes, and with them their pods, for gone after 50 s.
      ...['--manage-all-nodes=true', '--node-ip', HOST_IP, '--node-lease-duration-seconds', '40'],
    ]),
  );
  const { gitVersion } = await api.get<{ gitVersion: string }>('/version');
  const moved = parts.move();
  return {
    api,
    kubeconfig: files.kubeconfig,
    ca: files.ca,
    signingKeyPath: files.signingKeyPath,
    version: gitVersion,
    auditPath: join(folder, 'audit.log'),
    startApiServer,
    kubectl: async (...args) => {
      const options = { maxBuffer: 64 << 20 };
      // What it has cached of an earlier cluster at this address is not true of this one.
      const own = [...config, '--cache-dir', join(folder, 'kubectl')];
      return (await run(join(kubernetes, 'kubectl'), [...own, ...args], options)).stdout;
    },
    stopApiServer: async () => void (await apiServer?.end('SIGKILL')),
    compact: async () => {
      const call = async (path: string, body: object) => {
        const init = { method: 'POST', body: JSON.stringify(body) };
        const response = await fetch(`${clientUrl}/v3/kv/${path}`, init);
        if (!response.ok) throw new Error(`etcd answered ${response.status}`);
        return (await response.json()) as { header: { revision: string } };
      };
      const { header } = await call('range', { key: Buffer.from('/').toString('base64') });
      await call('compaction', { revision: header.revision, physical: true });
    },
    [Symbol.asyncDispose]: () => moved.disposeAsync(),
  };
}

async function untilReady(api: KubernetesApi, child: Child): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    // "ok" is no JSON: what counts is that no RefusedCall and no broken connection comes first.
    const isReady = await api.get('/readyz').then(
      () => true,
      (error: unknown) => error instanceof SyntaxError,
    );
    if (isReady) return;
    if (child.hasExited) throw new Error('the API server has ended: see kube-apiserver.log');
    if (performance.now() - startedMs > READY_MS) throw new Error('the API server does not get ready');
    await sleep(200);
  }
}

/** Keys, certificates and settings. */
async function writeFiles(folder: string) {
  await mkdir(folder, { recursive: true });
  const path = (name: string) => join(folder, name);
  const openssl = (...args: readonly string[]) => run('openssl', args);
  const caPath = path('ca.crt');
  const subject = ['-subj', '/CN=cluster'];
  const key = ['-newkey', 'rsa:2048', '-nodes', '-days', '2'];
  await openssl('req', '-x509', ...key, ...subject, '-keyout', path('ca.key'), '-out', caPath);
  const names = `subjectAltName=DNS:kubernetes.default.svc,DNS:kubernetes.default,DNS:kubernetes,IP:${HOST_IP},IP:10.98.0.1`;
  const authority = ['-CA', caPath, '-CAkey', path('ca.key'), '-addext', names];
  const server = ['-keyout', path('server.key'), '-out', path('server.crt')];
  await openssl('req', '-x509', ...key, '-subj', '/CN=kube-apiserver', ...authority, ...server);
  await openssl('genrsa', '-out', path('sa.key'), '2048');
  await openssl('rsa', '-in', path('sa.key'), '-pubout', '-out', path('sa.pub'));
  const token = randomBytes(16).toString('hex');
  const ca = await readFile(caPath, 'utf8');
  const files = {
    'tokens.csv': `${token},admin,admin,system:masters\n`,
    'audit.json': JSON.stringify({
      apiVersion: 'audit.k8s.io/v1',
      kind: 'Policy',
      omitStages: ['RequestReceived'],
      rules: [{ level: 'Metadata', userGroups: ['system:serviceaccounts:llm'] }, { level: 'None' }],
    }),
    // The pods are played by the lab: this stage fits none, and keeps kwok from its own.
    'stages.yaml': JSON.stringify({
      apiVersion: 'kwok.x-k8s.io/v1alpha1',
      kind: 'Stage',
      metadata: { name: 'no-pod' },
      spec: {
        resourceRef: { apiGroup: 'v1', kind: 'Pod' },
        selector: { matchLabels: { 'spangate.lab/never': 'true' } },
        next: { delete: true },
      },
    }),
    'kubeconfig.json': JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      'current-context': 'lab',
      clusters: [{ name: 'lab', cluster: { server: `https://${HOST_IP}`, 'certificate-authority': caPath } }],
      users: [{ name: 'admin', user: { token } }],
      contexts: [{ name: 'lab', context: { cluster: 'lab', user: 'admin' } }],
    }),
  };
  for (const [name, content] of Object.entries(files)) await writeFile(path(name), content);
  return {
    ca,
    caPath,
    token,
    certPath: path('server.crt'),
    keyPath: path('server.key'),
    publicPath: path('sa.pub'),
    signingKeyPath: path('sa.key'),
    tokensPath: path('tokens.csv'),
    policyPath: path('audit.json'),
    stagePath: path('stages.yaml'),
    kubeconfig: path('kubeconfig.json'),
  };
}
