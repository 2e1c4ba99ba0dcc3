import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { parseConfig } from '#config';
import { exampleOf, findMistakes, hasTools, type Manifest, parseManifests, render } from './rendered.ts';

const FOLDER = join(import.meta.dirname, '../../../deploy/kubernetes');
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
      readonly selector: { readonly matchLabels: Labels };
      readonly template: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
    };
  };
  readonly Deployment: {
    readonly spec: { readonly template: { readonly metadata: { readonly labels: Labels } } };
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
    readonly valueFrom: { readonly secretKeyRef: { readonly name: string; readonly key: string } };
  }[];
  readonly readinessProbe: {
    readonly httpGet: object;
    readonly periodSeconds: number;
    readonly failureThreshold: number;
  };
  readonly livenessProbe: { readonly tcpSocket: object };
  readonly startupProbe: { readonly periodSeconds: number; readonly failureThreshold: number };
}

let manifests: readonly Manifest[] = [];

function find<Kind extends keyof Manifests>(kind: Kind, name = 'spangate'): Manifest & Manifests[Kind] {
  const found = manifests.find((each) => each.kind === kind && each.metadata.name === name);
  if (found === undefined) throw new Error(`no ${kind} ${name}`);
  return found as Manifest & Manifests[Kind];
}

const podOf = (set: Manifests['StatefulSet']) => set.spec.template.spec;
const gatewayConfig = () =>
  parseConfig(find('ConfigMap').data['gateway.yaml'] ?? '', { path: '/etc/spangate/gateway.yaml', env: {} });

describe.skipIf(!(await hasTools()))('the fleet that the chart and deploy/kubernetes make', () => {
  let text = '';
  beforeAll(async () => {
    const others = await Promise.all(
      ['vllm.yaml', 'valkey.yaml', SECRET].map((name) => readFile(join(FOLDER, name), 'utf8')),
    );
    text = [await render('--values', exampleOf('fleet')), ...others].join('\n---\n');
    manifests = parseManifests(text);
  }, 15 * 60_000);

  test('is what the schemas of Kubernetes allow', { timeout: 15 * 60_000 }, async () => {
    expect(await findMistakes(text)).toEqual([]);
  });

  test('has a readiness gate for its StatefulSet that waits for what the example of the chart writes', async () => {
    const patch = parse(await readFile(join(FOLDER, 'vllm-readiness-gate.yaml'), 'utf8'));
    const set = find('StatefulSet', 'vllm');
    const spec = { ...set.spec, updateStrategy: patch.spec.updateStrategy };
    const template = { ...spec.template, spec: { ...podOf(set), ...patch.spec.template.spec } };
    expect(await findMistakes(stringify({ ...set, spec: { ...spec, template } }))).toEqual([]);
    const chart = parseManifests(await render('--values', exampleOf('pods')));
    const { data } = chart.find(({ kind }) => kind === 'ConfigMap') as Manifests['ConfigMap'] & Manifest;
    const { replicas } = parseConfig(data['gateway.yaml'] ?? '', { path: 'gateway.yaml', env: {} });
    expect(patch.spec.template.spec.readinessGates).toEqual([
      { conditionType: replicas[0]?.kubernetes?.readinessGate },
    ]);
  });

  test('has a gateway configuration that the gateway takes, for the ports and the paths of its pod', () => {
    const { gateway, stateDir } = gatewayConfig();
    const [container] = podOf(find('StatefulSet')).containers;
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
    const { hostname, port } = new URL(gatewayConfig().state.redis ?? '');
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
    const { periodSeconds, failureThreshold } = podOf(find('StatefulSet')).containers[0].startupProbe;
    expect(periodSeconds * failureThreshold).toBeGreaterThan(40);
  });

  test('gives a shutdown the time that it may take', () => {
    const { delayMs, graceMs, flushMs } = gatewayConfig().shutdown;
    const pod = podOf(find('StatefulSet'));
    const { periodSeconds, failureThreshold } = pod.containers[0].readinessProbe;
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThanOrEqual(
      delayMs + graceMs + flushMs + 10_000,
    );
    expect(delayMs).toBeGreaterThanOrEqual(5 * periodSeconds * failureThreshold * 1000);
  });

  test('refers to what is there', () => {
    const set = find('StatefulSet');
    const { labels } = set.spec.template.metadata;
    const selectors = [
      set.spec.selector.matchLabels,
      find('Service').spec.selector,
      find('Service', 'spangate-admin').spec.selector,
      find('PodDisruptionBudget').spec.selector.matchLabels,
      find('NetworkPolicy').spec.podSelector.matchLabels,
    ];
    for (const selector of selectors) expect(selector).toEqual(labels);
    expect(find('HorizontalPodAutoscaler').spec.scaleTargetRef).toMatchObject({
      kind: 'StatefulSet',
      name: set.metadata.name,
    });
    const [container] = podOf(set).containers;
    for (const { valueFrom } of container.env) {
      expect(Object.keys(find('Secret', valueFrom.secretKeyRef.name).stringData)).toContain(
        valueFrom.secretKeyRef.key,
      );
    }
    const portNames = container.ports.map(({ name }) => name);
    const ingress = find('NetworkPolicy').spec.ingress.flatMap(({ ports }) => ports);
    for (const { port } of ingress) expect(portNames).toContain(port);
  });
});
