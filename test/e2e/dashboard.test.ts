import type { Page } from 'playwright-core';
import { describe, expect, type TestContext, test } from 'vitest';
import { findBarriers, openTab } from '../support/browser.ts';
import { startFakeCollector } from '../support/fake-collector.ts';
import {
  answerJson,
  COMPLETION,
  type FakeReplica,
  refusedUrlBeside,
  startFakeReplica,
  startFakeReplicas,
} from '../support/fake-replica.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '../support/start-gateway.ts';

async function signIn(page: Page, gateway: StartedGateway, token = ADMIN_TOKEN): Promise<void> {
  await page.goto(gateway.adminUrl);
  await page.getByLabel('Admin token').fill(token);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** A tab with the dashboard of this gateway. */
async function openDashboard(
  context: TestContext,
  gateway: StartedGateway,
  options: Parameters<typeof openTab>[1] = {},
) {
  const tab = await openTab(context, options);
  await signIn(tab.page, gateway);
  await tab.page.getByText('Live', { exact: true }).waitFor();
  return tab;
}

const rowOf = (page: Page, replica: string) => page.locator(`#replicas tr[data-name="${replica}"]`);
const recordRows = (page: Page) => page.locator('#records tbody tr');
const dialogOf = (page: Page) => page.getByRole('dialog');

/** Holds the replica's next response until the returned function is called. */
function holdNextAnswer(replica: FakeReplica): () => void {
  const held = Promise.withResolvers<void>();
  replica.answerOnce(async (exchange) => {
    await held.promise;
    await answerJson(COMPLETION)(exchange);
  });
  return held.resolve;
}

/** Resolves when the element has this text. Playwright polls. */
const untilText = (page: Page, selector: string, text: string | RegExp) =>
  page.locator(selector).filter({ hasText: text }).waitFor();

/** Sends requests one after another from several clients until it is stopped. */
function startLoad(gateway: StartedGateway, clients: number) {
  let isStopped = false;
  const statuses: number[] = [];
  const loops = Array.from({ length: clients }, async () => {
    while (!isStopped) {
      const response = await gateway.chat();
      await response.arrayBuffer();
      statuses.push(response.status);
    }
  });
  return async () => {
    isStopped = true;
    await Promise.all(loops);
    return statuses;
  };
}

describe('signing in', () => {
  test('takes the token from a form, keeps it for the tab, and never puts it in the URL', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;

    await rowOf(page, 'a').waitFor();
    expect(page.url()).toBe(`${gateway.adminUrl}/`);
    await page.reload();
    await rowOf(page, 'a').waitFor();

    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Admin token').waitFor();
    await page.reload();
    await page.getByLabel('Admin token').waitFor();
    expect(tab.complaints).toEqual([]);
  });

  test('with a wrong token shows an error and the form again', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openTab(context);

    await signIn(tab.page, gateway, 'wrong');
    await tab.page.getByRole('alert').filter({ hasText: 'This token was rejected.' }).waitFor();
    await tab.page.getByLabel('Admin token').fill(ADMIN_TOKEN);
    await tab.page.getByRole('button', { name: 'Sign in' }).click();
    await rowOf(tab.page, 'a').waitFor();
  });

  test('to a gateway without a token shows that the admin API is off', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], adminToken: null });
    await using tab = await openTab(context);

    await signIn(tab.page, gateway);
    await tab.page.getByRole('heading', { name: 'The admin API is off' }).waitFor();
    expect(await findBarriers(tab.page)).toEqual([]);
  });
});

