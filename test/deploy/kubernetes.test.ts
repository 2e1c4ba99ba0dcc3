import { execFile, execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { parseConfig } from '../../src/config/load.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const FOLDER = join(ROOT, 'deploy/kubernetes');
const BUILD = join(ROOT, 'scripts/kubectl-validate.sh');
const SECRET = 'secret.yaml.example';

type Labels = Readonly<Record<string, string>>;

/** What is looked at of each kind; whether the rest is right is Kubernetes' to say, below by its own schemas. */
interface Manifests {
  readonly ConfigMap: { readonly data: Readonly<Record<string, string>> };
  readonly Secret: { readonly stringData: Readonly<Record<string, string>> };
  readonly Service: { readonly spec: { readonly selector: Labels } };
  readonly PodDisruptionBudget: { readonly spec: { readonly selector: { readonly matchLabels: Labels } } };
  readonly HorizontalPodAutoscaler: {
    readonly spec: { readonly scaleTargetRef: { readonly kind: string; readonly name: string } };
  };
  readonly NetworkPolicy: {
    readonly spec: {
      readonly podSelector: { readonly matchLabels: Labels };
      readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[];
      readonly egress?: readonly {
        readonly to: readonly { readonly podSelector?: { readonly matchLabels: Labels } }[];
        readonly ports: readonly { readonly port: number }[];
      }[];
    };
  };
  readonly StatefulSet: {
    readonly spec: {
      readonly replicas: number;
      readonly serviceName: string;
      readonly updateStrategy: { readonly type: string };
    };
  };
  readonly Deployment: {
    readonly spec: {
      readonly selector: { readonly matchLabels: Labels };
      readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
    };
  };
}

interface Pod {
  readonly terminationGracePeriodSeconds: number;
  readonly containers: readonly [Container];
}

interface Container {
  readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
  readonly env: readonly {
    readonly name: string;
    readonly value?: string;
    readonly valueFrom?: {
      readonly secretKeyRef?: { readonly name: string; readonly key: string };
    };
  }[];
  readonly readinessProbe: {
    readonly httpGet: object;
    readonly periodSeconds: number;
    readonly failureThreshold: number;
  };
  readonly livenessProbe: { readonly tcpSocket: object };
  readonly startupProbe: { readonly periodSeconds: number; readonly failureThreshold: number };
}

type AnyManifest = { readonly kind: string; readonly metadata: { readonly name: string } };

let manifests: readonly AnyManifest[] = [];
beforeAll(async () => {
  const names = (await readdir(FOLDER)).filter((name) => name.endsWith('.yaml') || name === SECRET);
  const texts = await Promise.all(names.map((name) => readFile(join(FOLDER, name), 'utf8')));
  manifests = texts.flatMap((text) => parseAllDocuments(text).map((document) => document.toJS()));
});

function find<Kind extends keyof Manifests>(kind: Kind, name = 'spangate'): AnyManifest & Manifests[Kind] {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found as AnyManifest & Manifests[Kind];
}

const podOf = (deployment: Manifests['Deployment']) => deployment.spec.template.spec;
const gatewayConfig = () =>
  parseConfig(find('ConfigMap').data['gateway.yaml'] ?? '', { path: '/etc/spangate/gateway.yaml', env: {} });

describe('deploy/kubernetes', () => {
  test('is what the schemas of Kubernetes allow', { timeout: 15 * 60_000 }, async (context) => {
    const path = execFileSync(BUILD, ['--path'], { encoding: 'utf8' }).trim();
    const hasGo = await run('go', ['version']).then(
      () => true,
      () => false,
    );
    if (!existsSync(path) && !hasGo && process.env.CI !== 'true') {
      context.skip('needs Go to build kubectl-validate (scripts/kubectl-validate.sh)');
    }
    if (!existsSync(path)) await run(BUILD);
    const folder = await mkdtemp(join(tmpdir(), 'spangate-manifests-'));
    context.onTestFinished(() => rm(folder, { recursive: true }));
    for (const name of await readdir(FOLDER)) {
      if (name.endsWith('.yaml') || name === SECRET) {
        await copyFile(join(FOLDER, name), join(folder, name.replace('.example', '')));
      }
    }
    const { stdout } = await run(path, [folder, '--output', 'json']);
    const results: Record<string, readonly { readonly status: string }[]> = JSON.parse(stdout);
    expect(Object.keys(results)).toHaveLength(9);
    for (const [name, checked] of Object.entries(results)) {
      for (const { status } of checked) expect([name, status]).toEqual([name, 'Success']);
    }
  });

  test('has a gateway configuration that the gateway takes, for the ports and the paths of its pod', () => {
    const { gateway, stateDir } = gatewayConfig();
    const [container] = podOf(find('Deployment')).containers;
    expect(container.ports).toEqual([
      { name: 'clients', containerPort: gateway.listen.port },
      { name: 'admin', containerPort: gateway.adminListen.port },
    ]);
    const mountOf = (volume: string) => container.volumeMounts.find(({ name }) => name === volume)?.mountPath;
    expect(mountOf('config')).toBe('/etc/spangate');
    expect(stateDir.startsWith(`${mountOf('state')}/`)).toBe(true);
    expect(container.readinessProbe.httpGet).toEqual({ path: '/healthz', port: 'clients' });
    expect(container.livenessProbe.tcpSocket).toEqual({ port: 'clients' });
  });

  test('names the replicas as their pods are called', () => {
    const set = find('StatefulSet', 'vllm');
    const names = Array.from({ length: set.spec.replicas }, (_, ordinal) => `vllm-${ordinal}`);
    const { replicas } = gatewayConfig();
    expect(replicas.map(({ name }) => name)).toEqual(names);
    expect(replicas.map(({ url }) => String(url).replace(/\/$/, ''))).toEqual(
      names.map((name) => `http://${name}.${set.spec.serviceName}:8000`),
    );
    expect(set.spec.updateStrategy.type).toBe('OnDelete');
  });

  test('lets the gateways, and nobody else, reach the state that they share', () => {
    const { hostname, port } = new URL(gatewayConfig().fleet?.url ?? '');
    const labels = find('Service', hostname).spec.selector;
    expect(find('Deployment', hostname).spec.template.metadata.labels).toEqual(labels);
    const isToStore = ({
      to,
    }: {
      readonly to: readonly { readonly podSelector?: { matchLabels: Labels } }[];
    }) => JSON.stringify(to[0]?.podSelector?.matchLabels) === JSON.stringify(labels);
    const toStore = find('NetworkPolicy').spec.egress?.find(isToStore);
    expect(toStore?.ports).toEqual([{ port: Number(port) }]);
    expect(find('NetworkPolicy', hostname).spec.podSelector.matchLabels).toEqual(labels);
  });

  test('gives a gateway the time to join the others before it has to listen', () => {
    const { periodSeconds, failureThreshold } = podOf(find('Deployment')).containers[0].startupProbe;
    expect(periodSeconds * failureThreshold).toBeGreaterThan(40);
  });

  test('gives a shutdown the time that it may take', () => {
    const { delayMs, graceMs, flushMs } = gatewayConfig().shutdown;
    const pod = podOf(find('Deployment'));
    const { periodSeconds, failureThreshold } = pod.containers[0].readinessProbe;
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(
      delayMs + graceMs + flushMs + 10_000,
    );
    expect(delayMs).toBeGreaterThanOrEqual(5 * periodSeconds * failureThreshold * 1000);
  });

  test('refers to what is there', () => {
    const deployment = find('Deployment');
    const { labels } = deployment.spec.template.metadata;
    const selectors = [
      deployment.spec.selector.matchLabels,
      find('Service').spec.selector,
      find('Service', 'spangate-admin').spec.selector,
      find('PodDisruptionBudget').spec.selector.matchLabels,
      find('NetworkPolicy').spec.podSelector.matchLabels,
    ];
    for (const selector of selectors) expect(selector).toEqual(labels);
    expect(find('HorizontalPodAutoscaler').spec.scaleTargetRef).toMatchObject({
      kind: 'Deployment',
      name: deployment.metadata.name,
    });
    const [container] = podOf(deployment).containers;
    for (const { secretKeyRef } of container.env.flatMap(({ valueFrom }) => valueFrom ?? [])) {
      if (secretKeyRef === undefined) continue;
      expect(Object.keys(find('Secret', secretKeyRef.name).stringData)).toContain(secretKeyRef.key);
    }
    const names = container.env.map(({ name }) => name);
    const used = container.env.flatMap(({ value = '' }) => [...value.matchAll(/\$\((\w+)\)/g)]);
    // Kubernetes replaces only what is defined before.
    for (const [, name] of used)
      expect(names.slice(0, names.indexOf('OTEL_RESOURCE_ATTRIBUTES'))).toContain(name);
    const portNames = container.ports.map(({ name }) => name);
    const ingress = find('NetworkPolicy').spec.ingress.flatMap(({ ports }) => ports);
    for (const { port } of ingress) expect(portNames).toContain(port);
  });
});
