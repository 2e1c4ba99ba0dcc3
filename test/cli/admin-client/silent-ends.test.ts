import { expect, test } from 'vitest';
import { StartError } from '#base';
import { FAULTS, startFaultyServer } from '#testkit/servers/faulty-server.ts';
import { createAdminClient, UnreachableError } from '../../../src/cli/admin-client/client.ts';
import { start } from '../invoke.ts';
import { TOKEN } from '../scripted-admin.ts';

/** In place of the 20 s of a command. */
const ANSWER_TIMEOUT_MS = 500;

test.concurrent.for(FAULTS)(
  'a call of an admin API that $name ends in time with an error that says so',
  async (fault, { expect }) => {
    await using server = await startFaultyServer(fault, (_request, response) => response.end());
    const client = createAdminClient(
      { baseUrl: server.url, fetch },
      TOKEN.SVC_ADMIN_TOKEN,
      ANSWER_TIMEOUT_MS,
    );
    const error: unknown = await client.call('GET', '/admin/stats').catch((reason: unknown) => reason);
    // A command prints it in one line and exits with 1.
    expect(error).toBeInstanceOf(StartError);
    expect(String(error)).toMatch(/Error: (cannot reach the admin API at|\S+ does not answer like) [^\n]*$/);
    await server.untilLetGo();
  },
);

test('a call that its caller ends does not wait for the answer', async () => {
  await using server = await startFaultyServer(
    { name: 'says nothing', when: 'asked', act: () => undefined },
    (_request, response) => response.end(),
  );
  const call = createAdminClient({ baseUrl: server.url, fetch }, 'token').call(
    'GET',
    '/',
    AbortSignal.timeout(50),
  );
  await expect(call).rejects.toThrow(UnreachableError);
  await server.untilLetGo();
});

test('an endless answer is not held in memory', async () => {
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
