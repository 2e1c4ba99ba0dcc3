import { expect, test } from 'vitest';
import { parseConfig } from '#config';
import { toMetricsSettings } from '../../../src/gateway/serving/settings.ts';

const configOf = (text: string) =>
  parseConfig(`replicas: [{ name: a, url: "http://a" }]\n${text}\n`, { path: 'gateway.yaml', env: {} });

test('metrics are pushed by default only if records are exported by OTLP', () => {
  const texts = ['', 'export: { to: file }', 'export: { to: file }\nmetrics: { otlp: true }'];
  const pushed = texts.map((text) => toMetricsSettings(configOf(text)).push !== undefined);
  expect(pushed).toEqual([true, false, true]);
});
