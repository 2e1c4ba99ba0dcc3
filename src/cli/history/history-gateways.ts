import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, openGateways, type SeveralGateways } from '#cli/admin-client';
import { type Invocation, type TextSink, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { LocalTime } from './local-time.ts';

/** What a command line says of gateways and of a span. */
export interface HistoryOptions extends SeveralGateways {
  readonly since?: string;
  readonly until?: string;
  readonly 'time-zone'?: string;
}

/** An answer of the history of one gateway. */
export interface Answered {
  readonly baseUrl: string;
  readonly answer: unknown;
}

/**
 * Opens the gateways that a command line names, each once, also if it has two names: it would be summed twice. Throws what a
 * call throws.
 */
export async function openHistories(
  options: SeveralGateways,
  { env, stderr }: Pick<Invocation, 'env' | 'stderr'>,
): Promise<readonly AdminClient[]> {
  const clients = await openGateways(options, env);
  if (clients.length === 1) return clients;
  const ids = await Promise.all(
    clients.map(async (client) => memberOf(await client.call('GET', '/admin/gateways'), 'instance_id')),
  );
  return clients.filter(({ baseUrl }, index) => {
    const first = clients[ids.indexOf(ids[index])];
    if (first === undefined || first.baseUrl === baseUrl) return true;
    stderr.write(`gateway: ${baseUrl} is the same gateway as ${first.baseUrl}: it counts once\n`);
    return false;
  });
}

/** The query of a span. Dates and words are read in the zone of the command, wherever the gateways are. */
export function toSpanQuery({ since, until, 'time-zone': zone }: HistoryOptions): {
  readonly query: Readonly<Record<string, string>>;
  readonly time: LocalTime;
} {
  const time = toLocalTime(zone);
  const given = Object.entries({ since, until, time_zone: time.zone });
  const query = given.filter((entry): entry is [string, string] => entry[1] !== undefined);
  return { query: Object.fromEntries(query), time };
}

function toLocalTime(zone: string | undefined): LocalTime {
  try {
    return new LocalTime(zone ?? new Intl.DateTimeFormat().resolvedOptions().timeZone);
  } catch {
    throw new UsageError("option '--time-zone' needs a time zone such as Europe/Berlin");
  }
}

/** Says of each answer what is missing in it, and what else there is to know. */
export function reportLacks(stderr: TextSink, answers: readonly Answered[], time: LocalTime): void {
  const isOne = answers.length === 1;
  for (const { baseUrl, answer } of answers) {
    const say = (text: string) =>
      stderr.write(`gateway: ${toOneLine(isOne ? text : `${baseUrl}: ${text}`)}\n`);
    const note = memberOf(answer, 'note');
    if (typeof note === 'string') say(note);
    for (const gap of itemsOf(answer, 'gaps')) say(toGapText(gap, time));
  }
}

function toGapText(gap: unknown, time: LocalTime): string {
  const [from, until] = ['from', 'until'].map((name) => time.toRfc3339(memberOf(gap, name)));
  const count = memberOf(gap, 'records');
  const reason = String(memberOf(gap, 'reason'));
  const why = GAP_REASONS.get(reason) ?? reason;
  if (typeof count !== 'number')
    return `records that ended between ${from} and ${until} may be missing: ${why}`;
  return `${count} records between ${from} and ${until} are missing: ${why}`;
}

const GAP_REASONS: ReadonlyMap<string, string> = new Map([
  ['behind', 'the history could not be written quickly enough, or not at all'],
  ['unencodable', 'they have no span'],
  ['killed', 'the gateway ended without a shutdown; it is the last second at most'],
  ['thread_ended', 'the thread of the history ended by an error'],
  ['lost', 'a worker died with them, or could not hand them over'],
  ['off', 'the history was off'],
  ['damaged', 'their sums in the file are damaged, and left out'],
  ['waiting', 'they cannot be written now'],
]);
