import type { End } from '../../engine/end.ts';
import { hostOf, nameOfReplica, PORTS } from '../addresses.ts';
import { type AnswerPlan, toPieces } from '../answers.ts';
import type { Served } from '../checks/facts.ts';
import { HttpReader, type Message } from '../http-reader.ts';
import type { WorldParts } from '../world-parts.ts';
import { Actor } from './actor.ts';

/** An inference server. What it answers is in the plan of each request. */
export class Replica {
  readonly index: number;
  readonly #parts: WorldParts;
  /** How long it stops reading after the first bytes of a request; 0: not at all. */
  readonly #pauseMs: number;
  #actor: Actor;
  #isUp = false;

  constructor(index: number, pauseMs: number, parts: WorldParts) {
    this.index = index;
    this.#pauseMs = pauseMs;
    this.#parts = parts;
    this.#actor = new Actor(nameOfReplica(index));
  }

  get isUp(): boolean {
    return this.#isUp;
  }

  start(): void {
    if (this.#isUp) return;
    this.#isUp = true;
    this.#actor = new Actor(nameOfReplica(this.index));
    this.#parts.network.listen(`${hostOf.replica(this.index)}:${PORTS.replica}`, {
      owner: this.#actor,
      reusesPort: false,
      accept: (end) => this.#serve(end),
    });
  }

  /** It ends without a word; the system closes its connections. */
  crash(): void {
    if (!this.#isUp) return;
    this.#isUp = false;
    this.#actor.hasEnded = true;
    this.#parts.network.closeAllOf(this.#actor);
  }

  #serve(end: End): void {
    const reader = new HttpReader('request', (message) => {
      const [method, path] = message.startLine.split(' ');
      if (method === 'GET') this.#answerGet(end, path ?? '');
      else this.#answer(end, message);
    });
    end.handler = {
      onData: (bytes) => {
        const isBegin = !reader.hasPart;
        reader.push(bytes);
        if (isBegin && this.#pauseMs > 0) this.#pause(end);
      },
      onEnd: () => end.close(),
      onError: () => end.close(),
    };
    end.startReading();
  }

  #pause(end: End): void {
    end.stopReading();
    this.#parts.schedule.after(this.#pauseMs, this.#actor, `${this.#actor.name} reads again`, () =>
      end.startReading(),
    );
  }

  #answerGet(end: End, path: string): void {
    const data = [{ id: 'm', object: 'model', owned_by: 'someone' }];
    const body = path === '/v1/models' ? JSON.stringify({ object: 'list', data }) : '{}';
    write(
      end,
      `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  }

  #answer(end: End, message: Message): void {
    const { chronicle, schedule, plans } = this.#parts;
    const id = message.fields.get('x-plan') ?? '';
    const plan = plans.get(id);
    if (plan === undefined) throw new Error(`a replica got a request that nobody sent: ${id}`);
    const attempt = chronicle.attemptsOf(id) + 1;
    const answer = plan.answers[Math.min(attempt, plan.answers.length) - 1] as AnswerPlan;
    const body = JSON.parse(message.body.toString()) as { stream_options?: { include_usage?: boolean } };
    const served: Served = {
      plan,
      answer,
      attempt,
      replica: this.index,
      requestId: message.fields.get('x-request-id') ?? '',
      traceparent: message.fields.get('traceparent') ?? '',
      gateway: end.remoteAddress.split(':')[0] ?? '',
      asksUsage: body.stream_options?.include_usage === true,
      end: null,
    };
    chronicle.onServed(served, message);
    if (answer.isSilent) return;
    const label = `${this.#actor.name} answers ${id}`;
    const output = new Output(end, answer.breakAt, (how) => {
      served.end = how;
      chronicle.onResponseEnd(end.peer);
    });
    const pieces = toPieces(id, answer, served.asksUsage).map(({ bytes }) => bytes);
    const steps = [
      toHead(answer, id, attempt, pieces),
      ...pieces.map((piece) => frame(answer, piece)),
      toEnd(answer),
    ];
    let atMs = answer.firstMs;
    for (const [at, bytes] of steps.entries()) {
      schedule.after(atMs, this.#actor, label, () => {
        output.write(bytes);
        if (at === steps.length - 1) output.end(answer.framing === 'close' || !answer.keepsAlive);
      });
      // The head and the first piece, and the last piece and the end, may come in one packet.
      if (at > 0 && at < pieces.length) atMs += answer.gapMs;
    }
  }
}

/** A response on its way out, up to where the plan breaks it off. */
class Output {
  readonly #end: End;
  readonly #breakAt: AnswerPlan['breakAt'];
  readonly #onEnd: (how: 'complete' | 'broken') => void;
  #sentBytes = 0;
  #isOver = false;

  constructor(end: End, breakAt: AnswerPlan['breakAt'], onEnd: (how: 'complete' | 'broken') => void) {
    this.#end = end;
    this.#breakAt = breakAt;
    this.#onEnd = onEnd;
  }

  write(bytes: Buffer): void {
    if (this.#isOver || this.#end.isClosed) return;
    const left = (this.#breakAt?.bytes ?? Number.POSITIVE_INFINITY) - this.#sentBytes;
    this.#end.write(bytes.subarray(0, Math.min(left, bytes.length)), () => undefined);
    this.#sentBytes += bytes.length;
    if (bytes.length < left) return;
    this.#isOver = true;
    if (this.#breakAt?.how === 'reset') this.#end.reset();
    this.#end.close();
    this.#onEnd('broken');
  }

  end(closes: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { isClosed } = this.#end;
    if (closes) this.#end.close();
    this.#onEnd(isClosed ? 'broken' : 'complete');
  }
}

function toHead(
  { status, kind, framing, keepsAlive }: AnswerPlan,
  id: string,
  attempt: number,
  pieces: readonly Buffer[],
): Buffer {
  const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const framed =
    framing === 'length'
      ? `Content-Length: ${length}\r\n`
      : framing === 'chunked'
        ? 'Transfer-Encoding: chunked\r\n'
        : '';
  const type = kind === 'stream' ? 'text/event-stream' : 'application/json';
  const close = framing === 'close' || !keepsAlive ? 'Connection: close\r\n' : '';
  return Buffer.from(
    `HTTP/1.1 ${status} Fine\r\nContent-Type: ${type}\r\nX-Answer: ${id}#${attempt}\r\n${framed}${close}\r\n`,
  );
}

function frame({ framing }: AnswerPlan, piece: Buffer): Buffer {
  if (framing !== 'chunked') return piece;
  return Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')]);
}

function toEnd({ framing }: AnswerPlan): Buffer {
  return Buffer.from(framing === 'chunked' ? '0\r\n\r\n' : '');
}

function write(end: End, text: string): void {
  end.write(Buffer.from(text), () => undefined);
}
