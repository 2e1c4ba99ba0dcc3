import { describe, expect, test } from 'vitest';
import { passedPath } from '../../../src/config/schema/passed-path.ts';
import { validate } from '../../../src/config/validation/validate.ts';

const replicas = [{ name: 'a', url: 'http://10.0.0.1:8000' }];

/** What is wrong with the keys; empty if nothing is. */
function explain(keys: object): readonly unknown[] {
  const result = validate({ replicas, ...keys });
  return 'violations' in result ? result.violations : [];
}

describe('an entry of pass', () => {
  test.each([
    'GET /version',
    'HEAD /version',
    'POST /v1/images/generations',
    'DELETE /v1/files/*',
    'PATCH /a/b/c/*',
    'GET /...',
    'POST /v1/rerank',
    'POST /v1/chat/completions-of-others',
    'GET /v1/chat/completions',
    'POST /v1/models',
    'GET /administration',
    `GET /${'x'.repeat(1000)}`,
  ])('may be %s, and is printed as it was', (text) => {
    expect(explain({ pass: [text] })).toEqual([]);
    const codec = passedPath();
    expect(codec.encode(codec.decode(text))).toBe(text);
  });

  test.each([
    '/version',
    'GET version',
    'get /version',
    'GET  /version',
    'GET /version ',
    'GET /version\n',
    'CONNECT /version',
    'TRACE /version',
    'GET /',
    'GET /*',
    'GET /v1/*',
    'GET *',
    'GET /v1/files*',
    'GET /v1/*/files',
    'GET /v1/files/**',
    'GET /v1/files/*/*',
    'GET /v1/files/',
    'GET //v1/files',
    'GET /v1//files',
    'GET /v1/../files',
    'GET /./v1/files/*',
    'GET /v1/%2e%2e/files',
    'GET /v1/files?x=1',
    'GET /v1/files#x',
    'GET /v1/files;x',
    'GET /v1\\files',
    'GET http://host/version',
    `GET /${'x'.repeat(1020)}`,
    '',
    7,
    null,
    { method: 'GET' },
  ])('is refused with its place: %j', (entry) => {
    expect(explain({ pass: ['GET /version', entry] })).toEqual([
      { path: ['pass', 1], expected: expect.stringMatching(/^a method and a path/) },
    ]);
  });

  test.each<[string, string, object]>([
    ['GET /healthz', 'the gateway answers it itself', {}],
    ['GET /v1/models', 'the gateway answers it itself', {}],
    ['GET /v1/models/*', 'the gateway answers it itself', { models_listing: 'union' }],
    ['POST /v1/completions', 'POST /v1/completions is recorded', {}],
    ['POST /v1/chat/*', 'POST /v1/chat/completions is recorded', {}],
    ['POST /v1/rerank', 'POST /v1/rerank is recorded', { endpoints: ['rerank'] }],
    ['POST /v1/messages/*', 'POST /v1/messages/count_tokens is recorded', { endpoints: ['messages'] }],
    ['POST /admin/reload', 'it is a path of the admin API', {}],
    ['GET /admin', 'it is a path of the admin API', {}],
    ['GET /admin/replicas/*', 'it is a path of the admin API', {}],
    ['GET /version', 'pass[0] is the same', {}],
  ])('%s is refused if it is not free: %s', (entry, message, keys) => {
    expect(explain({ pass: ['GET /version', entry], ...keys })).toEqual([{ path: ['pass', 1], message }]);
  });

  test('is checked although other keys are wrong', () => {
    expect(explain({ pass: ['GET /healthz'], endpoints: ['x'], models_listing: 5 })).toHaveLength(3);
    expect(explain({ pass: 'GET /version' })).toEqual([
      { path: ['pass'], expected: 'a list of methods and paths, such as GET /version' },
    ]);
  });
});
