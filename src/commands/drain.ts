import { memberOf, openAdmin } from './admin-client.ts';
import type { Invocation } from './command.ts';

/** `gateway drain NAME`: a replica gets no new requests. */
export function drain(invocation: Invocation): Promise<number> {
  return change(invocation, 'drain');
}

/** `gateway undrain NAME`: a drained replica takes its turns again. */
export function undrain(invocation: Invocation): Promise<number> {
  return change(invocation, 'undrain');
}

async function change(invocation: Invocation, action: 'drain' | 'undrain'): Promise<number> {
  const { client, asJson, positionals } = await openAdmin(invocation, ['NAME']);
  const name = positionals[0] ?? '';
  const answer = await client.call('POST', `/admin/replicas/${encodeURIComponent(name)}/${action}`);
  const said = asJson ? JSON.stringify(answer, null, 2) : toSentence(name, action, answer);
  invocation.stdout.write(`${said}\n`);
  return 0;
}

function toSentence(name: string, action: 'drain' | 'undrain', answer: unknown): string {
  const wasDrained = memberOf(answer, 'was_drained') === true;
  if (action === 'undrain') return `${name} takes requests ${wasDrained ? 'again' : '(it was not drained)'}`;
  const inflight = Number(memberOf(memberOf(answer, 'replica'), 'inflight'));
  const state = inflight === 0 ? 'nothing in flight' : `${inflight} in flight`;
  return `${name} ${wasDrained ? 'was drained before' : 'is drained'}: ${state}`;
}