describe('replicas', () => {
  test('that fail or are full are shown as such, with the number of waiting requests', async (context) => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    if (a === undefined || b === undefined) throw new Error('no replicas');
    await using gateway = await startGateway({
      replicas: [
        { name: 'a', url: refusedUrlBeside(a) },
        { name: 'b', url: b.url, models: ['m', 'n'], max_inflight: 1 },
      ],
      config: { health: { passive: true, failures: 1, cool_down: '1h' } },
    });
    for (let requests = 0; requests < 2; requests++) await (await gateway.chat()).arrayBuffer();
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    await rowOf(page, 'a').getByText('Failing', { exact: true }).waitFor();
    await rowOf(page, 'a').getByText('tried last').waitFor();
    await page.getByText('1 serving, 1 failing').waitFor();

    const letGo = holdNextAnswer(b);
    const answers = [gateway.chat({ model: 'n' }), gateway.chat({ model: 'n' })];
    await rowOf(page, 'b').getByText('1 of 1').waitFor();
    await page.getByText('on 2 replicas, 1 waiting').waitFor();
    await page.getByRole('button', { name: 'Drain b', exact: true }).click();
    await dialogOf(page).getByText('New requests for m go to a (failing).').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    letGo();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
    expect(tab.complaints).toEqual([]);
  });

  test('that were removed are shown until their requests have ended, beside their replacements', async (context) => {
    await using replicas = await startFakeReplicas('old', 'new');
    const [old, next] = replicas;
    if (old === undefined || next === undefined) throw new Error('no replicas');
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: old.url }] });
    const letGo = holdNextAnswer(old);
    const answer = gateway.chat();
    await old.untilRequests(1);
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    await page.getByText('1 serving').waitFor();

    gateway.writeConfig({ replicas: [{ name: 'a', url: next.url }] });
    await gateway.reload();

    await page.getByText('1 serving, 1 being removed').waitFor();
    await rowOf(page, 'a').getByText('Being removed, 1 request left').waitFor();
    await rowOf(page, 'a').getByText('Serving', { exact: true }).waitFor();
    expect(await page.getByRole('button', { name: 'Drain a', exact: true }).count()).toBe(1);
    expect(await findBarriers(page)).toEqual([]);
    letGo();
    expect((await answer).status).toBe(200);
    await page.getByText('Being removed, 1 request left').waitFor({ state: 'detached' });
    expect(tab.complaints).toEqual([]);
  });
});

describe('draining', () => {
  test('by a click, under load, shows the consequences, then the requests left, then that it is safe', async (context) => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas });
    const [a, b] = replicas;
    if (a === undefined || b === undefined) throw new Error('no replicas');
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    const letGo = holdNextAnswer(a);
    const slow = gateway.chat();
    await a.untilRequests(1);
    const stopLoad = startLoad(gateway, 4);

    await page.getByRole('button', { name: 'Drain a', exact: true }).click();
    await dialogOf(page).getByText('New requests for m go to b.').waitFor();
    await dialogOf(page).getByLabel('Reason').fill('driver update');
    await dialogOf(page).getByRole('button', { name: 'Drain' }).click();
    await dialogOf(page).waitFor({ state: 'hidden' });
    const afterDrain = a.requests.length;

    await rowOf(page, 'a').getByText('Draining, 1 request left').waitFor();
    await rowOf(page, 'a').getByText('driver update').waitFor();
    await b.untilRequests(b.requests.length + 50);
    expect(a.requests.length).toBe(afterDrain);

    letGo();
    expect((await slow).status).toBe(200);
    await rowOf(page, 'a').getByText('Safe to stop').waitFor();

    await page.getByRole('button', { name: 'Undrain a' }).click();
    await dialogOf(page).getByText('gets new requests at once').waitFor();
    await dialogOf(page).getByRole('button', { name: 'Undrain' }).click();
    await rowOf(page, 'a').getByText('Serving').waitFor();
    await a.untilRequests(afterDrain + 10);
    expect(new Set(await stopLoad())).toEqual(new Set([200]));
    expect(tab.complaints).toEqual([]);
  });

  test('the last replica of a model warns which requests will fail, and can be cancelled', async (context) => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({ replicas: [a, { ...b, models: ['other'] }] });
    await using tab = await openDashboard(context, gateway);

    await tab.page.getByRole('button', { name: 'Drain a' }).click();
    await dialogOf(tab.page).getByText('a is the last replica for m: these requests will get 503.').waitFor();
    await dialogOf(tab.page).getByRole('button', { name: 'Drain anyway' }).waitFor();
    await dialogOf(tab.page).getByRole('button', { name: 'Cancel' }).click();
    expect(await gateway.replicas()).toMatchObject([{ drained: false }, { drained: false }]);
  });

  test('needs no mouse: Enter opens the dialog, Escape closes it, and the focus returns', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    const focused = page.locator('[aria-label="Drain a"]:focus');

    while ((await focused.count()) === 0) await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await dialogOf(page).waitFor();
    await page.keyboard.press('Escape');
    await dialogOf(page).waitFor({ state: 'hidden' });
    expect(await focused.count()).toBe(1);

    await page.keyboard.press('Enter');
    await page.keyboard.press('Enter');
    await rowOf(page, 'a').getByText('Safe to stop').waitFor();
  });
});

