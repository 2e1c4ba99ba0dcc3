import { hash } from 'node:crypto';
import { expect, test } from 'vitest';
import { Fields } from '#wire/message';
import { ApiClients } from '../../../src/proxy/entry/api-clients.ts';

const withKey = (key: string) => {
  const fields = new Fields();
  fields.add('x-api-key', 'x-api-key', key);
  return fields;
};

test('each of a hundred thousand clients is found by its own key, and nobody by another', () => {
  const clients = new ApiClients(
    Array.from({ length: 100_000 }, (_, index) => ({
      name: `client-${index}`,
      tenant: 't',
      feature: null,
      models: null,
      expiresAtMs: null,
      limits: null,
      keySha256: [hash('sha256', `key-${index}`)],
    })),
    null,
  );
  expect(clients.identify(withKey('key-0'))).toMatchObject({ name: 'client-0' });
  expect(clients.identify(withKey('key-99999'))).toMatchObject({ name: 'client-99999' });
  expect(clients.identify(withKey('key-100000'))).toBe('invalid_api_key');
});
