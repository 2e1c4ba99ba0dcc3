import { describe, expect, it } from 'vitest';
import { parseConfig } from '../../src/config/load.ts';
import { planReload } from '../../src/config/reload-plan.ts';

const REPLICA = 'replicas: [{ name: a, url: "http://a:8000", api_key: sk-secret }]\n';

const parse = (text: string) => parseConfig(text, { path: '/etc/spangate/gateway.yaml', env: {} });

function plan(before: string, after: string) {
  return planReload(parse(REPLICA + before), parse(REPLICA + after));
}

describe('a reload', () => {
  it('of the same file changes nothing', () => {
    const text = 'export: { endpoint: "http://c:4318" }\nlog: { level: debug }\n';
    const { config, changed, needsRestart } = plan(text, text);
    expect({ changed, needsRestart }).toEqual({ changed: [], needsRestart: [] });
    expect(config).toEqual(parse(REPLICA + text));
  });

  it('applies what can change between two requests, and names those keys', () => {
    const text = `headers: { tenant: X-Team }
discovery: { dns_interval: 1s }
timeouts: { connect: 1s, idle: 1m }
limits: { body: 1MiB, event: 64KiB }
shutdown: { grace: 1m }
log: { level: debug, requests: true }
`;
    const { config, changed, needsRestart } = plan('', text);
    expect(changed).toEqual([
      'headers.tenant',
      'discovery.dns_interval',
      'timeouts.connect',
      'timeouts.idle',
      'limits.body',
      'limits.event',
      'shutdown.grace',
      'log.level',
      'log.requests',
    ]);
    expect(needsRestart).toEqual([]);
    expect(config).toEqual(parse(REPLICA + text));
  });

  it('names the keys that need a restart, and keeps their values', () => {
    const text = `gateway: { listen: "127.0.0.1:8081" }
state_dir: elsewhere
export: { endpoint: "http://c:4318", retry: { max: 6s } }
trace: { incoming: ignore }
prefix_hash: { block_chars: 16 }
limits: { headers: 64KiB, connections: 5, event: 2MiB }
`;
    const { config, changed, needsRestart } = plan('', text);
    expect(changed).toEqual(['limits.event']);
    expect(needsRestart).toEqual([
      'gateway.listen',
      'state_dir',
      'export.endpoint',
      'export.retry.max',
      'trace.incoming',
      'prefix_hash.block_chars',
      'limits.headers',
      'limits.connections',
    ]);
    expect(config).toEqual(parse(`${REPLICA}limits: { event: 2MiB }\n`));
  });

  it('names replicas as one key, whatever changed in them', () => {
    const two = parse('replicas: [{ name: a, url: "http://a:8000" }, { name: b, url: "http://b" }]');
    const { config, changed, needsRestart } = planReload(parse(REPLICA), two);
    expect({ changed, needsRestart }).toEqual({ changed: ['replicas'], needsRestart: [] });
    expect(config.replicas.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  it('leaves prices as they are where the currency needs a restart: costs would have the name of the former one', () => {
    const [a, b, c] = Object.entries({ a: 'H', b: 'H', c: '__proto__' }).map(
      ([name, model]) => `{ name: ${name}, url: "http://${name}:8000", gpu_model: ${model} }`,
    );
    const before = parse(`replicas: [${a}]\ngpu_hour_price: { H: 2 }\ncurrency: EUR`);
    const after = `replicas: [${a}, ${b}, ${c}]\ngpu_hour_price: { H: 300 }\n`;
    const { config, changed, needsRestart } = planReload(before, parse(`${after}currency: JPY`));
    expect({ changed, needsRestart }).toEqual({ changed: ['replicas'], needsRestart: ['currency'] });
    expect(config.replicas.map(({ gpuHourPrice }) => gpuHourPrice)).toEqual([2, 2, null]);
    expect(planReload(before, parse(`${after}currency: EUR`)).config.replicas[1]?.gpuHourPrice).toBe(300);
  });

  it('names each alias as a key, and a section that only one of the files has as one', () => {
    const both = plan(
      'aliases: { a: m, b: m }\n',
      'aliases: { b: n, c: m }\nhealth: { passive: false, active: false, frozen_after: off, peers: {} }\n',
    );
    expect(both.changed).toEqual(['aliases.a', 'aliases.b', 'aliases.c', 'health.peers']);
    expect(both.config.aliases).toEqual({ b: 'n', c: 'm' });
  });

  it('removes a key that the file no longer sets', () => {
    const before = parse(
      'replicas: [{ name: a, url: "http://a:8000", api_key: sk-secret }]\nlog: { level: warn }',
    );
    const { config, changed } = planReload(before, parse('replicas: [{ name: a, url: "http://a:8000" }]'));
    expect(changed).toEqual(['replicas', 'log.level']);
    expect(config.replicas[0]?.apiKey).toBeNull();
    expect(config.log.level).toBe('info');
  });
});

describe('state.redis', () => {
  const redis = (url: string) => `state: { redis: "${url}" }\n`;

  it.each([
    ['redis://gateway:old@redis:6379/1', 'redis://gateway:new@redis:6379/1'],
    ['redis://redis:6379', 'redis://gateway:new@redis:6379'],
  ])('applies with another user or password: %s', (before, after) => {
    expect(plan(redis(before), redis(after))).toMatchObject({ changed: ['state.redis'], needsRestart: [] });
  });

  it.each([
    [redis('redis://:p@redis:6379'), redis('redis://:p@other:6379')],
    [redis('redis://:p@redis:6379'), redis('rediss://:p@redis:6379')],
    [redis('redis://:p@redis:6379/1'), redis('redis://:p@redis:6379/2')],
    [redis('redis://:p@redis:6379'), ''],
    ['', redis('redis://:p@redis:6379')],
  ])('needs a restart for anything else: %s', (before, after) => {
    expect(plan(before, after)).toMatchObject({ changed: [], needsRestart: ['state.redis'] });
  });
});