describe('the latest requests', () => {
  test('are filtered by replica, model, tenant and status, and link to their traces', async (context) => {
    await using a = await startFakeReplica({ name: 'a' });
    await using b = await startFakeReplica({
      name: 'b',
      script: answerJson({ error: { message: 'no' } }, { status: 500 }),
    });
    await using gateway = await startGateway({
      replicas: [a, { ...b, models: ['n'] }],
      config: { trace: { url_template: 'http://traces.example/trace/{trace_id}' } },
    });
    await gateway.chat({}, { headers: { 'X-Tenant': 'acme' } });
    await gateway.chat({ model: 'n' });
    await gateway.chat({ model: 'nobody' }, { headers: { 'X-Tenant': 'acme' } });
    await gateway.waitForRecords(3);
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    const untilShown = async (...statuses: readonly string[]) => {
      await expect.poll(() => recordRows(page).locator('.status').allInnerTexts()).toEqual(statuses);
    };

    await untilShown(expect.stringContaining('404'), '500', '200');
    const select = (label: string, option: string) =>
      page.getByLabel(label, { exact: true }).selectOption(option);
    await select('Tenant', 'acme');
    await untilShown(expect.stringContaining('404'), '200');
    await select('Status', 'Success');
    await untilShown('200');
    const { trace_id = '', request_id = '' } = gateway.records[0] ?? {};
    const link = page.getByRole('link', { name: `Trace ${trace_id}` });
    expect(await link.getAttribute('href')).toBe(`http://traces.example/trace/${trace_id}`);
    expect(await link.getAttribute('rel')).toContain('noopener');

    await recordRows(page).getByRole('button').click();
    await dialogOf(page).getByText(request_id).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.keyboard.press('Escape');

    await select('Replica', 'Without replica');
    await page.getByText('No request matches these filters.').waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await untilShown(expect.stringContaining('404'), '500', '200');
    await select('Model', 'n');
    await untilShown('500');
    expect(tab.complaints).toEqual([]);
  });

  test('have their filters before the first request', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openDashboard(context, gateway);

    await tab.page.getByText('No request has ended yet').waitFor();

    const chosen = tab.page.locator('#filters select option:checked');
    expect(await chosen.allInnerTexts()).toEqual(['Any replica', 'Any model', 'Any tenant', 'Any status']);
  });

  test('do not change while they are paused', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    await page.getByText('No request has ended yet.').waitFor();

    await page.getByRole('button', { name: 'Pause' }).click();
    await gateway.chat();
    await gateway.waitForRecords(1);
    await untilText(page, '#export', /Recorded\s*1/);
    expect(await recordRows(page).count()).toBe(0);
    await page.getByRole('button', { name: 'Pause' }).click();
    await recordRows(page).first().waitFor();
  });

  test('show names as text, even if a client sends markup', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [{ ...replica, models: ['*'] }] });
    const hostile = '<img src=x onerror="document.title=1"><b>m</b>';
    await gateway.chat({ model: hostile }, { headers: { 'X-Tenant': hostile } });
    await gateway.waitForRecords(1);
    await using tab = await openDashboard(context, gateway);

    await recordRows(tab.page).getByText(hostile).first().waitFor();
    expect(await tab.page.locator('#overview img, #overview b').count()).toBe(0);
    expect(await tab.page.title()).toBe('Spangate');
    expect(tab.complaints).toEqual([]);
  });
});

