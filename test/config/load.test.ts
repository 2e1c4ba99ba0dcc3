// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the file's variables, not JavaScript's.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { loadConfig, parseConfig, printConfig } from '../../src/config/load.ts';

const VARIABLES = {
  PRICE: '0.99',
  KEY: 'sk-secret-1',
  COUNT: '100',
  LEVEL: 'debug',
};
const source = { path: '/etc/spangate/gateway.yaml', env: VARIABLES };
const REPLICA = 'replicas: [{ name: a, url: "http://a:8000" }]\n';

describe('a configuration with only a replica', () => {
  it('has the documented defaults', () => {
    expect(parseConfig(REPLICA, source)).toMatchObject({
      gateway: {
        name: null,
        listen: { host: '0.0.0.0', port: 8080 },
        adminListen: { host: '127.0.0.1', port: 9090 },
        adminHosts: null,
        trustedProxies: null,
        workers: 1,
        tls: null,
        adminTls: null,
      },
      headers: { tenant: 'X-Tenant', feature: 'X-Feature', conversation: 'X-Session-Id' },
      endpoints: [],
      pass: [],
      modelsListing: 'next_replica',
      aliases: {},
      stateDir: '/etc/spangate/state',
      clients: null,
      clientsFile: null,
      jwt: null,
      tenantLimits: null,
      state: { redis: null, prefix: 'spangate' },
      replicas: [
        {
          name: 'a',
          url: 'http://a:8000',
          dns: null,
          kubernetes: null,
          host: 'a',
          apiKey: null,
          tls: null,
          gpuModel: null,
          gpuCount: null,
          gpuHourPrice: null,
          models: 'auto',
          engine: 'auto',
          maxInflight: null,
        },
      ],
      routing: { policy: 'round_robin' },
      retry: { statuses: [], attempts: 1 },
      health: {
        passive: false,
        active: false,
        failures: 3,
        successes: 2,
        coolDownMs: 10_000,
        frozenAfterMs: null,
        peers: null,
        path: 'auto',
        intervalMs: 5_000,
        timeoutMs: 2_000,
      },
      rollout: { rampMs: 0 },
      discovery: { modelsIntervalMs: 30_000, dnsIntervalMs: 10_000 },
      export: {
        to: 'otlp',
        endpoint: null,
        protocol: null,
        file: { maxSizeBytes: 64 * 1024 ** 2, maxAgeMs: 3_600_000, maxTotalBytes: 1024 ** 3 },
        queueSize: 16_384,
        queueBytes: 256 * 1024 ** 2,
        batchSize: 512,
        intervalMs: 1_000,
        retry: { initialMs: 500, maxMs: 5_000 },
        ledger: null,
      },
      metrics: { otlp: null, intervalMs: null, maxNames: 100 },
      trace: { incoming: 'link', spans: 'server', urlTemplate: null },
      prefixHash: { blockChars: 512, maxBlocks: 128 },
      timeouts: {
        connectMs: 2_000,
        firstByteMs: 900_000,
        idleMs: 300_000,
        queueMs: 30_000,
        clientHeadersMs: 15_000,
        clientBodyMs: 60_000,
        keepAliveMs: 75_000,
        upstreamKeepAliveMs: 4_000,
      },
      limits: {
        bodyBytes: 33_554_432,
        bufferedBytes: 536_870_912,
        beforeModelBytes: 8_388_608,
        headersBytes: 32_768,
        eventBytes: 1_048_576,
        queue: 1_000,
        backgroundMs: 3_600_000,
        connections: 10_000,
      },
      shutdown: { delayMs: 0, graceMs: 20_000, flushMs: 5_000 },
      log: { level: 'info', format: 'auto', requests: false },
    });
  });
});

