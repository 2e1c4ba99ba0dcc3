import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '#config';
import { exampleOf, findMistakes, hasTools, lint, parseManifests, render } from './rendered.ts';

const ROOT = join(import.meta.dirname, '../../..');
const read = (path: string) => readFile(join(ROOT, path), 'utf8');
const EXAMPLES = ['minimal', 'production', 'fleet', 'pods', 'kustomize'];
const MINIMAL = ['--values', exampleOf('minimal')];
const KUSTOMIZE = ['--values', exampleOf('kustomize')];

const namesOf = (text: string) =>
  parseManifests(text)
    .map(({ kind, metadata }) => `${kind} ${metadata.name}`)
    .toSorted();

describe.skipIf(!(await hasTools()))('the chart', { timeout: 15 * 60_000 }, () => {
  test.each(EXAMPLES)(
    'is linted and rendered with the example %s, as the schemas of Kubernetes allow',
    async (name) => {
      expect(await lint(name)).toContain('1 chart(s) linted, 0 chart(s) failed');
      expect(await findMistakes(await render('--values', exampleOf(name)))).toEqual([]);
    },
  );

  test.each(EXAMPLES)(
    'makes a gateway configuration that the gateway takes, from the example %s',
    async (name) => {
      const { data } = parseManifests(await render('--values', exampleOf(name))).find(
        (each) => each.kind === 'ConfigMap' && each.metadata.name === 'spangate',
      ) as unknown as { data: Record<string, string> };
      const origin = { path: '/etc/spangate/gateway.yaml', env: { VLLM_KEY: 'a-key' } };
      const { gateway, stateDir, health } = parseConfig(data['gateway.yaml'] ?? '', origin);
      expect([gateway.listen.port, gateway.adminListen.port]).toEqual([8080, 9090]);
      expect(stateDir).toBe('/var/lib/spangate/state');
      expect(health).toMatchObject({ passive: true, active: true });
    },
  );

  test.each([
    ['config.health=null', { passive: false, active: false, frozenAfterMs: null }],
    ['config.health.frozen_after=off', { passive: true, active: true, frozenAfterMs: null }],
    ['config.health.active=false', { passive: true, active: false }],
  ])('has health checks that values can turn off: %s', async (setting, expected) => {
    const { data } = parseManifests(await render('--values', exampleOf('minimal'), '--set', setting)).find(
      ({ kind }) => kind === 'ConfigMap',
    ) as unknown as { data: Record<string, string> };
    const { health } = parseConfig(data['gateway.yaml'] ?? '', { path: 'gateway.yaml', env: {} });
    expect(health).toMatchObject(expected);
  });

  test('asks no HTTPS of a gateway whose clients need certificates, because the kubelet has none', async () => {
    const tls = { client_ca: '/ca.crt' };
    const probeOf = async (...settings: string[]) => {
      const text = await render(...MINIMAL, '--set', 'tls.secretName=spangate-tls', ...settings);
      const set = parseManifests(text).find(({ kind }) => kind === 'StatefulSet') as unknown as {
        spec: { template: { spec: { containers: [{ readinessProbe: object }] } } };
      };
      return set.spec.template.spec.containers[0].readinessProbe;
    };
    expect(await probeOf()).toMatchObject({ httpGet: { scheme: 'HTTPS' } });
    const probe = await probeOf('--set-json', `config.gateway.tls=${JSON.stringify(tls)}`);
    expect(probe).toMatchObject({ tcpSocket: { port: 'clients' } });
    expect(probe).not.toHaveProperty('httpGet');
  });

  test('has Prometheus show a certificate to an admin API that wants one, and says what is missing', async () => {
    const settings = [
      ...['--values', exampleOf('production')],
      ...['--set', 'config.gateway.admin_tls.client_ca=/etc/spangate-admin-tls/ca.crt'],
    ];
    await expect(render(...settings)).rejects.toThrow('serviceMonitor.tlsSecretName is missing');
    const text = await render(...settings, '--set', 'serviceMonitor.tlsSecretName=prometheus-tls');
    expect(await findMistakes(text)).toEqual([]);
    const monitor = parseManifests(text).find(({ kind }) => kind === 'ServiceMonitor');
    expect(monitor).toMatchObject({
      spec: {
        endpoints: [
          {
            tlsConfig: {
              cert: { secret: { name: 'prometheus-tls', key: 'tls.crt' } },
              keySecret: { name: 'prometheus-tls', key: 'tls.key' },
            },
          },
        ],
      },
    });
    const map = parseManifests(text).find(({ kind }) => kind === 'ConfigMap') as unknown as {
      data: Record<string, string>;
    };
    const { gateway } = parseConfig(map.data['gateway.yaml'] ?? '', {
      path: '/etc/spangate/gateway.yaml',
      env: { VLLM_KEY: 'a-key' },
    });
    expect(gateway.adminTls).toMatchObject({
      cert: '/etc/spangate-admin-tls/tls.crt',
      clientCa: '/etc/spangate-admin-tls/ca.crt',
    });
  });

  test('is checked by schemas that find mistakes', async () => {
    const text = await render('--values', exampleOf('production'));
    const [monitor, pod] = [
      text.replace('interval: 15s', 'interval: soon'),
      text.replace('runAsNonRoot:', 'nonRoot:'),
    ];
    for (const wrong of [monitor, pod]) {
      expect(wrong).not.toBe(text);
      expect(await findMistakes(wrong)).toHaveLength(1);
    }
  });

  test('has every example of its folder in these tests', async () => {
    const files = await readdir(join(ROOT, 'deploy/helm/examples'));
    expect(files.toSorted()).toEqual(EXAMPLES.map((name) => `${name}.yaml`).toSorted());
  });

  test('makes the base of deploy/kubernetes from an example (scripts/render-kubernetes.sh)', async () => {
    const [, ...lines] = (await read('deploy/kubernetes/gateway.yaml')).split('\n');
    expect(lines.join('\n')).toBe(await render(...KUSTOMIZE));
    expect(parse(await read('deploy/kubernetes/kustomization.yaml')).resources).toEqual(['gateway.yaml']);
    expect(namesOf(await render(...KUSTOMIZE))).toEqual([
      'ConfigMap spangate',
      'NetworkPolicy spangate',
      'PodDisruptionBudget spangate',
      'Service spangate',
      'Service spangate-admin',
      'ServiceAccount spangate',
      'StatefulSet spangate',
    ]);
  });

  test('makes everything that the example for production asks for', async () => {
    const text = await render('--values', exampleOf('production'));
    const further = [
      'ConfigMap spangate-dashboards',
      'Ingress spangate',
      'PrometheusRule spangate',
      'Role spangate',
    ];
    expect(namesOf(text)).toEqual(
      expect.arrayContaining([...further, 'RoleBinding spangate', 'ServiceMonitor spangate']),
    );
    const find = (kind: string, name = 'spangate') =>
      parseManifests(text).find((each) => each.kind === kind && each.metadata.name === name) as unknown;
    expect(find('PrometheusRule')).toMatchObject({ spec: parse(await read('deploy/alerts.yaml')) });
    const { data } = find('ConfigMap', 'spangate-dashboards') as { data: Record<string, string> };
    expect(JSON.parse(data['spangate.json'] ?? '')).toEqual(
      JSON.parse(await read('deploy/grafana/dashboards/spangate.json')),
    );
    expect(find('Role')).toMatchObject({
      rules: [
        { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: ['get', 'list', 'watch'] },
      ],
    });
    expect(find('ServiceMonitor')).toMatchObject({
      spec: {
        endpoints: [
          {
            port: 'admin',
            path: '/metrics',
            scheme: 'https',
            authorization: { credentials: { key: 'read-token' } },
          },
        ],
      },
    });
    const { annotations } = (find('Ingress') as { metadata: { annotations: Record<string, string> } })
      .metadata;
    const seconds = Number(annotations['nginx.ingress.kubernetes.io/proxy-read-timeout']);
    expect(seconds).toBeGreaterThan(15 * 60); // timeouts.first_byte
  });

  test('lets the gateway follow pods, and pods drain themselves, with the example pods', async () => {
    const manifests = parseManifests(await render('--values', exampleOf('pods')));
    const find = (kind: string) => manifests.find((each) => each.kind === kind) as unknown;
    expect(find('StatefulSet')).toMatchObject({
      spec: {
        template: {
          spec: {
            automountServiceAccountToken: true,
            containers: [
              {
                env: expect.arrayContaining([
                  {
                    name: 'SVC_DRAIN_TOKEN',
                    valueFrom: { secretKeyRef: { name: 'spangate', key: 'drain-token' } },
                  },
                ]),
              },
            ],
          },
        },
      },
    });
    expect(find('Role')).toMatchObject({
      rules: [
        { resources: ['endpointslices'] },
        { apiGroups: [''], resources: ['pods/status'], verbs: ['patch'] },
      ],
    });
    const pods = { podSelector: { matchLabels: { 'app.kubernetes.io/name': 'vllm' } } };
    expect(find('NetworkPolicy')).toMatchObject({
      spec: {
        ingress: expect.arrayContaining([{ from: [pods], ports: [{ port: 'admin' }] }]),
        egress: expect.arrayContaining([{ ports: [{ port: 443 }, { port: 6443 }] }]),
      },
    });
    expect(find('RoleBinding')).toMatchObject({
      roleRef: { kind: 'Role', name: 'spangate' },
      subjects: [{ kind: 'ServiceAccount', name: 'spangate' }],
    });
    const { data } = find('ConfigMap') as { data: Record<string, string> };
    const { replicas } = parseConfig(data['gateway.yaml'] ?? '', { path: 'gateway.yaml', env: {} });
    expect(replicas).toMatchObject([
      {
        kubernetes: {
          service: 'vllm',
          namespace: null,
          apiServer: 'https://kubernetes.default.svc',
          tokenFile: '/var/run/secrets/kubernetes.io/serviceaccount/token',
          readinessGate: 'spangate.dev/answers',
        },
      },
    ]);
  });

  test('lets the gateway write the status of named pods alone, and of none that it does not follow', async () => {
    const named = '{vllm-0,vllm-1}';
    const options = ['--values', exampleOf('pods'), '--set', `kubernetes.readinessGate.pods=${named}`];
    const text = await render(...options);
    expect(await findMistakes(text)).toEqual([]);
    expect(parseManifests(text).find(({ kind }) => kind === 'Role')).toMatchObject({
      rules: [{}, { resources: ['pods/status'], resourceNames: ['vllm-0', 'vllm-1'], verbs: ['patch'] }],
    });
    await expect(render(...MINIMAL, '--set', 'kubernetes.readinessGate.enabled=true')).rejects.toThrow(
      /kubernetes\/enabled/,
    );
  });

  test('lets the gateway list the pods only if it is to tell them apart by their labels', async () => {
    const text = await render('--values', exampleOf('pods'), '--set', 'kubernetes.podLabels=true');
    expect(await findMistakes(text)).toEqual([]);
    expect(parseManifests(text).find(({ kind }) => kind === 'Role')).toMatchObject({
      rules: [{}, {}, { apiGroups: [''], resources: ['pods'], verbs: ['list'] }],
    });
  });

  test('refuses values that it does not know, and several gateways that share nothing', async () => {
    await expect(render(...MINIMAL, '--set', 'colour=red')).rejects.toThrow(
      /additional properties 'colour' not allowed/,
    );
    await expect(render(...MINIMAL, '--set', 'ingress.enabled=true')).rejects.toThrow(/ingress\/host/);
    await expect(render(...MINIMAL, '--set', 'replicas=2')).rejects.toThrow(
      /several gateways need config\.state\.redis/,
    );
  });

  test('says what is missing without values', async () => {
    await expect(render()).rejects.toThrow(/config\.replicas is missing: name your inference servers/);
  });

  test.each([
    ['config.limit.body=1MiB', /at '\/config': additional properties 'limit' not allowed/],
    ['config.timeouts.idle=soon', /at '\/config\/timeouts\/idle': 'soon' does not match/],
    ['config.log.level=loud', /at '\/config\/log\/level': value must be one of 'fatal'/],
    [
      'config.replicas[0].urls=http://a',
      /at '\/config\/replicas\/0': additional properties 'urls' not allowed/,
    ],
    ['config.health.peers=perhaps', /at '\/config\/health\/peers'/],
  ])('refuses %s, which the gateway would refuse at its start', async (change, message) => {
    await expect(render(...MINIMAL, '--set', change)).rejects.toThrow(message);
  });

  test('takes what the gateway replaces at its start', async () => {
    const variable = (name: string) => `$\{${name}}`;
    const keys = ['timeouts.idle', 'log.level', 'limits.body'];
    const changes = keys.flatMap((key) => ['--set', `config.${key}=${variable('VALUE')}`]);
    expect(await render(...MINIMAL, ...changes)).toContain(`idle: ${variable('VALUE')}`);
  });

  test('has the version of the package', async () => {
    const { version } = JSON.parse(await read('package.json'));
    expect(parse(await read('deploy/helm/spangate/Chart.yaml'))).toMatchObject({
      version,
      appVersion: version,
    });
  });

  test('carries the alerts and the dashboard of deploy/ (npm run generate)', async () => {
    const files = 'deploy/helm/spangate/files';
    expect(await read(`${files}/alerts.yaml`)).toBe(await read('deploy/alerts.yaml'));
    expect(await read(`${files}/dashboard.json`)).toBe(await read('deploy/grafana/dashboards/spangate.json'));
  });

  test('carries the schema of the configuration, key by key (npm run generate)', async () => {
    const { properties } = JSON.parse(await read('deploy/helm/spangate/values.schema.json'));
    const { properties: own } = JSON.parse(await read('deploy/helm/values.schema.json'));
    const { properties: keys } = JSON.parse(await read('docs/config.schema.json'));
    const { config, ...rest } = properties;
    expect(rest).toEqual(own);
    expect(Object.keys(config.properties)).toEqual(Object.keys(keys));
    expect(config.properties.timeouts).toEqual(keys.timeouts);
  });
});
