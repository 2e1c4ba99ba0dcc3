import { expect, test } from 'vitest';
import { parseConfig } from '#config';
import { toMetricsSettings, toProxyPolicy } from '../../../src/gateway/serving/settings.ts';

const configOf = (text: string) =>
  parseConfig(`replicas: [{ name: a, url: "http://a" }]\n${text}\n`, { path: 'gateway.yaml', env: {} });

test('metrics are pushed by default only if records are exported by OTLP', () => {
  const texts = ['', 'export: { to: file }', 'export: { to: file }\nmetrics: { otlp: true }'];
  const pushed = texts.map((text) => toMetricsSettings(configOf(text)).push !== undefined);
  expect(pushed).toEqual([true, false, true]);
});

test('headers are recorded whatever the case of their names in the configuration', () => {
  const config = configOf('headers: { tenant: X-Team, feature: x-App }');
  const { settings } = toProxyPolicy(config, { apiClients: null, tenantLimits: null }, 'via');
  expect(settings.recordedFields).toMatchObject({
    tenant: 'x-team',
    feature: 'x-app',
    conversation: 'x-session-id',
  });
});