describe('a configuration with every key', () => {
  const text = `
gateway:
  name: gw-a
  listen: "[::]:80"
  admin_listen: localhost:0
  admin_hosts: [gateway.example.com, "*.internal"]
  trusted_proxies: [10.0.0.7, "fd00::/8"]
  workers: 1
  tls:
    cert: tls/a.pem
    key: /keys/a.key
    pairs: [{ cert: tls/b.pem, key: tls/b.key }]
    client_ca: tls/ca.pem
    min_version: TLSv1.3
    record_subject: true
  admin_tls: { cert: tls/b.pem, key: tls/b.key }
headers: { tenant: X-Team, feature: x-app, conversation: X-Thread }
endpoints: [responses, messages]
pass: [GET /version, "DELETE /v1/files/*"]
models_listing: union
aliases: { gpt-4o: llama-3.3-70b }
state_dir: /var/lib/spangate
state: { redis: "rediss://:secret%2F@redis:6380/2", prefix: blue }
clients:
  - name: search-team
    key_sha256: [${'A'.repeat(64)}, ${'b'.repeat(64)}]
    tenant: search
    feature: rag
    models: [llama-3.3-70b]
    requests_per_minute: 600
    expires: 2027-01-31T00:00:00+01:00
clients_file: clients.jsonl
replicas:
  - name: vllm-a
    url: https://10.0.0.11:8443/engine/
    tls: { ca: tls/ca.pem, cert: tls/a.pem, key: /keys/a.key, server_name: vllm.test, verify: false }
    host: gpu-node-1
    gpu_model: H100
    gpu_count: 8
    models: [llama-3.3-70b, "org/name:tag"]
    engine: vllm
    api_key: \${KEY}
  - { name: any, url: "http://b", models: ["*"], engine: tgi, gpu_model: null }
  - { name: pods, dns: "http://_http._tcp.vllm.llm.svc.cluster.local/engine/", gpu_count: 2, api_key: "\${KEY}" }
retry: { statuses: [503, "429"], attempts: 2 }
discovery: { models_interval: 1m, dns_interval: 5s }
export:
  to: file
  endpoint: http://127.0.0.1:4318/
  file: { max_size: 8MiB, max_age: 10m, max_total: 32MiB }
  queue_size: 4
  queue_bytes: 2MiB
  batch_size: 4
  interval: 250ms
  retry: { initial: 1s, max: 1s }
  ledger: { interval: 10s }
metrics: { otlp: true, interval: 10s, max_names: 5 }
trace: { incoming: ignore }
prefix_hash: { block_chars: 16, max_blocks: 4 }
timeouts: { connect: 1ms, first_byte: 1h, idle: 1m, client_headers: 1s, client_body: 2s, keep_alive: 3s, upstream_keep_alive: 4s }
limits: { body: 10MB, buffered: 1GiB, headers: 4096, event: 64KiB, connections: 1 }
shutdown: { delay: 5s, grace: 0s, flush: 1500ms }
log: { level: warn, format: text, requests: true }
`;

  it('is applied as written', () => {
    const config = parseConfig(text, source);
    expect(config.gateway).toMatchObject({
      name: 'gw-a',
      listen: { host: '::', port: 80 },
      adminListen: { host: 'localhost', port: 0 },
      adminHosts: ['gateway.example.com', '*.internal'],
      trustedProxies: ['10.0.0.7', 'fd00::/8'],
      workers: 1,
      tls: {
        cert: '/etc/spangate/tls/a.pem',
        key: '/keys/a.key',
        pairs: [{ cert: '/etc/spangate/tls/b.pem', key: '/etc/spangate/tls/b.key' }],
        clientCa: '/etc/spangate/tls/ca.pem',
        minVersion: 'TLSv1.3',
        recordSubject: true,
      },
      adminTls: {
        cert: '/etc/spangate/tls/b.pem',
        key: '/etc/spangate/tls/b.key',
        pairs: [],
        clientCa: null,
        minVersion: 'TLSv1.2',
      },
    });
    expect(config.headers).toMatchObject({ tenant: 'X-Team', feature: 'x-app', conversation: 'X-Thread' });
    expect(config.endpoints).toEqual(['responses', 'messages']);
    expect(config.pass).toEqual([
      { method: 'GET', path: '/version' },
      { method: 'DELETE', path: '/v1/files/*' },
    ]);
    expect(config.modelsListing).toBe('union');
    expect(config.aliases).toEqual({ 'gpt-4o': 'llama-3.3-70b' });
    expect(config.stateDir).toBe('/var/lib/spangate');
    expect(config.clients).toMatchObject([
      {
        name: 'search-team',
        keySha256: ['a'.repeat(64), 'b'.repeat(64)],
        tenant: 'search',
        feature: 'rag',
        models: ['llama-3.3-70b'],
        expiresAtMs: Date.parse('2027-01-30T23:00:00Z'),
        maxInflight: null,
        requestsPerMinute: 600,
        tokensPerMinute: null,
      },
    ]);
    expect(config.clientsFile).toBe('/etc/spangate/clients.jsonl');
    expect(config.replicas).toMatchObject([
      {
        name: 'vllm-a',
        url: 'https://10.0.0.11:8443/engine',
        dns: null,
        kubernetes: null,
        host: 'gpu-node-1',
        gpuModel: 'H100',
        gpuCount: 8,
        gpuHourPrice: null,
        models: ['llama-3.3-70b', 'org/name:tag'],
        engine: 'vllm',
        maxInflight: null,
        apiKey: 'sk-secret-1',
        tls: {
          ca: '/etc/spangate/tls/ca.pem',
          cert: '/etc/spangate/tls/a.pem',
          key: '/keys/a.key',
          serverName: 'vllm.test',
          verify: false,
        },
      },
      {
        name: 'any',
        url: 'http://b',
        dns: null,
        kubernetes: null,
        host: 'b',
        apiKey: null,
        tls: null,
        gpuModel: null,
        gpuCount: null,
        gpuHourPrice: null,
        models: ['*'],
        engine: 'tgi',
        maxInflight: null,
      },
      {
        name: 'pods',
        url: null,
        dns: 'http://_http._tcp.vllm.llm.svc.cluster.local/engine',
        kubernetes: null,
        host: null,
        tls: null,
        gpuModel: null,
        gpuCount: 2,
        gpuHourPrice: null,
        models: 'auto',
        engine: 'auto',
        maxInflight: null,
        apiKey: 'sk-secret-1',
      },
    ]);
    expect(config.retry).toMatchObject({ statuses: [503, 429], attempts: 2 });
    expect(config.discovery).toMatchObject({ modelsIntervalMs: 60_000, dnsIntervalMs: 5_000 });
    expect(config.export).toMatchObject({
      to: 'file',
      endpoint: 'http://127.0.0.1:4318',
      protocol: null,
      file: { maxSizeBytes: 8 * 1024 ** 2, maxAgeMs: 600_000, maxTotalBytes: 32 * 1024 ** 2 },
      queueSize: 4,
      queueBytes: 2 * 1024 ** 2,
      batchSize: 4,
      intervalMs: 250,
      retry: { initialMs: 1_000, maxMs: 1_000 },
      ledger: { intervalMs: 10_000 },
    });
    expect(config.metrics).toMatchObject({ otlp: true, intervalMs: 10_000, maxNames: 5 });
    expect(config.limits.bodyBytes).toBe(10_000_000);
    expect(config.shutdown).toMatchObject({ delayMs: 5_000, graceMs: 0, flushMs: 1_500 });
    expect(config.log).toMatchObject({ level: 'warn', format: 'text', requests: true });
    expect(config.state).toMatchObject({ redis: 'rediss://:secret%2F@redis:6380/2', prefix: 'blue' });
  });

  it('means the same after printing, except for the masked keys', () => {
    const printed = printConfig(parseConfig(text, source));
    expect(printed).toContain('api_key: "***"');
    expect(printed).not.toContain('secret');
    const { replicas, state, ...rest } = parseConfig(printed, {
      path: '/elsewhere/gateway.yaml',
      env: {},
    });
    const original = parseConfig(text, source);
    expect({ ...original, ...rest }).toEqual(original);
    expect(state).toEqual({ redis: 'rediss://***@redis:6380/2', prefix: 'blue' });
    expect(replicas.map(({ name }) => name)).toEqual(['vllm-a', 'any', 'pods']);
  });
});

