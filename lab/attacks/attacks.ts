import type { Attack } from './attack.ts';
import { REPLICA } from './replica.ts';
import { REQUESTS } from './requests.ts';
import { SLOW } from './slow.ts';
import { SMUGGLING } from './smuggling.ts';

/** All attacks, by what they are about. */
export const ATTACKS: readonly { readonly group: string; readonly attacks: readonly Attack[] }[] = [
  { group: 'request smuggling', attacks: SMUGGLING },
  { group: 'targets, protocols, hosts, bombs', attacks: REQUESTS },
  { group: 'slow clients', attacks: SLOW },
  { group: 'hostile replica', attacks: REPLICA },
];
