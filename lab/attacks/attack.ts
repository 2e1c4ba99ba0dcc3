import type { Socket } from 'node:net';
import type { RawConnection } from '#testkit/raw-http.ts';

/** One attack on the wire, and what must come of it. */
export interface Attack {
  readonly name: string;
  /** Where it is described: RFC section, CVE, paper. */
  readonly source: string;
  /** What the client sends; by default a chat completion. */
  readonly bytes?: string | Buffer;
  /** What the client does instead of sending `bytes` at once. */
  readonly act?: (client: RawConnection, replica: WatchedReplica) => Promise<void>;
  /**
   * What the replica does with each new connection, none of which is left from before. Returns that on which it reads
   * requests, or null.
   */
  readonly onConnection?: (socket: Socket) => Socket | null;
  /** What the replica does with the connection when the request begins to come. It has read nothing of it. */
  readonly onRequest?: (socket: Socket) => unknown;
  /** What the replica does when it has read the head of the request, and instead of reading its body. */
  readonly onHead?: (socket: Socket) => void;
  /** What the replica does once it has read the request; by default it answers. Resolves or not, as it likes. */
  readonly replica?: (socket: Socket) => void;
  /** The status of each answer, in order; 0: the connection was closed without one. */
  readonly statuses: readonly number[];
  /** Whether the last answer is whole. Default: true, and false for a status of 0. */
  readonly isComplete?: boolean;
  /** Whether the gateway then closes the connection, and sends nothing before. Default: true. */
  readonly closes?: boolean;
  /** The request lines that the replica sees. Default: none. */
  readonly seen?: readonly string[];
}

/** The replica, as far as an attack waits for it. */
export interface WatchedReplica {
  /** Resolves when the gateway has closed every connection on which the replica was hostile. */
  untilReplicaClosed(): Promise<void>;
}

/** A small body that is valid. */
export const BODY = '{"model":"m"}';
/** The request line of a chat completion, as the replica sees it. */
export const CHAT_LINE = 'POST /v1/chat/completions HTTP/1.1';
/** A path whose bodies go to the replica as they come, and its request line. */
export const UPLOADS = '/v1/files';
export const UPLOAD_LINE = `POST ${UPLOADS} HTTP/1.1`;
/** What an attacker wants the replica, or the next client, to see. */
export const SMUGGLED = 'GET /v1/models?smuggled HTTP/1.1\r\nHost: g\r\n\r\n';
/** A sound chat completion. */
export const CHAT = `${CHAT_LINE}\r\nHost: g\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

/** Acts once the connection has read this text, which may come in pieces. */
export function onText(socket: Socket, text: string, act: () => void): void {
  let tail = '';
  socket.on('data', function look(piece: Buffer | string) {
    const read = tail + piece.toString('latin1');
    tail = read.slice(-text.length);
    if (!read.includes(text)) return;
    socket.off('data', look);
    act();
  });
}

/** A POST of a chat with these header lines; the body follows as it is. */
export const post = (lines: readonly string[], body: string, target = '/v1/chat/completions'): string =>
  `${[`POST ${target} HTTP/1.1`, 'Host: g', ...lines].join('\r\n')}\r\n\r\n${body}`;