describe('an environment variable', () => {
  it('can be all or part of a text, number, flag or word', () => {
    const config = parseConfig(
      `replicas: [{ name: "a-\${COUNT}", url: "http://a" }]
export: { queue_size: "\${COUNT}", batch_size: "\${COUNT}" }
limits: { connections: "\${COUNT}" }
log:
  level: \${LEVEL}
`,
      source,
    );
    expect(config.replicas[0]?.name).toBe('a-100');
    expect(config.export.queueSize).toBe(100);
    expect(config.limits.connections).toBe(100);
    expect(config.log.level).toBe('debug');
  });

  it('cannot add YAML', () => {
    const env = { HOST: 'h, engine: nope }' };
    const { replicas } = parseConfig('replicas: [{ name: a, url: "http://a", host: "${HOST}" }]', {
      ...source,
      env,
    });
    expect(replicas[0]?.host).toBe('h, engine: nope }');
  });

  it('is not expanded after two dollar signs, nor in the value of another variable', () => {
    const env = { A: '${B}' };
    const text = 'replicas: [{ name: a, url: "http://a", host: "$${A} ${A}" }]';
    expect(parseConfig(text, { ...source, env }).replicas[0]?.host).toBe('${A} ${B}');
  });
});

describe('a configuration file', () => {
  it('is read from disk, and its relative paths start at its directory', async () => {
    const directory = await temporaryFolder();
    const path = join(directory, 'gateway.yaml');
    await writeFile(path, `\uFEFF${REPLICA}state_dir: here\n`);
    expect((await loadConfig(path, {})).config.stateDir).toBe(join(directory, 'here'));
  });

  it('has a relative state_dir in the first of STATE_DIRECTORY, where systemd or the image set it', () => {
    const stateDir = (text: string, STATE_DIRECTORY: string) =>
      parseConfig(`${REPLICA}${text}`, { path: '/etc/spangate/gateway.yaml', env: { STATE_DIRECTORY } })
        .stateDir;
    expect(stateDir('', '/var/lib/spangate')).toBe('/var/lib/spangate/state');
    expect(stateDir('state_dir: ./here\n', '/var/lib/spangate:/var/lib/other')).toBe(
      '/var/lib/spangate/here',
    );
    expect(stateDir('state_dir: /srv/state\n', '/var/lib/spangate')).toBe('/srv/state');
    for (const unusable of ['', 'spangate']) {
      expect(stateDir('', unusable)).toBe('/etc/spangate/state');
    }
  });

  it('may use anchors and aliases', () => {
    const text =
      'replicas:\n  - &a { name: a, url: "http://a", models: &m [x] }\n  - { name: b, url: "http://b", models: *m }\n';
    expect(parseConfig(text, source).replicas[1]?.models).toEqual(['x']);
  });

  it('may have merge keys, and keys of its own that begin with x-', () => {
    const text = `
x-gpu: &gpu { gpu_model: H100, gpu_count: 8, api_key: "\${KEY}" }
x-big: &big { <<: *gpu, gpu_count: 16, models: [big] }
x-anything: { at: [all] }
replicas:
  - { <<: *gpu, name: a, url: "http://a" }
  - name: b
    gpu_count: 4
    <<: [*big, { host: rack-1, models: [other] }]
    url: http://b
timeouts:
  <<: { connect: 1h30m, idle: 1.5s }
`;
    const { replicas, timeouts } = parseConfig(text, source);
    expect(replicas[0]).toMatchObject({ gpuModel: 'H100', gpuCount: 8, apiKey: 'sk-secret-1' });
    expect(replicas[1]).toMatchObject({ gpuModel: 'H100', gpuCount: 4, host: 'rack-1', models: ['big'] });
    expect(timeouts).toMatchObject({ connectMs: 5_400_000, idleMs: 1_500 });
    expect(printConfig(parseConfig(text, source))).not.toMatch(/x-|<</);
  });

  it('may use one anchor for a thousand replicas', () => {
    const replicas = Array.from(
      { length: 1_024 },
      (_, i) => `- { <<: *d, name: r${i}, url: "http://r${i}" }`,
    );
    const text = `x-d: &d { gpu_model: H100 }\nreplicas:\n${replicas.join('\n')}\n`;
    expect(parseConfig(text, source).replicas.filter(({ gpuModel }) => gpuModel === 'H100')).toHaveLength(
      1_024,
    );
  });

  it('may name the collector by the whole address that a call has', () => {
    const text = `${REPLICA}export: { endpoint: "http://collector:4318/v1/traces" }\n`;
    expect(parseConfig(text, source).export.endpoint).toBe('http://collector:4318');
  });

  it('may listen on all addresses with a port alone', () => {
    const { listen } = parseConfig(`${REPLICA}gateway: { listen: ":8000" }\n`, source).gateway;
    expect(listen).toEqual({ host: '0.0.0.0', port: 8_000 });
  });

  it('may have the line ends of Windows', () => {
    expect(parseConfig(`${REPLICA}log: { level: warn }\n`.replaceAll('\n', '\r\n'), source).log.level).toBe(
      'warn',
    );
  });
});

