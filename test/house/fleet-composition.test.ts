// biome-ignore-all lint/suspicious/noTemplateCurlyInString: $${NAME} is how a composition writes ${NAME}.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '#config';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const { services, configs, volumes } = parse(read('docker-compose.yml'));
const FLEET = ['gateway-1', 'gateway-2'];

const configOf = (name: string) =>
  parseConfig(configs['fleet.yaml'].content.replaceAll('$${', '${'), {
    path: 'fleet.yaml',
    env: services[name].environment,
  });

test("the composition's fleet has two gateways that share one store, and have a state of their own", () => {
  const gateways = FLEET.map(configOf);
  expect(gateways.map(({ gateway }) => gateway.name)).toEqual(FLEET);
  for (const { state, replicas, export: exporting } of gateways) {
    const urls = [state.redis, exporting.endpoint, ...replicas.map(({ url }) => url)];
    expect(Object.keys(services)).toEqual(
      expect.arrayContaining(urls.map((url) => new URL(url ?? '').hostname)),
    );
  }
  const mounted = FLEET.map((name) => services[name].volumes[0].split(':')[0]);
  expect(new Set(mounted).size).toBe(2);
  expect(Object.keys(volumes)).toEqual(expect.arrayContaining(mounted));
});

test('the balancer of the composition finds both, and is out of the way before they stop', () => {
  const { environment } = services.balancer;
  const balanced = [environment.GATEWAY_1, environment.GATEWAY_2].map(
    (address: string) => address.split(':')[0],
  );
  expect(balanced).toEqual(FLEET);
  for (const name of FLEET) {
    const { shutdown } = configOf(name);
    expect(shutdown.delayMs).toBeGreaterThanOrEqual(5_000);
    const stopGraceMs = Number.parseInt(services[name].stop_grace_period, 10) * 1_000;
    expect(stopGraceMs).toBeGreaterThan(shutdown.delayMs + shutdown.graceMs + shutdown.flushMs);
  }
});

test('nothing of the fleet starts without its profile', () => {
  const withProfile = Object.keys(services).filter((name) => services[name].profiles?.includes('fleet'));
  expect(withProfile.toSorted()).toEqual(['balancer', 'gateway-1', 'gateway-2', 'valkey']);
});
