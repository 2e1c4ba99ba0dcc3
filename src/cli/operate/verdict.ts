import { setTimeout as sleep } from 'node:timers/promises';
import { itemsOf, memberOf } from '#base/parsed';
import { callVerdict, openGateways } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { createPaint, type Style, toOneLine } from '#cli/terminal';
import { parseDuration } from '#config/values';
import { printJson } from '../print-json.ts';
import { toTimeText } from '../tables/time-text.ts';

/** As those of `gateway rollout`: 1 and 2 say that there is no verdict. */
export const EXIT_CODES = { good: 0, bad: 3, undecided: 4 } as const;

/** How a verdict looks. */
export const VERDICT_STYLES: Readonly<Record<keyof typeof EXIT_CODES, Style>> = {
  good: 'green',
  bad: 'red',
  undecided: 'yellow',
};

const LOOK_EVERY_MS = 1_000;

/**
 * `gateway verdict CANDIDATE [BASELINE]`: asks whether replicas are as good as others, once, or until it is known. Its exit
 * codes are in `EXIT_CODES`. Throws a UsageError or what a call throws.
 */
export async function verdict({ args, env, stdout, signals }: Invocation): Promise<number> {
  const { values, positionals } = parseOptions(args, COMMANDS.verdict.options, ['CANDIDATE', '[BASELINE]']);
  const [candidate = '', baseline = null] = positionals;
  const waitMs = values.wait === undefined ? 0 : parseDuration(values.wait);
  if (waitMs === null) throw new UsageError("option '--wait' needs a duration such as 60s or 10m");
  const question = { candidate, baseline, since: toSince(values.since) };
  const clients = await openGateways(values, env);
  const endMs = performance.now() + waitMs;
  let found = await callVerdict(clients, question, signals.shutdown);
  while (found.verdict === 'undecided' && performance.now() < endMs) {
    await sleep(LOOK_EVERY_MS, undefined, { signal: signals.shutdown }).catch(() => undefined);
    if (signals.shutdown.aborted) break;
    found = await callVerdict(clients, question, signals.shutdown);
  }
  if (values.json === true) printJson(stdout, found.answer);
  else {
    const paint = createPaint(stdout, env);
    const line = toOneLine(`${candidate} ${found.sentence}`);
    stdout.write(`${paint(line, VERDICT_STYLES[found.verdict])}\n${toSpanLine(found.answer)}\n`);
  }
  return EXIT_CODES[found.verdict];
}

/** A time stays as it is; a duration counts back from now. */
function toSince(text: string | undefined): string | null {
  if (text === undefined) return null;
  const agoMs = parseDuration(text);
  const epochMs = agoMs === null ? Date.parse(text) : Date.now() - agoMs;
  if (!Number.isFinite(epochMs) || epochMs < 0) {
    throw new UsageError(
      "option '--since' needs a time such as 2026-01-31T12:00:00Z, or a duration such as 10m",
    );
  }
  return new Date(epochMs).toISOString();
}

/** Which requests were looked at, and of whom. */
function toSpanLine(answer: unknown): string {
  const [since, from, until] = ['since', 'from', 'until'].map((name) => toTimeText(memberOf(answer, name)));
  const names = (list: string) => itemsOf(answer, list).map(String).join(', ');
  const older =
    memberOf(answer, 'complete') === false ? `; those since ${since} are asked for, but not kept` : '';
  const gateways = Number(memberOf(answer, 'gateways'));
  const ofFleet = gateways > 1 ? ` of ${gateways} gateways` : '';
  return toOneLine(
    `requests${ofFleet} from ${from} to ${until}${older}; ${names('candidate')} beside ${names('baseline')}`,
  );
}