describe('health', () => {
  const healthOf = (text: string) => parseConfig(REPLICA + text, source).health;

  it('is on when it is there, if only as {}, but for the comparison with peers', () => {
    expect(healthOf('health: {}\n')).toMatchObject({
      passive: true,
      active: true,
      path: 'auto',
      peers: null,
      frozenAfterMs: 'auto',
    });
  });

  it.each(['off', 'false', '"off"', '"${OFF}"'])(
    'has frozen_after: %s for no judgement by silence',
    (word) => {
      const text = `${REPLICA}health: { frozen_after: ${word} }\n`;
      const { health, ...rest } = parseConfig(text, { ...source, env: { OFF: 'off' } });
      expect(health).toMatchObject({ passive: true, active: true, frozenAfterMs: null });
      const printed = printConfig({ ...rest, health });
      expect(printed).toContain('frozen_after: off\n');
      expect(parseConfig(printed, source).health).toEqual(health);
    },
  );

  it.each(['true', '0s', 'never', '25h'])('refuses frozen_after: %s', (word) => {
    expect(() => healthOf(`health: { frozen_after: ${word} }\n`)).toThrow(
      'expected auto, off, or a duration from 100ms to 24h',
    );
  });

  it('has frozen_after: auto and durations, which mean the same after printing', () => {
    for (const [text, expected] of [
      ['auto', 'auto'],
      ['45s', 45_000],
    ] as const) {
      const config = parseConfig(`${REPLICA}health: { frozen_after: ${text} }\n`, source);
      expect(config.health.frozenAfterMs).toBe(expected);
      expect(printConfig(config)).toContain(`frozen_after: ${text}\n`);
    }
  });

  it('means the same after printing where it is off', () => {
    const printed = printConfig(parseConfig(REPLICA, source));
    expect(parseConfig(printed, source).health).toEqual(healthOf(''));
  });
});

