import type { Attack } from './attack.ts';
import { BODIES } from './bodies.ts';
import { EARLY_ANSWERS } from './early-answers.ts';
import { REPLICA } from './replica.ts';
import { REQUESTS } from './requests.ts';
import { SLOW } from './slow.ts';
import { SMUGGLING } from './smuggling.ts';

/** All attacks, by what they are about. */
export const ATTACKS: readonly { readonly group: string; readonly attacks: readonly Attack[] }[] = [
  { group: 'request smuggling', attacks: SMUGGLING },
  { group: 'targets, protocols, hosts, bombs', attacks: REQUESTS },
  { group: 'slow clients, replicas that read slowly', attacks: SLOW },
  { group: 'hostile replica', attacks: REPLICA },
  { group: 'expectations and trailer fields', attacks: BODIES },
  { group: 'early answers, slow readers', attacks: EARLY_ANSWERS },
];
