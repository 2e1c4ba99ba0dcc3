import { expect, type TestContext, test } from 'vitest';
import { pollFast, signIn } from '#testkit/dashboard/page.ts';
import { findBarriers, useBrowser } from '#testkit/processes/browser.ts';
import { replicaFacts, rolloutFacts } from '#testkit/rollout-facts.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const openTab = useBrowser();
const READ_TOKEN = 'read-token-0123456789abcdef';
/** Names of people and machines, and what commands say, come from elsewhere. */
const HOSTILE = '<img src=x onerror=alert(1)> \u202Eevil';

/** A gateway whose rollouts are told by `tell`, and the page in front of it. */
async function setUp(context: TestContext, token = ADMIN_TOKEN, options: Parameters<typeof openTab>[1] = {}) {
  const gateway = await startGateway({
    replicas: [{ name: 'a', url: 'http://127.0.0.1:1' }],
    readToken: READ_TOKEN,
  });
  context.onTestFinished(() => gateway[Symbol.asyncDispose]());
  const tab = await openTab(context, options);
  context.onTestFinished(() => tab[Symbol.asyncDispose]());
  await pollFast(tab.page, gateway.adminUrl);
  await signIn(tab.page, `${gateway.adminUrl}/`, token);
  await tab.page.getByRole('heading', { name: 'Traffic' }).waitFor();
  return { gateway, page: tab.page, complaints: tab.complaints, tell: createTeller(gateway) };
}

function createTeller(gateway: StartedGateway) {
  return async (facts: ReturnType<typeof rolloutFacts>) => {
    const body = JSON.stringify(facts);
    const answer = await gateway.admin(`/admin/rollouts/${facts.id}/report`, { method: 'POST', body });
    expect(answer.status).toBe(200);
    return (await answer.json()) as { readonly ask: { readonly kind: string } };
  };
}

const step = (name: string, outcome = 'ok') => ({
  step: name,
  started_at: '2026-01-01T00:00:00Z',
  duration_ms: 1_500,
  outcome,
});

test('a running rollout is on top with its steps, figures and verdicts, and the earlier ones below', async (context) => {
  const { page, tell, complaints } = await setUp(context);
  expect(await page.locator('#rollouts-section').isVisible()).toBe(false);
  await tell(rolloutFacts({ id: '0000000b', state: 'done', sentence: '2 of 2 replicas done' }));
  await tell(
    rolloutFacts({
      started_at: '2026-01-02T00:00:00Z',
      replicas: [
        replicaFacts('a', {
          phase: 'done',
          stage: 'done',
          verdict: 'good',
          text: 'is as good as its peers',
          figures: { requests: 733, gaps_ratio: 0.98, error_share: 0 },
          steps: [step('rollout_drain'), step('restart'), step('compare', 'good')],
        }),
        replicaFacts('b', {
          phase: 'restarting',
          stage: 'draining',
          text: HOSTILE,
          steps: [step('rollout_drain')],
        }),
      ],
    }),
  );
  const card = page.locator('.rollout');
  await card.getByRole('heading', { name: 'Rollout 0000000a: 0 of 2 replicas done' }).waitFor();
  expect(await card.locator('tbody tr').allInnerTexts()).toEqual([
    expect.stringMatching(
      /^a\s+done\s+drain 1.5 s\s*restart 1.5 s\s*compare 1.5 s\s+good\s+is as good as its peers \(733 requests, gaps ×0.98, 0.0 % errors\)/,
    ),
    expect.stringMatching(/^b\s+restarts\s+drain 1.5 s\s+–\s+<img src=x onerror=alert\(1\)>/),
  ]);
  await page.getByText('1 earlier rollout').click();
  await page.locator('#rollouts-past-body').getByText('2 of 2 replicas done').waitFor();
  expect(await findBarriers(page)).toEqual([]);
  expect(complaints).toEqual([]);
});

test('an operator pauses it, lets it go on and aborts it, each after a question', async (context) => {
  const { page, tell } = await setUp(context);
  await tell(rolloutFacts());
  const card = page.locator('.rollout');
  const dialog = page.getByRole('dialog');
  await card.getByRole('button', { name: 'Pause' }).click();
  await dialog.getByText('No further replica is begun.').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  expect(await tell(rolloutFacts({ seq: 2 }))).toMatchObject({ ask: { kind: 'go' } });

  await card.getByRole('button', { name: 'Pause' }).click();
  await dialog.getByRole('button', { name: 'Pause' }).click();
  await card.getByText('Running, pausing').waitFor();
  expect(await tell(rolloutFacts({ seq: 3, state: 'paused' }))).toMatchObject({ ask: { kind: 'pause' } });
  await card.getByText('Paused', { exact: true }).waitFor();
  await card.getByRole('button', { name: 'Go on' }).click();
  await dialog.getByRole('button', { name: 'Go on' }).click();
  await card.getByText('Paused, going on').waitFor();
  await tell(rolloutFacts({ seq: 4 }));
  await card.getByRole('button', { name: 'Abort' }).click();
  await dialog.getByText('It cannot go on afterwards').waitFor();
  expect(await findBarriers(page)).toEqual([]);
  await dialog.getByRole('button', { name: 'Abort' }).click();
  await card.getByText('Running, aborting').waitFor();
  expect(await tell(rolloutFacts({ seq: 5 }))).toMatchObject({ ask: { kind: 'abort', by: 'admin' } });
});

test('who only reads has no buttons, and the next step of a rollout that stopped is there', async (context) => {
  const { page, tell } = await setUp(context, READ_TOKEN, { viewport: { width: 390, height: 844 } });
  await tell(
    rolloutFacts({
      state: 'stopped',
      problem: { kind: 'bad', replica: 'a', sentence: `${HOSTILE} is worse`, advice: 'Find out why' },
    }),
  );
  const card = page.locator('.rollout');
  await card.getByText('Find out why').waitFor();
  expect(await card.getByRole('button').count()).toBe(0);
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
  expect(await findBarriers(page)).toEqual([]);
});
