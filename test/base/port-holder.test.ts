import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { findListeners, findPortHolder } from '../../src/base/start-error.ts';

/** As in /proc/net/tcp: a listener on 8080, a connection of it, and a listener on 8081. */
const TABLE = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41721 1 0000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:D3F8 01 00000000:00000000 00:00000000 00000000  1000        0 41733 1 0000 20 4 30 10 -1
   2: 00000000:1F91 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 41740 1 0000 100 0 0 10 0
`;

test('of a table of sockets only those count that listen on the port', () => {
  expect(findListeners(TABLE, 8080)).toEqual(['41721']);
  expect(findListeners(TABLE, 8081)).toEqual(['41740']);
  expect(findListeners(TABLE, 80)).toEqual([]);
  expect(findListeners('', 80)).toEqual([]);
});

test.runIf(process.platform === 'linux')(
  'the process that listens on a port is found, without its arguments',
  async () => {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    expect(await findPortHolder(port)).toMatch(new RegExp(`^node[\\w. -]* \\(process ${process.pid}\\)$`));
    const closed = once(server, 'close');
    server.close();
    await closed;
    expect(await findPortHolder(port)).toBeNull();
  },
);
