import { StartError } from '#base';
import { itemsOf, memberOf } from '#base/parsed';
import type { AdminClient } from '#cli/admin-client';

/** What a gateway has answered. */
export interface Look {
  readonly baseUrl: string;
  /** An answer with `conditions`; null: there was none yet. */
  readonly answer: unknown;
  /** Why there is no answer now; null: there is one. */
  readonly problem: string | null;
}

/** Asks a gateway. What it refuses, and that it does not answer, is a problem and no error. */
export async function lookAt(client: AdminClient, path: string, signal?: AbortSignal): Promise<Look> {
  const { baseUrl } = client;
  try {
    return { baseUrl, answer: await client.call('GET', path, signal), problem: null };
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return { baseUrl, answer: null, problem: error.message };
  }
}

/** The conditions of an answer, in the order of the gateway: the most severe first, then the oldest. */
export function conditionsOf({ answer }: Look): readonly unknown[] {
  return itemsOf(answer, 'conditions');
}

/** Changes when a condition begins or ends, or a gateway begins or ceases to answer; not with figures. */
export function toChangeKey(looks: readonly Look[]): string {
  const keys = looks.map((look) => [
    look.problem === null,
    ...conditionsOf(look).map((condition) =>
      ['id', 'subject', 'severity'].map((member) => memberOf(condition, member)),
    ),
  ]);
  return JSON.stringify(keys);
}
