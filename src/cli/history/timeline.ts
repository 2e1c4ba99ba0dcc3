import { itemsOf, memberOf, textOf } from '#base/parsed';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { type Cell, type Column, createPaint, tableWidthOf, toTable } from '#cli/terminal';
import { printJson } from '../print-json.ts';
import { type Answered, openHistories, reportLacks, toSpanQuery } from './history-gateways.ts';
import type { LocalTime } from './local-time.ts';

const MAX_EVENTS = 9_999;

/**
 * `gateway timeline`: shows what happened in a span, the oldest first, of all gateways that are named. Throws a UsageError
 * or what a call throws.
 */
export async function timeline({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.timeline.options);
  const { query, time } = toSpanQuery(values);
  const limit = values.limit ?? '500';
  if (!/^[1-9]\d{0,3}$/.test(limit)) {
    throw new UsageError(`option '--limit' needs a whole number from 1 to ${MAX_EVENTS}`);
  }
  const clients = await openHistories(values, { env, stderr });
  const answers = await Promise.all(
    clients.map(async (client) => ({
      baseUrl: client.baseUrl,
      answer: await client.call('GET', `/admin/timeline?${new URLSearchParams({ ...query, limit })}`),
    })),
  );
  reportLacks(stderr, answers, time);
  if (answers.some(({ answer }) => memberOf(answer, 'next') !== null)) {
    stderr.write('gateway: there are more events: give a larger --limit, or a shorter span\n');
  }
  if (values.json) {
    const [only] = answers;
    printJson(stdout, only !== undefined && answers.length === 1 ? only.answer : { gateways: answers });
    return 0;
  }
  const events = answers
    .flatMap((answered) => itemsOf(answered.answer, 'events').map((event) => ({ event, answered })))
    .toSorted((a, b) => Date.parse(textOf(a.event, 'from')) - Date.parse(textOf(b.event, 'from')));
  if (events.length === 0) stdout.write(`nothing happened in this span (${time.zone})\n`);
  else {
    const rows = events.map(({ event, answered }) =>
      toCells(event, answers.length > 1 ? answered : null, time),
    );
    const look = { paint: createPaint(stdout, env), width: tableWidthOf(stdout) };
    stdout.write(toTable(toColumns(time, answers.length > 1), rows, look));
  }
  return 0;
}

function toColumns({ zone }: LocalTime, hasGateways: boolean): readonly Column[] {
  return [
    { head: `FROM (${zone})` },
    { head: 'LASTED' },
    ...(hasGateways ? [{ head: 'GATEWAY', least: 12, rank: 2 }] : []),
    { head: 'WHAT' },
    { head: 'OF', least: 12, rank: 1 },
    { head: 'DETAILS', least: 20, cut: 'end' },
  ];
}

function toCells(event: unknown, answered: Answered | null, time: LocalTime): Cell[] {
  const kind = textOf(event, 'kind');
  const details = memberOf(event, 'details');
  const subject = kind === 'condition' ? textOf(details, 'subject') : textOf(event, 'subject');
  return [
    time.toCell(memberOf(event, 'from')),
    toLength(event),
    ...(answered === null ? [] : [answered.baseUrl]),
    kind.replaceAll('_', ' '),
    subject,
    toDetails(details, kind),
  ];
}

function toLength(event: unknown): string {
  const until = memberOf(event, 'until');
  if (until === null) return 'goes on';
  const seconds = (Date.parse(String(until)) - Date.parse(textOf(event, 'from'))) / 1_000;
  if (!(seconds > 0)) return '-';
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${(seconds / 3_600).toFixed(1)} h` : `${(seconds / 86_400).toFixed(1)} d`;
}

/** A sentence if there is one, then what else is known, but for what another column has. */
function toDetails(details: unknown, kind: string): string {
  if (typeof details !== 'object' || details === null) return '';
  const sentence = textOf(details, 'sentence');
  const hidden = kind === 'condition' ? ['sentence', 'subject', 'id'] : ['sentence', 'trace_id'];
  const others = Object.entries(details)
    .filter(([name, value]) => !hidden.includes(name) && value !== null && value !== '' && value !== false)
    .map(([name, value]) =>
      value === true ? name.replaceAll('_', ' ') : `${name.replaceAll('_', ' ')} ${value}`,
    );
  return [...(sentence === '' ? [] : [sentence]), ...others].join(', ');
}
