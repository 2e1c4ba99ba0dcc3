import { expect, test } from 'vitest';
import { PassedPaths } from '#proxy/entry';
import { endpointsByPath } from '../../src/proxy/endpoints/table.ts';
import { describeUnknown } from '../../src/proxy/unknown-path.ts';

const SERVED = {
  endpoints: endpointsByPath(['rerank']),
  passes: new PassedPaths([
    { method: 'POST', path: '/v1/files' },
    { method: 'GET', path: '/v1/files' },
  ]),
  tellsUsage: true,
};

test.each([
  ['GET', '/v1/chat/completions', 'POST'],
  ['PUT', '/v1/models', 'GET'],
  ['POST', '/healthz', 'GET'],
  ['POST', '/v1/usage', 'GET'],
  ['DELETE', '/v1/files', 'GET, POST'],
])('%s %s has the wrong method, and %s is named', (method, path, allow) => {
  expect(describeUnknown(method, path, SERVED)).toEqual({
    message: `\`${path}\` does not take \`${method}\`, but ${allow}.`,
    allow,
  });
});

test.each([
  ['/chat/completions', 'POST /v1/chat/completions'],
  ['/v1/v1/chat/completions', 'POST /v1/chat/completions'],
  ['/v1/chat/completions/', 'POST /v1/chat/completions'],
  ['//v1//Chat/Completions', 'POST /v1/chat/completions'],
  ['/completions', 'POST /v1/completions'],
  ['/models', 'GET /v1/models'],
  ['/healthz/', 'GET /healthz'],
  ['/usage', 'GET /v1/usage'],
  ['/openai/v1/embeddings', 'POST /v1/embeddings'],
])('%s is near to %s', (path, near) => {
  expect(describeUnknown('POST', path, SERVED)).toEqual({
    message: `There is no path \`${path}\` on this gateway. Did you mean ${near}?`,
    allow: null,
  });
});

test('a path that could be switched on is told from one that is unknown', () => {
  const { message } = describeUnknown('POST', '/v1/responses', SERVED);
  expect(message).toBe('`/v1/responses` is not switched on at this gateway.');
  expect(describeUnknown('GET', '/v1/usage', { ...SERVED, tellsUsage: false })).toEqual({
    message: '`/v1/usage` is not switched on at this gateway.',
    allow: null,
  });
  expect(describeUnknown('GET', '/x', SERVED).message).toBe('There is no path `/x` on this gateway.');
});

test('what is repeated of a request is one short line of printable characters', () => {
  const { message } = describeUnknown('GET', `/\u001b[31m\u202e\n${'x'.repeat(10_000)}`, SERVED);
  expect(message).toMatch(/^There is no path `\/�\[31m��x{119,121}…` on this gateway\.$/);
});
