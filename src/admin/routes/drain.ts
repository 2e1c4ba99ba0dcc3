import { z } from 'zod';
import { withoutControls } from '#otel/base';
import { type DrainState, MAX_RAMP_MS } from '#replicas/drain-state';
import type { AdminCollaborators, FleetControl } from '../admin-collaborators.ts';
import { AdminError } from '../admin-error.ts';
import { changeDrain, type DrainResult, warnOfPropagation } from '../drains/change-drain.ts';
import { askForLastReplica, warnOfLastReplica, warnOfNoRoom } from '../drains/remaining-replicas.ts';
import { durationParam } from '../query-params.ts';
import { defineRoute, json } from '../route.ts';
import {
  absentReplicaSchema,
  replicaSchema,
  toAbsentReplicaJson,
  toDrainStatus,
  toRemovedReplicaJson,
  toReplicaJson,
} from '../schemas.ts';
import { replicaNotFound } from '../unknown-name.ts';

const MAX_WAIT_MS = 3_600_000;
const MAX_REASON_CHARS = 256;

const drainSchema = z
  .object({
    replica: z
      .union([replicaSchema, absentReplicaSchema])
      .describe(
        'An undrain also accepts the name of a replica that is not configured now but has a drain state, a drain in a ' +
          'fleet that of one that was removed a moment ago.',
      ),
    was_drained: z.boolean().describe('Whether the replica was drained before the call.'),
    stored: z
      .boolean()
      .describe('Whether the state is on disk. If not, it is applied, but a restart forgets it.'),
    scope: z
      .enum(['fleet', 'local'])
      .optional()
      .describe(
        'In a fleet: `fleet` if this gateway has read and written the shared state since the call; `local` if it could ' +
          'not, so that the other gateways receive the state later.',
      ),
    overtaken: z
      .boolean()
      .optional()
      .describe(
        'Whether a later, opposite call, perhaps on another gateway, has replaced this one. `drained` in `replica` has ' +
          'the result. Absent without a fleet, if none has.',
      ),
    unconfirmed: z
      .array(z.string())
      .readonly()
      .optional()
      .describe('In a fleet: the gateways that have not confirmed the state within 2 s, or within `wait`.'),
    warning: z.string().optional().describe('What the caller should know although the call succeeded.'),
  })
  .meta({ id: 'Drain' });

const params = { name: "The replica's name." } as const;

const reason = textParam(
  MAX_REASON_CHARS,
  'The reason. It appears with the replica, in the log and in the span of the action.',
);

/** POST /admin/replicas/{name}/drain. */
export const drainReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/drain',
  params,
  role: 'operator',
  isForDrainers: true,
  operationId: 'drainReplica',
  summary: 'Stop sending new requests to a replica',
  description:
    'After the response, no new request reaches the replica from this gateway, or from any gateway of the fleet that ' +
    '`unconfirmed` does not name. Requests in flight continue until they end. Draining a drained replica keeps ' +
    'its time, and its reason unless a new one is given. In a fleet it also replaces an earlier undrain that this ' +
    'gateway does not know yet. A drain does not need the replica to answer. It lasts until the replica is undrained, ' +
    'even across restarts. A replica that is being removed can be drained too, to wait for its last requests, in a ' +
    'fleet also one that this gateway removed up to ten minutes ago: others may still serve it. A drain token gives the reason `pod stops`.',
  query: {
    wait: durationParam(
      MAX_WAIT_MS,
      'How long the response waits for the replica to become idle. The status is 200 in either case: read ' +
        '`safe_to_stop`. An undrain also ends the wait.',
    ).optional(),
    reason: reason.optional(),
    unless_last: z
      .enum(['true', 'false'])
      .default('false')
      .describe(
        '`true`: the drain is rejected if a model would be left without a replica that answers. The gateway probes the ' +
          'other replicas first. A replica that is already drained stays drained.',
      ),
  },
  response: { description: 'The drain is applied.', content: json(drainSchema) },
  errors: ['replica_not_found', 'last_replica', 'too_many_waits'],
  async handle({ params: { name }, query, caller, signal }, collaborators) {
    const { registry, drains, fleet, idleWatcher } = collaborators;
    // An undrain that is called while other replicas are asked is the later one.
    const version = (fleet ?? drains).newVersion(name);
    const details = () => ({
      reason: caller?.role === 'drainer' ? reasonOfDrainer(drains.stateOf(name)) : query.reason,
      tokenName: caller?.name ?? null,
      version,
    });
    // A pod that stops was perhaps removed a moment ago, by what Kubernetes has told.
    const replica = registry.findAny(name);
    const others = registry.hasRemoved(name) ? fleet : null;
    const { wait: timeoutMs = 0 } = query;
    using place = timeoutMs > 0 ? idleWatcher.takePlace() : null;
    if (timeoutMs > 0 && place === null) return new AdminError('too_many_waits');
    if (replica === undefined) {
      if (others === null) return replicaNotFound(name, registry);
      return {
        body: await drainRemoved(name, details(), { timeoutMs, signal }, { ...collaborators, fleet: others }),
      };
    }
    if (query.unless_last === 'true' && !replica.drain.drained) {
      const findReason = await askForLastReplica(replica, registry.serving, collaborators.ask);
      if (!registry.all.includes(replica)) return replicaNotFound(name, registry);
      // No other call runs between this check and the drain, so the second of two such calls sees the first drain.
      const why = findReason();
      if (why !== null) return new AdminError('last_replica', { message: `Nothing was drained: ${why}.` });
    }
    const noRoom = replica.drain.drained ? null : warnOfNoRoom(replica, registry.serving);
    const result = await changeDrain(replica, 'drain', details(), collaborators);
    const isOver = () => !replica.drain.drained || toDrainStatus(replica, fleet).isSafeToStop === true;
    // Who drains a shadow wants no copies there either.
    await collaborators.endTrial(replica, caller?.name ?? null);
    await idleWatcher.waitUntil(replica, isOver, { timeoutMs, signal });
    const lastReplica = warnOfLastReplica(replica, registry.serving);
    const warnings = [...result.warnings, ...(replica.drain.drained ? [lastReplica, noRoom] : [])];
    return { body: toDrainJson('drain', () => toReplicaJson(replica, fleet), { ...result, warnings }) };
  },
});

