import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { makeKey, startIssuer } from '#testkit/servers/fake-issuer.ts';
import { JwksSource } from '../../../src/access/jwt/jwks-source.ts';

const silent = { info: () => undefined, warn: () => undefined, error: () => undefined };

test('unknown keys cause one reading in 30 s, whatever its outcome, and those at the same time share it', async () => {
  await using issuer = await startIssuer(await makeKey('k1'));
  let nowMs = 0;
  const source = new JwksSource({ log: silent, nowMs: () => nowMs });
  await source.open(issuer.jwksUrl);
  expect(issuer.requestCount).toBe(1);
  await Promise.all([source.refresh(), source.refresh(), source.refresh()]);
  expect(issuer.requestCount).toBe(2);
  nowMs = 29_999;
  await source.refresh();
  expect(issuer.requestCount).toBe(2);
  nowMs = 30_000;
  issuer.answerWith((response) => response.destroy());
  await source.refresh();
  await source.refresh();
  expect(issuer.requestCount).toBe(3);
  expect(source.current?.keys).toHaveLength(1);
});

test('keys that could not be read for a token are soon asked for again, without a further token', async () => {
  await using issuer = await startIssuer(await makeKey('k1'));
  const source = new JwksSource({ log: silent });
  await source.open(issuer.jwksUrl);
  const used = Promise.withResolvers<unknown>();
  source.start(async ({ keys }) => used.resolve(keys));
  issuer.answerWith((response) => response.destroy());
  await source.refresh();
  expect(source.problem).not.toBeNull();
  issuer.publish(await makeKey('k2'));
  expect(await used.promise).toMatchObject([{ kid: 'k2' }]);
  expect(source.problem).toBeNull();
  source.stop();
});

test('keys that a reload has replaced while they were read are not used', async () => {
  await using slow = await startIssuer(await makeKey('k1'));
  await using other = await startIssuer(await makeKey('k2'));
  const used: string[] = [];
  const source = new JwksSource({ log: silent });
  await source.open(slow.jwksUrl);
  source.start(async (keys) => void used.push(keys.source));
  const next = await makeKey('k3');
  const asked = Promise.withResolvers<void>();
  slow.answerWith((response) => {
    void asked.promise.then(() => response.end(JSON.stringify({ keys: [next.jwk] })));
  });
  const refreshing = source.refresh();
  await slow.untilRequests(2);
  await source.adopt(await source.prepare(other.jwksUrl));
  asked.resolve();
  await refreshing;
  source.stop();
  expect(used).toEqual([other.jwksUrl]);
  expect(source.current).toMatchObject({ source: other.jwksUrl, keys: [{ kid: 'k2' }] });
});

test('a reload that leaves the source keeps the keys that were read while it was prepared', async () => {
  await using issuer = await startIssuer(await makeKey('withdrawn'));
  const used: unknown[] = [];
  const source = new JwksSource({ log: silent });
  await source.open(issuer.jwksUrl);
  source.start(async ({ keys }) => void used.push(keys));
  const prepared = await source.prepare(issuer.jwksUrl);
  issuer.publish(await makeKey('new'));
  await source.refresh();
  const changedFiles = new Set<string>();
  await source.adopt(prepared, changedFiles);
  source.stop();
  expect(source.current?.keys).toMatchObject([{ kid: 'new' }]);
  expect(used).toMatchObject([[{ kid: 'new' }]]);
  expect(changedFiles.size).toBe(0);
});

test('a reload has the keys of the same server read again, and goes on if it fails', async () => {
  await using issuer = await startIssuer(await makeKey('withdrawn'));
  const used: unknown[] = [];
  const source = new JwksSource({ log: silent });
  await source.open(issuer.jwksUrl);
  source.start(async ({ keys }) => void used.push(keys));
  issuer.publish(await makeKey('new'));
  await source.adopt(await source.prepare(issuer.jwksUrl));
  expect(used).toMatchObject([[{ kid: 'new' }]]);
  issuer.answerWith((response) => response.destroy());
  await source.adopt(await source.prepare(issuer.jwksUrl));
  source.stop();
  expect(source.current?.keys).toMatchObject([{ kid: 'new' }]);
  expect(source.problem).toMatchObject({ hasKeys: true });
});

test('a reading of the former source that fails is no problem of the present one', async () => {
  await using slow = await startIssuer(await makeKey('k1'));
  await using other = await startIssuer(await makeKey('k2'));
  const source = new JwksSource({ log: silent });
  await source.open(slow.jwksUrl);
  const asked = Promise.withResolvers<void>();
  slow.answerWith((response) => void asked.promise.then(() => response.destroy()));
  const refreshing = source.refresh();
  await slow.untilRequests(2);
  await source.adopt(await source.prepare(other.jwksUrl));
  asked.resolve();
  await refreshing;
  expect(source.problem).toBeNull();
});

test('a reload that can read the file again ends the problem, also if its keys are the former ones', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-jwks-'));
  const path = join(folder.path, 'jwks.json');
  const text = JSON.stringify({ keys: [(await makeKey('k1')).jwk] });
  await writeFile(path, text);
  const source = new JwksSource({ log: silent });
  await source.open(path);
  await writeFile(path, '{');
  await source.refresh();
  expect(source.problem).toMatchObject({ source: path, hasKeys: true });
  await writeFile(path, text);
  await source.adopt(await source.prepare(path));
  expect(source.problem).toBeNull();
});

test('a source without https is a warning, at the start and when a reload names it', async () => {
  await using first = await startIssuer(await makeKey('k1'));
  await using other = await startIssuer(await makeKey('k2'));
  const warnings: unknown[] = [];
  const log = { ...silent, warn: (fields: object) => warnings.push(fields) };
  const source = new JwksSource({ log });
  await source.open(first.jwksUrl);
  await source.adopt(await source.prepare(first.jwksUrl));
  expect(warnings).toEqual([{ source: first.jwksUrl }]);
  await source.adopt(await source.prepare(other.jwksUrl));
  await source.adopt(await source.prepare(null));
  await source.adopt(await source.prepare(other.jwksUrl));
  expect(warnings.slice(1)).toEqual([{ source: other.jwksUrl }, { source: other.jwksUrl }]);
});

test('the query of a source, which may hold a secret, is in no log line and no error', async () => {
  await using issuer = await startIssuer(await makeKey('k1'));
  const secret = `${issuer.jwksUrl}?code=canaryqzxwvkjp`;
  const logged: object[] = [];
  const note = (fields: object, message: string) => void logged.push({ ...fields, message });
  const log = { info: note, warn: note, error: note };
  let nowMs = 0;
  const source = new JwksSource({ log, nowMs: () => nowMs });
  await source.open(secret);
  nowMs = 30_000;
  issuer.answerWith((response) => response.writeHead(403).end());
  await source.refresh();
  expect(source.problem).toEqual({ source: issuer.jwksUrl, text: 'status 403', hasKeys: true });
  await expect(source.prepare(`${issuer.issuer}/else?code=canaryqzxwvkjp`)).rejects.toThrow(
    new RegExp(`^jwt\\.jwks: cannot use ${issuer.issuer}/else \\(status 403\\)$`),
  );
  issuer.publish(await makeKey('k2'));
  await source.adopt(await source.prepare(`${secret}2`));
  expect(logged.map((line) => 'source' in line && line.source)).toEqual(Array(3).fill(issuer.jwksUrl));
  expect(JSON.stringify(logged)).not.toContain('canary');
});
