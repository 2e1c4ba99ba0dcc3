import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { startChild } from '#testkit/programs/child.ts';
import { closeServer, listen } from '#testkit/servers/local-server.ts';

const RECIPES = join(import.meta.dirname, '../../deploy/recipes');

/** An admin API that gives these verdicts, in turn, and keeps what it was asked. */
async function startAdmin(answers: readonly { readonly status?: number; readonly body: object }[]) {
  const asked: { readonly url: string; readonly token: string }[] = [];
  const server = createServer((request, response) => {
    const { status = 200, body } = answers[asked.length] ?? { body: {} };
    asked.push({ url: request.url ?? '', token: request.headers.authorization ?? '' });
    response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
  });
  const port = await listen(server);
  onTestFinished(() => closeServer(server));
  return { url: `http://127.0.0.1:${port}`, asked };
}

async function startWebhook(admin: string) {
  const child = startChild(
    {
      file: process.execPath,
      args: [join(RECIPES, 'flagger-webhook.mjs')],
      env: { GATEWAY_ADMIN: admin, SVC_READ_TOKEN: 'read', LISTEN: '127.0.0.1', PORT: '0' },
    },
    { stdout: 'lines' },
  );
  onTestFinished(() => child[Symbol.asyncDispose]());
  return JSON.parse(await child.nextLine()).listen as string;
}

const ask = async (url: string, path: string, metadata: object = { candidate: 'a', baseline: 'b' }) => {
  const response = await fetch(url + path, { method: 'POST', body: JSON.stringify({ name: 'x', metadata }) });
  return [response.status, await response.text()];
};

test("Flagger's webhooks get 200 for the verdict that they are about, and 409 for any other answer", async () => {
  const verdict = (word: string) => ({ body: { verdict: word, sentence: `it is ${word}` } });
  const refusal = { status: 404, body: { error: { code: 'selector_matches_nothing', message: 'no pod' } } };
  const admin = await startAdmin([
    ...[verdict('good'), verdict('undecided'), verdict('bad'), verdict('good'), verdict('bad'), refusal],
  ]);
  const webhook = await startWebhook(admin.url);
  expect(await ask(webhook, '/good')).toEqual([200, 'good: it is good']);
  expect(await ask(webhook, '/good')).toEqual([409, 'undecided: it is undecided']);
  expect(await ask(webhook, '/good')).toEqual([409, 'bad: it is bad']);
  expect(await ask(webhook, '/bad')).toEqual([409, 'good: it is good']);
  expect(await ask(webhook, '/bad')).toEqual([200, 'bad: it is bad']);
  expect(await ask(webhook, '/bad')).toEqual([409, '404 no pod']);
  expect(admin.asked[0]).toEqual({ url: '/admin/verdict?candidate=a&baseline=b', token: 'Bearer read' });
});

test("Flagger's webhooks are refused without asking the gateway if they make no sense", async () => {
  const admin = await startAdmin([]);
  const webhook = await startWebhook(admin.url);
  expect((await ask(webhook, '/else'))[0]).toBe(404);
  const response = await fetch(`${webhook}/good`, { method: 'POST', body: 'x'.repeat(100_000) });
  expect(response.status).toBe(400);
  expect((await fetch(`${webhook}/good`, { method: 'POST', body: 'null' })).status).toBe(400);
  expect(admin.asked).toEqual([]);
});

test("Argo's analysis compares the new pods with the stable ones, and never promotes without a good verdict", async () => {
  const text = await readFile(join(RECIPES, 'argo-rollouts.yaml'), 'utf8');
  const [template, rollout] = parseAllDocuments(text).map((document) => document.toJS());
  const [metric] = template.spec.metrics;
  const { pathname, searchParams } = new URL(metric.provider.web.url);
  expect(pathname).toBe('/admin/verdict');
  expect(Object.fromEntries(searchParams)).toEqual({
    candidate: 'pod.label/rollouts-pod-template-hash={{args.canary-hash}}',
    baseline: 'pod.label/rollouts-pod-template-hash={{args.stable-hash}}',
  });
  expect(metric).toMatchObject({ consecutiveSuccessLimit: 1, failureLimit: 0 });
  expect(metric.inconclusiveLimit).toBeGreaterThanOrEqual(metric.count);
  const [, { analysis }] = rollout.spec.strategy.canary.steps;
  expect(analysis.templates).toEqual([{ templateName: template.metadata.name }]);
});
