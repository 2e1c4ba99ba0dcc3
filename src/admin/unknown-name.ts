import { closestName } from '#base';
import { ADMIN_ERRORS, AdminError } from './admin-error.ts';

/** How many of the names there are an error lists. */
const MAX_LISTED = 8;

/** The error for a name that no replica has. */
export function replicaNotFound(
  name: string,
  registry: { readonly all: readonly { readonly name: string }[] },
): AdminError {
  return unknownName(
    'replica_not_found',
    name,
    registry.all.map((replica) => replica.name),
  );
}

/** The error for a name that no gateway of the fleet has. */
export function gatewayNotFound(name: string, gateways: readonly { readonly name: string }[]): AdminError {
  return unknownName(
    'gateway_not_found',
    name,
    gateways.map((gateway) => gateway.name),
  );
}

/** The error for a name that nothing has: it says what was probably meant, and which names there are. */
function unknownName(
  code: 'replica_not_found' | 'gateway_not_found',
  name: string,
  known: readonly string[],
): AdminError {
  const meant = closestName(name, known);
  const hint = meant === null ? '' : `Did you mean ${meant}? `;
  return new AdminError(code, { message: `${ADMIN_ERRORS[code].message} ${hint}${toList(known)}` });
}

function toList(known: readonly string[]): string {
  if (known.length === 0) return 'There are none.';
  const more = known.length - MAX_LISTED;
  const listed = known.slice(0, MAX_LISTED).join(', ');
  return more > 0 ? `Known: ${listed} and ${more} more.` : `Known: ${listed}.`;
}
