import type { End } from '../../engine/end.ts';
import type { Schedule } from '../../engine/schedule.ts';
import { hostOf, PORTS } from '../addresses.ts';
import type { ClientView } from '../checks/facts.ts';
import { HttpReader } from '../http-reader.ts';
import type { Action, RequestPlan } from '../plan.ts';
import type { WorldParts } from '../world-parts.ts';
import { Actor } from './actor.ts';

type ClientPlan = Extract<Action, { kind: 'client' }>;

/** A client that sends its requests one after another, and reads what comes. */
export class Client {
  readonly views: readonly ClientView[];
  readonly #plan: ClientPlan;
  readonly #actor: Actor;
  readonly #parts: WorldParts;
  readonly #schedule: Schedule;
  #end: End | null = null;
  #reader = new HttpReader('response', () => undefined);
  #receivedBytes = 0;
  #at = 0;
  #isPaused = false;
  #connectFailures = 0;

  constructor(plan: ClientPlan, parts: WorldParts) {
    this.#plan = plan;
    this.#parts = parts;
    this.#schedule = parts.schedule;
    this.#actor = new Actor(`client ${plan.requests[0]?.id}`);
    this.views = plan.requests.map((request) => ({
      plan: request,
      gateway: plan.gateway,
      isPrompt: plan.pauseMs < 1_000,
      startStep: null,
      isSent: false,
      response: null,
      hasLeft: false,
      isOver: false,
    }));
  }

  get isOver(): boolean {
    return this.#at >= this.views.length;
  }

  /** The connection that it has open. */
  get end(): End | null {
    return this.#end;
  }

  start(): void {
    const to = `${hostOf.gateway(this.#plan.gateway)}:${PORTS.clients}`;
    this.#parts.network.connect(hostOf.client, to, this.#actor, (error, end) => {
      this.#connectFailures = error === null ? 0 : this.#connectFailures + 1;
      if (end === null) this.#endView();
      else this.#use(end);
    });
  }

  #use(end: End): void {
    this.#end = end;
    this.#isPaused = false;
    this.#reader = this.#createReader();
    end.handler = {
      onData: (bytes) => this.#onData(bytes),
      onEnd: () => {
        this.#reader.end();
        if (this.#end === end) this.#disconnect();
      },
      onError: () => {
        if (this.#end === end) this.#disconnect();
      },
    };
    end.startReading();
    this.#send();
  }

  #createReader(): HttpReader {
    return new HttpReader('response', (message) => {
      const view = this.views[this.#at];
      if (view === undefined) return;
      if (view.startStep === null) throw new Error('a response comes before its request');
      view.response = message;
      const mayContinue =
        message.fields.get('connection') !== 'close' && view.isSent && !view.plan.halfCloses;
      if (mayContinue && this.#at + 1 < this.views.length) {
        this.#over();
        this.#schedule.after(0.1, this.#actor, 'next request', () => this.#send());
      } else this.#disconnect();
    });
  }

  #send(): void {
    const view = this.views[this.#at];
    const end = this.#end;
    if (view === undefined || end === null || view.startStep !== null) return;
    this.#receivedBytes = 0;
    view.startStep = this.#schedule.step;
    const bytes = toRequest(view.plan);
    const { pieces, pieceGapMs } = view.plan;
    const size = Math.ceil(bytes.length / pieces);
    for (let piece = 0; piece < pieces; piece++) {
      this.#schedule.after(piece * pieceGapMs, this.#actor, `writes ${view.plan.id}`, () => {
        if (this.#end !== end || end.isClosed || view.isOver) return;
        end.write(bytes.subarray(piece * size, (piece + 1) * size), () => undefined);
        if (piece < pieces - 1) return;
        view.isSent = true;
        if (view.plan.halfCloses) end.end();
      });
    }
  }

  #onData(bytes: Buffer): void {
    const view = this.views[this.#at];
    const leavesAfter = view?.plan.leavesAfterBytes ?? Number.POSITIVE_INFINITY;
    this.#receivedBytes += bytes.length;
    this.#reader.push(bytes);
    if (view !== undefined && !view.isOver && this.#receivedBytes > leavesAfter) {
      view.hasLeft = true;
      if (view.plan.leaves === 'reset') this.#end?.reset();
      this.#disconnect();
      return;
    }
    const { pauseMs } = this.#plan;
    if (pauseMs > 0 && !this.#isPaused) {
      this.#isPaused = true;
      const end = this.#end;
      end?.stopReading();
      this.#schedule.after(pauseMs, this.#actor, 'reads again', () => end?.startReading());
    }
  }

  /** The connection is gone. What is left goes on another. */
  #disconnect(): void {
    const end = this.#end;
    this.#end = null;
    end?.close();
    this.#endView();
  }

  #endView(): void {
    const view = this.views[this.#at];
    if (view !== undefined && view.response === null) view.response = this.#reader.partial;
    // The connection may have ended before it carried another request.
    if (view?.startStep !== null || this.#connectFailures > 0) this.#over();
    else this.#reader = this.#createReader();
    if (!this.isOver) this.#schedule.after(1, this.#actor, 'reconnects', () => this.start());
  }

  #over(): void {
    const view = this.views[this.#at];
    if (view === undefined) return;
    view.isOver = true;
    this.#at++;
    this.#reader = this.#createReader();
    this.#parts.chronicle.onClientEnd(view);
  }
}

/** The bytes of a request. */
function toRequest({ id, path, stream, asksUsage, promptChars }: RequestPlan): Buffer {
  const text = 'x'.repeat(promptChars);
  const input =
    path === '/v1/chat/completions'
      ? { messages: [{ role: 'user', content: text }] }
      : path === '/v1/completions'
        ? { prompt: text }
        : { input: text };
  const options = stream
    ? { stream: true, ...(asksUsage ? { stream_options: { include_usage: true } } : {}) }
    : {};
  const body = JSON.stringify({ model: 'm', ...input, ...options });
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nHost: gateway\r\nX-Tenant: ${id}\r\nX-Plan: ${id}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
}
