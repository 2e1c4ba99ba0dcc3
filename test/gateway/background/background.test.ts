import { describe, expect, test } from 'vitest';
import { event } from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { begin, drain, look, RUNNING, SAFE, startBackground, until } from './start-background.ts';

describe.each([1, 2])('a response in the background, with %i workers,', (workers) => {
  test('belongs to its replica until it has ended, and then leaves one record with its tokens', async () => {
    const { gateway, store } = await startBackground({ gateway: { workers } }, { gpu_count: 8 });
    const id = await begin(gateway);
    expect(await look(gateway)).toEqual(RUNNING);
    await drain(gateway);
    expect(await look(gateway)).toEqual(RUNNING);
    store.set(id, 'in_progress');
    await expect.poll(() => store.pollsOf(id)).toBeGreaterThan(1);
    expect(await look(gateway)).toEqual(RUNNING);
    expect(gateway.records).toEqual([]);
    store.set(id, 'completed');
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({
      response_id: id,
      prompt_tokens: 12,
      completion_tokens: 6000,
      cached_tokens: 4,
      reasoning_tokens: 20,
      finish_reasons: ['completed'],
      status: 200,
      background_end: 'ended',
    });
    const { background_ms = 0, gpu_seconds = 0, e2e_ms } = record;
    expect(background_ms).toBeGreaterThan(e2e_ms);
    // Eight GPUs, and nothing else in flight.
    expect(gpu_seconds).toBeGreaterThan((8 * (background_ms - e2e_ms)) / 1000 / 2);
    expect(gpu_seconds).toBeLessThanOrEqual((8 * background_ms) / 1000 + 0.1);
    await until(gateway, SAFE);
    expect(await gateway.stats()).toMatchObject({ recorded: 1 });
  });

  test('is a request that has not ended, for a statement', async () => {
    const { gateway, store } = await startBackground({ gateway: { workers }, history: {} });
    const endedUntil = async (): Promise<string> => {
      const answer = await gateway.admin('/admin/statement-records?tenant=acme&since=1h');
      return ((await answer.json()) as { ended_until: string }).ended_until;
    };
    const id = await begin(gateway);
    const whileItRuns = await endedUntil();
    store.set(id, 'completed');
    const { ts } = await gateway.nextRecord();
    // The two are by clocks that round each for itself.
    expect(Date.parse(whileItRuns)).toBeLessThanOrEqual(Date.parse(ts) + 1);
    await until(gateway, { ...SAFE, safe_to_stop: false });
    expect((await endedUntil()) > ts).toBe(true);
  });

  test('counts from its answer on, however many there are, and waits of drains end with the last', async () => {
    const { gateway, store } = await startBackground({ gateway: { workers } });
    await Promise.all(Array.from({ length: 20 }, () => begin(gateway)));
    expect(await look(gateway)).toEqual({ ...RUNNING, background: 20 });
    const waiting = gateway.admin('/admin/replicas/a/drain?wait=60s', { method: 'POST' });
    for (const id of store.ids) store.set(id, 'completed');
    const { replica } = (await (await waiting).json()) as { replica: object };
    expect(replica).toMatchObject(SAFE);
    expect(await gateway.waitForRecords(20)).toHaveLength(20);
    expect(new Set(gateway.records.map(({ response_id }) => response_id)).size).toBe(20);
  });

  test('is followed when the client of its stream leaves, and not when the stream tells its end', async () => {
    const { gateway, replica, store } = await startBackground({ gateway: { workers } });
    const created = (id: string) =>
      event({ type: 'response.created', response: { id, model: 'm', status: 'queued' } });
    const completed = (id: string) =>
      event({
        type: 'response.completed',
        response: { id, status: 'completed', usage: { input_tokens: 1, output_tokens: 2 } },
      });
    const whole = createStreamGate([created('resp_whole')], completed('resp_whole'));
    replica.answerOnce(whole.script);
    const read = gateway.post('/v1/responses', { model: 'm', input: 'x', background: true, stream: true });
    whole.open();
    await (await read).text();
    expect(await gateway.nextRecord()).toMatchObject({ response_id: 'resp_whole', completion_tokens: 2 });
    expect(gateway.records[0]).not.toHaveProperty('background_ms');
    const left = createStreamGate([created('resp_left')], completed('resp_left'));
    replica.answerOnce(left.script);
    store.set('resp_left', 'in_progress');
    const leaving = new AbortController();
    const body = { model: 'm', input: 'x', background: true, stream: true };
    const response = await gateway.post('/v1/responses', body, { signal: leaving.signal });
    await response.body?.getReader().read();
    leaving.abort();
    await until(gateway, RUNNING);
    await drain(gateway);
    expect(await look(gateway)).toEqual(RUNNING);
    store.set('resp_left', 'completed');
    await until(gateway, SAFE);
    const records = await gateway.waitForRecords(2);
    expect(records[1]).toMatchObject({
      response_id: 'resp_left',
      completion_tokens: 6000,
      stream: true,
      error_type: 'client_closed',
      background_end: 'ended',
    });
  });
});
