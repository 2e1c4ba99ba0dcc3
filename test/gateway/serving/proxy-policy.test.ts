import { expect, test } from 'vitest';
import { parseConfig } from '#config';
import { toProxyPolicy } from '../../../src/gateway/serving/proxy-policy.ts';

const configOf = (text: string) =>
  parseConfig(`replicas: [{ name: a, url: "http://a" }]\n${text}\n`, { path: 'gateway.yaml', env: {} });

test('headers are recorded whatever the case of their names in the configuration', () => {
  const config = configOf('headers: { tenant: X-Team, feature: x-App }');
  const { settings } = toProxyPolicy(config, { apiClients: null, tenantLimits: null }, 'via');
  expect(settings.recordedFields).toMatchObject({
    tenant: 'x-team',
    feature: 'x-app',
    conversation: 'x-session-id',
  });
});
