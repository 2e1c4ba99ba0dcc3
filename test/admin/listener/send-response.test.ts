import { createServer } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { closeServer, listen } from '#testkit/servers/local-server.ts';
import { sendResponse } from '../../../src/admin/listener/send-response.ts';
import type { ResponseBody } from '../../../src/admin/route.ts';

const HEADERS = { 'Content-Type': 'text/plain' };

/** A server whose responses all have this body. `sent` settles with the first one. */
async function startServer(body: ResponseBody) {
  const sent = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    sendResponse(response, { status: 200, headers: HEADERS, body }).then(sent.resolve, sent.reject);
  });
  const port = await listen(server);
  onTestFinished(() => closeServer(server));
  return { url: `http://127.0.0.1:${port}`, sent: sent.promise };
}

test('pieces are sent as they come', async () => {
  const next = Promise.withResolvers<void>();
  async function* pieces() {
    yield 'one';
    await next.promise;
    yield Buffer.from('two');
  }
  const { url, sent } = await startServer(pieces());
  const response = await fetch(url);
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();

  expect((await reader?.read())?.value).toBe('one');
  next.resolve();
  expect((await reader?.read())?.value).toBe('two');
  expect((await reader?.read())?.done).toBe(true);
  await sent;
});

test('a client that disconnects ends the pieces, and is not an error', async () => {
  const ended = Promise.withResolvers<void>();
  async function* pieces() {
    try {
      for (;;) yield 'x'.repeat(65_536);
    } finally {
      ended.resolve();
    }
  }
  const { url, sent } = await startServer(pieces());
  const leave = new AbortController();
  const response = await fetch(url, { signal: leave.signal });
  expect(response.status).toBe(200);
  leave.abort();
  await ended.promise;
  await sent;
});

test('pieces that fail leave the response visibly incomplete', async () => {
  async function* pieces() {
    yield 'one';
    throw new Error('no more');
  }
  const { url, sent } = await startServer(pieces());
  const failed = expect(sent).rejects.toThrow('no more');
  await expect(fetch(url).then((response) => response.text())).rejects.toThrow();
  await failed;
});

test('HEAD reads no piece', async () => {
  let isAsked = false;
  async function* pieces() {
    isAsked = true;
    yield 'one';
  }
  const { url, sent } = await startServer(pieces());
  const response = await fetch(url, { method: 'HEAD' });
  expect(response.headers.get('content-type')).toBe('text/plain');
  await sent;
  expect(isAsked).toBe(false);
});
