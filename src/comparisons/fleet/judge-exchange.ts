import { hash, randomBytes } from 'node:crypto';
import type { Comparison } from '#verdict';
import { type FleetFacts, type FleetQuestion, parseJudgeMessage, printJudgeMessage } from './judge-text.ts';

/** On which gateways tell each other something that may get lost. */
export interface JudgeChannel {
  publish(message: string): void;
  close(): void;
}

/** Gateways whose facts of one question are kept, with those that have restarted since. */
const MAX_GATEWAYS = 64;
const MAX_MESSAGE_CHARS = 4 * 1024 ** 2;
/** The part of a gateway's id that it has again after a restart. */
const LASTING_CHARS = 8;

/** Tells the other gateways of a fleet what is asked here and what is known here, and keeps what they know. */
export class JudgeExchange {
  readonly #openChannel: (onMessage: (message: string) => void) => JudgeChannel;
  readonly #gateway: string;
  /** By question, and by who knows it. */
  readonly #facts = new Map<string, Map<string, Comparison>>();
  #channel: JudgeChannel | null = null;
  #onQuestion: (question: FleetQuestion) => void = () => undefined;

  /** @param instanceId the same after a restart, and of no other gateway of the fleet */
  constructor(openChannel: (onMessage: (message: string) => void) => JudgeChannel, instanceId: string) {
    this.#openChannel = openChannel;
    this.#gateway = hash('sha256', instanceId).slice(0, LASTING_CHARS) + randomBytes(4).toString('hex');
  }

  /** `onQuestion`: called whenever another gateway tells that it wants to know something. */
  start(onQuestion: (question: FleetQuestion) => void): void {
    this.#onQuestion = onQuestion;
    this.#channel = this.#openChannel((message) => this.#hear(message));
  }

  stop(): void {
    this.#channel?.close();
    this.#channel = null;
  }

  /** Tells the others. `questions`: those that somebody has asked here. */
  tell(questions: readonly FleetQuestion[], facts: readonly FleetFacts[]): void {
    if (questions.length + facts.length === 0) return;
    this.#channel?.publish(printJudgeMessage({ gateway: this.#gateway, questions, facts }));
  }

  /** A question that is asked here: what others tell of it is kept from now on. */
  begin(id: string): void {
    if (!this.#facts.has(id)) this.#facts.set(id, new Map());
  }

  /** Nobody asks any more. */
  end(id: string): void {
    this.#facts.delete(id);
  }

  /** What the others know of a question, each by its own requests. */
  factsOf(id: string): readonly Comparison[] {
    return [...(this.#facts.get(id)?.values() ?? [])];
  }

  /** How many others that is, with what they have told before a restart. */
  gatewaysOf(id: string): number {
    const ids = this.#facts.get(id)?.keys() ?? [];
    return new Set(Array.from(ids, (gateway) => gateway.slice(0, LASTING_CHARS))).size;
  }

  #hear(text: string): void {
    const message = text.length > MAX_MESSAGE_CHARS ? null : parseJudgeMessage(text);
    if (message === null || message.gateway === this.#gateway) return;
    for (const question of message.questions) this.#onQuestion(question);
    for (const { id, comparison } of message.facts) {
      const known = this.#facts.get(id);
      if (known === undefined || (known.size >= MAX_GATEWAYS && !known.has(message.gateway))) continue;
      known.set(message.gateway, comparison);
    }
  }
}
