import { expect, test } from 'vitest';
import { FAULTS, startFaultyServer } from '../../support/faulty-server.ts';
import { start } from '../invoke.ts';
import { TOKEN } from '../scripted-admin.ts';

// Ten seconds each, all at once.
test.concurrent.for(FAULTS)(
  'a command whose admin API $name ends with 1 and says so',
  {
    timeout: 60_000,
  },
  async (fault, { expect }) => {
    await using server = await startFaultyServer(fault, (_request, response) => response.end());
    const { exitCode, stdout, stderr } = await start(['stats', '--admin', server.url], TOKEN).ended;
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^gateway: (cannot reach the admin API at|\S+ does not answer like) [^\n]*\n$/);
    await server.untilLetGo();
  },
);

test('an endless answer is not held in memory', { timeout: 60_000 }, async () => {
  const megabyte = Buffer.alloc(1024 ** 2, ' ');
  await using server = await startFaultyServer(
    {
      name: 'floods',
      when: 'asked',
      act(socket) {
        socket.write('HTTP/1.1 200 OK\r\n\r\n');
        const flood = () => {
          while (!socket.destroyed && socket.write(megabyte));
        };
        socket.on('drain', flood);
        flood();
      },
    },
    (_request, response) => response.end(),
  );
  const { exitCode, stderr } = await start(['stats', '--admin', server.url], TOKEN).ended;
  expect(exitCode).toBe(1);
  expect(stderr).toBe(`gateway: ${server.url} does not answer like an admin API (status 200)\n`);
  await server.untilLetGo();
});
