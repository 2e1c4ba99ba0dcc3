import { CLIENT_CERTIFICATES } from './client-certificates.ts';
import { CONNECTIONS } from './connections.ts';
import { GARBAGE } from './garbage.ts';
import { HELLOS } from './hellos.ts';
import { STALLS } from './stalls.ts';
import type { TlsAttack } from './tls-attack.ts';

/** All attacks below and around TLS, by what they are about. */
export const TLS_ATTACKS: readonly { readonly group: string; readonly attacks: readonly TlsAttack[] }[] = [
  { group: 'TLS: hellos', attacks: HELLOS },
  { group: 'TLS: records and other protocols', attacks: GARBAGE },
  { group: 'TLS: connections, tickets, truncation', attacks: CONNECTIONS },
  { group: 'TLS: stalls and crowds', attacks: STALLS },
  { group: 'TLS: certificates of clients', attacks: CLIENT_CERTIFICATES },
];
