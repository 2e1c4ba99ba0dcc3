import { CLIENT_CERTIFICATES } from './certificates/client-certificates.ts';
import { CONNECTIONS } from './connections.ts';
import { GARBAGE } from './garbage.ts';
import { HELLOS } from './hellos.ts';
import { STALLS } from './stalls.ts';
import type { TlsAttack } from './tls-attack.ts';

const GROUPS: readonly { readonly group: string; readonly attacks: readonly TlsAttack[] }[] = [
  { group: 'hellos', attacks: HELLOS },
  { group: 'records and other protocols', attacks: GARBAGE },
  { group: 'connections, tickets, truncation', attacks: CONNECTIONS },
  { group: 'stalls and crowds', attacks: STALLS },
  { group: 'certificates of clients', attacks: CLIENT_CERTIFICATES },
];

/** All attacks below and around TLS, by what they are about: on the listener for clients, and on that of the admin API. */
export const TLS_ATTACKS = (['clients', 'admin'] as const).flatMap((listeners) =>
  GROUPS.map(({ group, attacks }) => ({
    group: `${listeners === 'clients' ? 'TLS' : 'admin API, TLS'}: ${group}`,
    attacks: attacks.map((attack) => {
      const { outcome, adminOutcome = outcome } = attack;
      return { ...attack, listeners, outcome: listeners === 'clients' ? outcome : adminOutcome };
    }),
  })),
);