describe('the readiness gate of the pods of a Service', () => {
  const gateOf = (value: string) => {
    const text = `replicas: [{ name: a, kubernetes: { service: a, readiness_gate: ${value} } }]\n`;
    const printed = printConfig(parseConfig(text, source));
    const gates = [text, printed].map(
      (each) => parseConfig(each, source).replicas[0]?.kubernetes?.readinessGate,
    );
    expect(gates[1]).toBe(gates[0]);
    return gates[0];
  };

  it.each([
    ['false', null],
    ['true', 'spangate.dev/answers'],
    ['"true"', 'spangate.dev/answers'],
    ['example.com/Serves_models.2', 'example.com/Serves_models.2'],
    ['a/b', 'a/b'],
  ])('of %s is %s, also after printing', (value, gate) => {
    expect(gateOf(value)).toBe(gate);
  });

  it.each([
    'Ready',
    'ContainersReady',
    'yes',
    '""',
    '/a',
    'a/',
    'a/b/c',
    'Example.com/a',
    'example..com/a',
    'example.com/-a',
    `example.com/${'a'.repeat(64)}`,
    `${'a.'.repeat(127)}/a`,
    '"a/b\\n"',
    '1',
  ])('cannot be %s: Kubernetes has conditions of its own, and a form for those of others', (value) => {
    expect(() => gateOf(value)).toThrow(
      /readiness_gate: found .*expected true, false, or the type of a condition/,
    );
  });
});

describe('the price of GPUs', () => {
  const pricesOf = (top: string, ...replicas: string[]) => {
    const lines = replicas.map(
      (keys, index) => `  - { name: r${index}, url: "http://r${index}", ${keys} }\n`,
    );
    return parseConfig(`${top}replicas:\n${lines.join('')}`, source).replicas.map(
      ({ gpuHourPrice }) => gpuHourPrice,
    );
  };

  it('is that of the replica, else that of its model, else unknown', () => {
    const top = `gpu_hour_price: { H100: 2.49, L40S: "\${PRICE}" }\n`;
    const keys = [
      'gpu_model: H100',
      'gpu_model: H100, gpu_hour_price: 0',
      'gpu_model: L40S',
      'gpu_model: A100',
    ];
    expect(pricesOf(top, ...keys, 'gpu_model: constructor', 'gpu_count: 1')).toEqual([
      ...[2.49, 0, 0.99, null],
      ...[null, null],
    ]);
    expect(pricesOf('', 'gpu_hour_price: 1.5')).toEqual([1.5]);
  });

  it.each([
    ['gpu_hour_price: { H100: -1 }\n', 'gpu_hour_price.H100'],
    ['gpu_hour_price: { H100: .inf }\n', 'gpu_hour_price.H100'],
    ['gpu_hour_price: { H100: "1e3" }\n', 'gpu_hour_price.H100'],
    ['gpu_hour_price: 2.49\n', 'gpu_hour_price'],
    ['gpu_hour_price: { __proto__: 2.49 }\n', 'gpu_hour_price.__proto__'],
    ['currency: euro\n', 'currency'],
  ])('is refused: %s', (top, keyPath) => {
    expect(() => pricesOf(top, 'gpu_count: 1')).toThrow(`${keyPath}: `);
  });
});
