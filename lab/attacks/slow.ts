import { setInterval as ticks } from 'node:timers/promises';
import type { RawConnection } from '../../test/support/raw-http.ts';
import { type Attack, post } from './attack.ts';

/** Sends a byte now and then, until the gateway closes. */
const drip = (start: string, piece: string) => async (client: RawConnection) => {
  client.write(start);
  for await (const _ of ticks(20)) {
    if (client.isClosed || client.socket.bytesRead > 0) return;
    client.write(piece);
  }
};

/** Attacks that take their time. The gateway's time-outs are short here. */
export const SLOW: readonly Attack[] = [
  {
    name: 'slowloris on the head',
    source: 'CVE-2018-12122; Hansen 2009, "Slowloris"',
    act: drip('GET /healthz HTTP/1.1\r\nHost: g\r\nX-A: ', 'a'),
    statuses: [408],
  },
  {
    name: 'slowloris on the body',
    source: 'Chee and Brennan 2010, "R-U-Dead-Yet"',
    act: drip(post(['Content-Length: 100000'], '{"model":"'), 'm'),
    statuses: [408],
  },
  {
    name: 'slowloris by chunks',
    source: 'Chee and Brennan 2010, "R-U-Dead-Yet"',
    act: drip(post(['Transfer-Encoding: chunked'], '1\r\n{'), '\r\n1\r\n '),
    statuses: [408],
  },
  {
    name: 'a connection on which nothing comes',
    source: 'RFC 9112 9.5',
    act: async () => undefined,
    statuses: [0],
  },
];