/** POST /admin/replicas/{name}/undrain. */
export const undrainReplica = defineRoute({
  method: 'POST',
  path: '/admin/replicas/{name}/undrain',
  params,
  role: 'operator',
  isForDrainers: true,
  operationId: 'undrainReplica',
  summary: 'Send new requests to a drained replica again',
  description:
    'A name whose replica is not configured now can be undrained too, if it was ever drained. The replica then gets ' +
    'requests when it is configured. Undraining a replica that is not drained keeps its time, and its reason unless a ' +
    'new one is given. In a fleet it also replaces an earlier drain that this gateway does not know yet. In a fleet ' +
    'an undrain takes about 1 s, or 6.3 s while a gateway or the shared state cannot be used, because no gateway may ' +
    'still rely on the drain.',
  query: {
    reason: reason.optional(),
    ramp: durationParam(
      MAX_RAMP_MS,
      'How long the share of turns grows of a replica that was drained: from 5 % of an even share to all of it. `0s`: ' +
        'it gets all of it at once, and a ramp that is on ends. Default: `rollout.ramp` of the configuration.',
    ).optional(),
  },
  response: { description: 'The replica gets new requests.', content: json(drainSchema) },
  errors: ['replica_not_found', 'drained_by_other'],
  async handle({ params: { name }, query, caller }, collaborators) {
    const { registry, drains, fleet, refresh, rampMs } = collaborators;
    const replica = registry.find(name);
    if (replica === undefined && !drains.isRemembered(name)) return replicaNotFound(name, registry);
    if (caller?.role === 'drainer' && isOfOther(drains.stateOf(name)))
      return new AdminError('drained_by_other');
    // It may serve other models than before. A drain that is called meanwhile is the later one.
    const version = (fleet ?? drains).newVersion(name);
    if (replica !== undefined) await refresh(replica);
    const inflight = registry.inflightByName().get(name) ?? 0;
    const details = {
      reason: query.reason,
      tokenName: caller?.name ?? null,
      rampMs: query.ramp ?? rampMs(),
      version,
    };
    const result = await changeDrain(replica ?? { name, inflight }, 'undrain', details, collaborators);
    // The replica may have been added or removed meanwhile.
    const toJson = () => {
      const present = registry.find(name);
      return present === undefined
        ? toAbsentReplicaJson(name, { inflight, isSafeToStop: null }, drains)
        : toReplicaJson(present, fleet);
    };
    return { body: toDrainJson('undrain', toJson, result) };
  },
});

/** Drains a replica that this gateway has no more, and others may still have, and waits until it is idle there. */
async function drainRemoved(
  name: string,
  details: Parameters<typeof changeDrain>[2],
  wait: { readonly timeoutMs: number; readonly signal: AbortSignal },
  collaborators: AdminCollaborators & { readonly fleet: FleetControl },
): Promise<z.output<typeof drainSchema>> {
  const { drains, fleet, idleWatcher } = collaborators;
  const result = await changeDrain({ name, inflight: 0 }, 'drain', details, collaborators);
  const toJson = () => toRemovedReplicaJson(name, drains, fleet);
  const isOver = () => !drains.stateOf(name).drained || toJson().safe_to_stop === true;
  await idleWatcher.waitUntil({}, isOver, wait);
  return toDrainJson('drain', toJson, result);
}

/** The reason of a drain by a pod, which marks it as the pod's own. */
const POD_STOPS = 'pod stops';

/** A drain that somebody else began keeps its reason, so that the pod does not end it. */
function reasonOfDrainer(state: DrainState): string | null {
  return state.drained ? null : POD_STOPS;
}

function isOfOther({ drained, reason }: DrainState): boolean {
  return drained && reason !== POD_STOPS;
}

function toDrainJson(
  action: 'drain' | 'undrain',
  toJson: () => z.output<typeof drainSchema>['replica'],
  result: DrainResult,
): z.output<typeof drainSchema> {
  const propagation = result.propagation();
  const warnings = [...result.warnings, warnOfPropagation(action, propagation)];
  const warning = warnings.filter((each) => each !== null).join(' ');
  return {
    replica: toJson(),
    was_drained: result.wasDrained,
    stored: result.isStored,
    ...propagation,
    ...(warning === '' ? {} : { warning }),
  };
}

/** A query parameter with text for people. It is put on one line and cut to `maxChars`; null if nothing is left. */
function textParam(maxChars: number, meaning: string) {
  const text = z
    .string()
    .meta({ description: `${meaning} It is cut to ${maxChars} characters and put on one line.` });
  return text.transform((given) => {
    const line = withoutControls(given, ' ').replace(/\s+/g, ' ').trim();
    return line === '' ? null : Array.from(line).slice(0, maxChars).join('');
  });
}
