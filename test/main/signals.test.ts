import { describe, expect, it } from 'vitest';
import { AWAY, chat, serve, spooledEndings, startReplica } from '#testkit/processes/main-process.ts';

describe('a signal to a gateway that serves', () => {
  it.each(['SIGTERM', 'SIGINT', 'SIGQUIT', 'SIGXCPU', 'SIGPWR'] as const)(
    '%s shuts it down, with its records stored',
    async (signal) => {
      const gateway = await serve(await startReplica(), { collector: AWAY });
      expect((await chat(gateway.url)).status).toBe(200);
      gateway.child.kill(signal);
      expect(await gateway.closed).toEqual({ code: 0, signal: null });
      expect(await spooledEndings(gateway)).toEqual([undefined]);
      expect(await gateway.stderr).toBe('');
    },
  );

  it.each([1, 2])('is ignored if it has no meaning, with %i workers', async (workers) => {
    const gateway = await serve(await startReplica(), { workers, collector: AWAY });
    for (const signal of ['SIGUSR2', 'SIGALRM', 'SIGVTALRM', 'SIGIO', 'SIGSTKFLT', 'SIGPIPE'] as const) {
      gateway.child.kill(signal);
      expect((await chat(gateway.url)).status).toBe(200);
    }
    gateway.child.kill('SIGTERM');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
    expect(await gateway.stderr).toBe('');
  });

  it('SIGHUP reloads it, even if it comes before the gateway serves', async () => {
    const replica = await startReplica();
    const preload = `process.on('newListener', function told(event) {
      if (event !== 'SIGHUP') return;
      process.off('newListener', told);
      setImmediate(() => process.kill(process.pid, 'SIGHUP'));
    })`;
    const gateway = await serve(replica, { preload });
    await gateway.untilLogged('configuration reloaded');
    gateway.child.kill('SIGTERM');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
  });
});
