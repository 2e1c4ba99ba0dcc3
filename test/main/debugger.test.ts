import { describe, expect, it } from 'vitest';
import { chat, serve, startReplica } from '#testkit/processes/main-process.ts';

describe('the debugger of Node', () => {
  it('SIGUSR1 opens no debugger', async () => {
    const gateway = await serve(await startReplica(), { nodeArgs: ['--inspect-port=0'] });
    for (let round = 0; round < 3; round++) {
      gateway.child.kill('SIGUSR1');
      expect((await chat(gateway.url)).status).toBe(200);
    }
    gateway.child.kill('SIGTERM');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
    expect(await gateway.stderr).toBe('');
  });

  it('SIGUSR1 before the first line of code leaves no debugger open', async () => {
    const preload = `const { url } = await import('node:inspector');
      process.kill(process.pid, 'SIGUSR1');
      while (url() === undefined) await new Promise(setImmediate);
      process.on('SIGUSR2', async () => {
        while (url() !== undefined) await new Promise(setImmediate);
        process.kill(process.pid, 'SIGTERM');
      });
      process.on('exit', () => process.getBuiltinModule('fs').writeSync(2, 'at the end ' + url()));`;
    const gateway = await serve(await startReplica(), { nodeArgs: ['--inspect-port=0'], preload });
    expect((await chat(gateway.url)).status).toBe(200);
    gateway.child.kill('SIGUSR2');
    expect(await gateway.closed).toEqual({ code: 0, signal: null });
    const said = await gateway.stderr;
    expect(said).toContain('Debugger listening on ws://');
    expect(said).toContain('at the end undefined');
  });

  it('a debugger that the command line asks for stays open', async () => {
    const gateway = await serve(await startReplica(), { nodeArgs: ['--inspect=127.0.0.1:0'] });
    gateway.child.kill('SIGTERM');
    await gateway.closed;
    expect(await gateway.stderr).toContain('Debugger listening on ws://');
  });
});
