import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type Answer, decode, encode, type Packet } from 'dns-packet';
import { EventLog } from '../event-log.ts';

/** The answer to a query: records; a response code such as `NXDOMAIN`; null: no answer. */
export type DnsAnswer = readonly Answer[] | 'NXDOMAIN' | 'SERVFAIL' | null;

/** A real name server on a free UDP port with scripted answers. */
export interface DnsServer extends AsyncDisposable {
  /** As `Resolver.setServers` takes it. */
  readonly address: string;
  /** The queried names, oldest first. */
  readonly questions: EventLog<string>;
  /** The answer from now on. */
  answer(answer: DnsAnswer): void;
}

const RESPONSE_CODES = { NXDOMAIN: 3, SERVFAIL: 2 } as const; // RFC 1035 4.1.1

/** Starts a name server. */
export async function startDnsServer(first: DnsAnswer): Promise<DnsServer> {
  let answer = first;
  const questions = new EventLog<string>();
  const socket = createSocket('udp4');
  socket.on('message', (bytes, client) => {
    const query = decode(bytes);
    questions.push(query.questions?.[0]?.name ?? '');
    if (answer !== null) socket.send(encode(toResponse(query, answer)), client.port, client.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return {
    address: `127.0.0.1:${socket.address().port}`,
    questions,
    answer(next) {
      answer = next;
    },
    async [Symbol.asyncDispose]() {
      const closed = once(socket, 'close');
      socket.close();
      await closed;
    },
  };
}

function toResponse({ id = 0, questions = [] }: Packet, answer: Exclude<DnsAnswer, null>): Packet {
  const head = { id, questions, type: 'response' } as const;
  if (typeof answer === 'string') return { ...head, flags: RESPONSE_CODES[answer] };
  return { ...head, answers: [...answer] };
}

/** An SRV record of a service. */
export function srvRecord(name: string, target: string, port: number): Answer {
  return { type: 'SRV', name, ttl: 0, data: { target, port, priority: 0, weight: 0 } };
}
