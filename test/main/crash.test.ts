import { describe, expect, it } from 'vitest';
import { hang } from '#testkit/fake-replica.ts';
import {
  AWAY,
  chat,
  runMain,
  serve,
  spooledEndings,
  startReplica,
  writeConfig,
} from '#testkit/processes/main-process.ts';

describe('an uncaught error ends the gateway with 1', () => {
  it.each([
    ['an exception', 'throw new TypeError(word)', 'uncaught exception', 1],
    ['a rejection', 'Promise.reject(new TypeError(word))', 'unhandled rejection', 1],
    ['a rejection', 'Promise.reject(new TypeError(word))', 'unhandled rejection', 2],
  ])(
    'after %s, %s: its records are stored, and one line says where it was',
    async (_what, statement, msg, workers) => {
      const replica = await startReplica();
      // The frames quote this script itself.
      const word = "const word = ['can', 'ary\\n    at can', 'ary (a.ts:1:1)'].join('')";
      const preload = `${word}; process.on('SIGUSR2', () => { ${statement} })`;
      const gateway = await serve(replica, { preload, workers, collector: AWAY });
      for (let served = 0; served < 3; served++) expect((await chat(gateway.url)).status).toBe(200);
      replica.answer(hang);
      const cut = chat(gateway.url);
      await replica.untilRequests(4);
      gateway.child.kill('SIGUSR2');
      expect(await gateway.closed).toEqual({ code: 1, signal: null });
      expect((await cut).status).toBe(503);
      const said = await gateway.stderr;
      expect(JSON.parse(said)).toMatchObject({ level: 'fatal', err: { name: 'TypeError' }, msg });
      expect(said).not.toContain('canary');
      expect((await spooledEndings(gateway)).toSorted()).toEqual([
        'shutting_down',
        ...[undefined, undefined, undefined],
      ]);
    },
  );

  it('however often it happens while the records are stored', async () => {
    const replica = await startReplica();
    const preload = `process.on('SIGUSR2', () => setInterval(() => { throw new Error('again') }, 1))`;
    const gateway = await serve(replica, { preload, collector: AWAY });
    expect((await chat(gateway.url)).status).toBe(200);
    gateway.child.kill('SIGUSR2');
    expect(await gateway.closed).toEqual({ code: 1, signal: null });
    expect((await gateway.stderr).trim().split('\n')).toHaveLength(1);
    expect(await spooledEndings(gateway)).toEqual([undefined]);
  });
});

it('a worker that cannot load its code ends the start with 1, and the last line says why', async () => {
  const config = await writeConfig('replicas: [{ name: a, url: "http://127.0.0.1:9" }]', 2);
  const preload = `
    import { isMainThread, threadName } from 'node:worker_threads';
    if (!isMainThread && threadName === 'worker 2') throw new SyntaxError('half a file');`;
  const { code, stderr } = await runMain(['-config', config], { preload });
  expect(code).toBe(1);
  expect(stderr).toMatch(
    /gateway\.listen 127\.0\.0\.1:0: worker 2 ended before it could listen: half a file\n$/,
  );
});