describe('an outage', () => {
  test('of the gateway is shown, the data stays, and the page recovers by itself', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    await rowOf(page, 'a').waitFor();

    await page.route('**/admin/overview*', (route) => route.abort());
    await page.getByRole('alert').filter({ hasText: 'The gateway does not answer.' }).waitFor();
    await rowOf(page, 'a').waitFor();
    expect(await findBarriers(page)).toEqual([]);
    await page.unroute('**/admin/overview*');
    await page.getByText('Live', { exact: true }).waitFor();

    await gateway.close();
    await page.getByText('Reconnecting').waitFor();
    await page.getByRole('button', { name: 'Try now' }).click();
    await page.getByText(/The data shown is from \d\d:\d\d:\d\d/).waitFor();
  });

  test('of the collector is shown, with the number of waiting records', async (context) => {
    await using replica = await startFakeReplica();
    const collector = await startFakeCollector();
    context.onTestFinished(() => collector.close());
    collector.answerAlways({ status: 503 });
    await using gateway = await startGateway({ replicas: [replica], collector });
    await using tab = await openDashboard(context, gateway);
    await tab.page.getByText('Nothing to send yet').waitFor();

    await gateway.chat();
    await tab.page.getByText('Export calls fail').waitFor();
    await untilText(tab.page, '#export', /Queue\s*1\s*of 16,384 records/);
    collector.answerAlways({ status: 200 });
    await tab.page.getByText('The collector accepts records').waitFor();
  });

  test('a hidden tab makes no calls', async (context) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    await using tab = await openTab(context);
    const { page } = tab;
    let calls = 0;
    page.on('request', (request) => {
      if (request.url().includes('/admin/overview')) calls += 1;
    });
    await page.clock.install();
    await signIn(page, gateway);
    await page.getByText('Live', { exact: true }).waitFor();
    const pretend = (isHidden: boolean) =>
      page.evaluate(`Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'))`);

    await pretend(true);
    const before = calls;
    await page.clock.runFor(60_000);
    expect(calls).toBe(before);
    const next = page.waitForRequest('**/admin/overview*');
    await pretend(false);
    await next;
  });
});

describe('the page', () => {
  test.for([
    ['light', { colorScheme: 'light' }],
    ['dark', { colorScheme: 'dark' }],
    ['on a tablet', { viewport: { width: 820, height: 1180 } }],
    ['on a phone', { viewport: { width: 360, height: 780 }, colorScheme: 'dark' }],
  ] as const)('has no barriers and does not scroll sideways: %s', async ([, options], context) => {
    await using a = await startFakeReplica({ name: 'a-replica-with-quite-a-long-name' });
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [
        { ...a, gpu_model: 'H100', gpu_count: 8 },
        { ...b, models: ['m', 'another-model-70b-instruct', 'one-more'] },
      ],
    });
    for (const model of ['m', 'm', 'a-model-that-nobody-serves-and-that-has-a-long-name']) {
      await gateway.chat({ model }, { headers: { 'X-Tenant': 'a-tenant-with-a-name-longer-than-others' } });
    }
    await gateway.waitForRecords(3);
    await gateway.admin('/admin/replicas/b/drain', { method: 'POST' });
    await using tab = await openTab(context, options);
    const { page } = tab;
    await page.goto(gateway.adminUrl);
    expect(await findBarriers(page)).toEqual([]);

    await signIn(page, gateway);
    await recordRows(page).nth(2).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    expect(
      await page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth'),
    ).toBe(0);

    await page.getByRole('button', { name: /^Drain a-replica/ }).click();
    await dialogOf(page).waitFor();
    expect(await findBarriers(page)).toEqual([]);
    expect(tab.complaints).toEqual([]);
  });
});
