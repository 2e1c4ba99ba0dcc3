import { describe, expect, type TestContext, test } from 'vitest';
import { dialogOf, drainButton, openSignedIn, pollFast, rowOf } from '#testkit/dashboard/page.ts';
import {
  type FakeReplica,
  refusedUrlBeside,
  startFakeReplica,
  startFakeReplicas,
} from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { findBarriers, useBrowser } from '#testkit/processes/browser.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

/** The page in front of a real gateway. What only concerns the page is tested with a scripted admin API. */

const openTab = useBrowser();

async function openDashboard(context: TestContext, { adminUrl }: StartedGateway) {
  const tab = await openTab(context);
  await pollFast(tab.page, adminUrl);
  await openSignedIn(tab.page, `${adminUrl}/`, ADMIN_TOKEN);
  return tab;
}

/** Holds the replica's next response until the returned function is called. */
function holdNextAnswer(replica: FakeReplica): () => void {
  const gate = createGate();
  replica.answerOnce(gate.script);
  return gate.open;
}

/** Sends requests one after another from some clients until it is stopped. */
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

describe('a replica', () => {
  test('at which nobody listens is red, with its reason, and its twin is known to be the last', async (context) => {
    await using replicas = await startFakeReplicas('a', 'b');
    const [a, b] = replicas;
    if (a === undefined || b === undefined) throw new Error('no replicas');
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: refusedUrlBeside(a) }, b],
    });
    for (let requests = 0; requests < 2; requests++) await (await gateway.chat()).arrayBuffer();
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;

    await rowOf(page, 'a').getByText('Unreachable', { exact: true }).waitFor();
    await rowOf(page, 'a').getByText('connection refused').waitFor();
    await page.getByRole('button', { name: 'a does not answer: connection refused' }).waitFor();
    await expect.poll(() => page.title()).toContain('⚠');
    await drainButton(page, 'b').click();
    await dialogOf(page).getByText('b is the last replica for m that answers').waitFor();
    await dialogOf(page).getByText('a (unreachable)').waitFor();
    expect(await dialogOf(page).getByRole('button', { name: 'Drain anyway' }).isDisabled()).toBe(true);
    expect(await findBarriers(page)).toEqual([]);
    expect(tab.complaints).toEqual([]);
  });

  test('that is full has its limit, and the number of waiting requests', async (context) => {
    await using b = await startFakeReplica({ name: 'b' });
    await using gateway = await startGateway({
      replicas: [{ name: 'b', url: b.url, max_inflight: 1 }],
    });
    const letGo = holdNextAnswer(b);
    const answers = [gateway.chat(), gateway.chat()];
    await using tab = await openDashboard(context, gateway);
    await rowOf(tab.page, 'b').getByText('1 of 1').waitFor();
    await tab.page.getByText('on 1 replica, 1 waiting').waitFor();
    letGo();
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('that was removed is shown until its requests have ended, beside its replacement', async (context) => {
    await using replicas = await startFakeReplicas('old', 'new');
    const [old, next] = replicas;
    if (old === undefined || next === undefined) throw new Error('no replicas');
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: old.url }] });
    const letGo = holdNextAnswer(old);
    const answer = gateway.chat();
    await old.untilRequests(1);
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;

    gateway.writeConfig({ replicas: [{ name: 'a', url: next.url }] });
    await gateway.reload();

    await rowOf(page, 'a').getByText('being removed · 1 request left').waitFor();
    // A probe may have seen the replacement already.
    await rowOf(page, 'a')
      .getByText(/^(?:Not seen yet|Serving)$/)
      .waitFor();
    expect(await drainButton(page, 'a').count()).toBe(1);
    letGo();
    expect((await answer).status).toBe(200);
    await page.getByText('being removed · 1 request left').waitFor({ state: 'detached' });
    expect(tab.complaints).toEqual([]);
  });
});

describe('draining', () => {
  test('by a click, under load, shows the requests left, then that it is safe', async (context) => {
    await using replicas = await startFakeReplicas('a', 'b');
    await using gateway = await startGateway({ replicas });
    const [a, b] = replicas;
    if (a === undefined || b === undefined) throw new Error('no replicas');
    await using tab = await openDashboard(context, gateway);
    const { page } = tab;
    const letGo = holdNextAnswer(a);
    const slow = gateway.chat();
    await a.untilRequests(1);
    const stopLoad = startLoad(gateway, 1);
    await b.untilRequests(1);
    await rowOf(page, 'b').getByText('Serving').waitFor();

    await drainButton(page, 'a').click();
    await dialogOf(page).getByText('New requests for m go to b.').waitFor();
    await dialogOf(page).getByLabel('Reason').fill('driver update');
    await dialogOf(page).getByRole('button', { name: 'Drain' }).click();
    await dialogOf(page).waitFor({ state: 'hidden' });
    const afterDrain = a.requests.length;

    await rowOf(page, 'a').getByText('1 request left · driver update').waitFor();
    await b.untilRequests(b.requests.length + 20);
    expect(a.requests.length).toBe(afterDrain);

    letGo();
    expect((await slow).status).toBe(200);
    await rowOf(page, 'a').getByText('Safe to stop').waitFor();
    await page.getByRole('status').filter({ hasText: 'a: safe to stop.' }).waitFor();

    await page.getByRole('button', { name: 'Undrain a' }).click();
    await dialogOf(page).getByText('gets new requests at once').waitFor();
    await dialogOf(page).getByRole('button', { name: 'Undrain' }).click();
    await a.untilRequests(afterDrain + 10);
    await rowOf(page, 'a').getByText('Serving').waitFor();
    expect(new Set(await stopLoad())).toEqual(new Set([200]));
    expect(tab.complaints).toEqual([]);
  });
});
