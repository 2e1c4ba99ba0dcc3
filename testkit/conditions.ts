import { expect } from 'vitest';
import type { StartedGateway } from './start-gateway.ts';

/** A condition as GET /admin/conditions shows it. */
export interface ShownCondition {
  readonly id: string;
  readonly severity: string;
  readonly subject: string;
  readonly sentence: string;
  readonly since: string;
  readonly figures: Readonly<Record<string, string | number>>;
}

/** Begins and ends take seconds by the registry. */
const PACE = { interval: 250 };

/** The conditions of these ids that are on now; without ids all. */
export async function conditionsOf(
  gateway: { readonly admin: (path: string) => Promise<Response> },
  ...ids: readonly string[]
): Promise<readonly ShownCondition[]> {
  const answer = (await (await gateway.admin('/admin/conditions')).json()) as {
    conditions: ShownCondition[];
  };
  return answer.conditions.filter(({ id }) => ids.length === 0 || ids.includes(id));
}

/** Resolves with a condition as soon as it is on. */
export async function untilCondition(gateway: StartedGateway, id: string): Promise<ShownCondition> {
  let found: ShownCondition | undefined;
  await expect
    .poll(async () => {
      [found] = await conditionsOf(gateway, id);
      return found?.id;
    }, PACE)
    .toBe(id);
  if (found === undefined) throw new Error(`${id} is not on`);
  return found;
}

/** Resolves as soon as none of these conditions is on. */
export async function untilOver(gateway: StartedGateway, ...ids: readonly string[]): Promise<void> {
  await expect.poll(() => conditionsOf(gateway, ...ids), PACE).toEqual([]);
}

/** The messages of the lines that the log has of a condition. */
export function linesOf({ logLines }: Pick<StartedGateway, 'logLines'>, id: string): readonly string[] {
  return logLines
    .map((line) => JSON.parse(line))
    .filter(({ condition }) => condition === id)
    .map(({ msg }) => msg);
}
