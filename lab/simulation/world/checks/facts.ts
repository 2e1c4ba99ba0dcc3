import type { AnswerPlan } from '../answers.ts';
import { type Message, statusOf } from '../http-reader.ts';
import type { RequestPlan } from '../plan.ts';

/** What a client has seen of one of its requests. */
export interface ClientView {
  readonly plan: RequestPlan;
  readonly gateway: number;
  /** Whether it reads at once, or nearly so. */
  readonly isPrompt: boolean;
  /** The step of its first byte; null: it was never sent. */
  startStep: number | null;
  isSent: boolean;
  /** What arrived of the response; null: nothing. */
  response: Message | null;
  /** The client has ended it on its own. */
  hasLeft: boolean;
  isOver: boolean;
}

/** What a replica did with one request. */
export interface Served {
  readonly plan: RequestPlan;
  readonly answer: AnswerPlan;
  /** 1 for the first time that a replica got it. */
  readonly attempt: number;
  readonly requestId: string;
  readonly traceparent: string;
  readonly replica: number;
  readonly gateway: string;
  readonly asksUsage: boolean;
  /** Null until the replica has answered all, or has broken off. */
  end: 'complete' | 'broken' | null;
}

/** A record or a ledger span, as the collector or a file got it. */
export interface CollectedSpan {
  readonly spanId: string;
  readonly traceId: string;
  readonly attributes: Readonly<Record<string, string | number | boolean>>;
  /** The span in OTLP JSON. */
  readonly json: object;
}

/** The answer to a call of the admin API. */
export interface AdminAnswer {
  readonly status: number;
  readonly json: Readonly<Record<string, unknown>>;
}

/** Whether a response is one that a replica has made. */
export function isFromReplica({ fields }: Message): boolean {
  return fields.has('x-answer');
}

/** For messages of findings. */
export function describe(view: ClientView): string {
  const { plan, response } = view;
  const seen =
    response === null
      ? 'no response'
      : `${statusOf(response)}, ${response.body.length} bytes, ${response.isComplete ? 'complete' : 'cut'}`;
  return `${plan.id} ${plan.path}${plan.stream ? ' stream' : ''}: ${seen}`;
}
