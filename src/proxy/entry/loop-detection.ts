import { randomBytes } from 'node:crypto';
import type { Fields } from '#wire/message';

/*
 * Requests that come back. A gateway names itself in the Via field of every request to a replica (RFC 9110 7.6.3), and
 * refuses a request that names it: some replica's url leads back to it, directly or through other proxies. Without this
 * the request would go round until all connections are taken.
 */

/** A gateway's name in Via: random, so that no other gateway has it, and no client can guess it. */
const VIA_NAME = /\bspangate-[0-9a-f]{16}\b/g;

/**
 * How many gateways may be in series. More is a loop through a balancer, in which each round meets other gateways of the
 * same fleet.
 */
const MAX_IN_SERIES = 8;

/** Makes up the name of a gateway. All its threads use the same one. */
export function createViaName(): string {
  return `spangate-${randomBytes(8).toString('hex')}`;
}

/** Whether a request has already been at the gateway of this name, or at too many others. */
export function isLoop(fields: Fields, viaName: string): boolean {
  const via = fields.get('via');
  if (via === undefined) return false;
  return via.includes(viaName) || (via.match(VIA_NAME)?.length ?? 0) >= MAX_IN_SERIES;
}
