import { allows } from '#config/secrets';
import type { RequestRecord } from '#otel/record/registry';
import type { FleetControl, GatewayIdentity } from '../../admin-collaborators.ts';
import { toConditionsJson } from '../../condition-schema.ts';
import type { EventLoopShare } from '../../dashboard/event-loop-shares.ts';
import { type Overview, overviewSchema } from '../../dashboard/overview.ts';
import { toFiguresJson, toReplicaFiguresJson } from '../../dashboard/overview-json.ts';
import { mapInTurns } from '../../in-turns.ts';
import { defineRoute, json } from '../../route.ts';
import { toReplicaJson, toStatsJson } from '../../schemas.ts';
import { afterParam, roundTo3, toRecordJson } from '../../shown-record.ts';
import { toSourceJson } from '../../source-schema.ts';

/** The most records in one response. The dashboard keeps no more. */
const MAX_RECORDS = 500;

/** GET /admin/overview. */
export const showOverview = defineRoute({
  method: 'GET',
  path: '/admin/overview',
  operationId: 'showOverview',
  summary: 'Everything that the dashboard shows, in one response',
  description:
    'This call is made for the dashboard and may change with it. Other programs should use the other calls.',
  query: { after: afterParam },
  response: { description: 'The current state.', content: json(overviewSchema) },
  async handle(
    { query, caller },
    { settleRecords, registry, conditions, sources, fleet, stats, dashboard, recentRecords, history },
  ) {
    await settleRecords();
    const figures = dashboard.figures();
    const { latest, failures } = recentRecords.latestAndFailures({
      limit: MAX_RECORDS,
      after: Number(query.after),
    });
    const { waiting } = registry;
    const gateway = dashboard.gateway();
    const { connections, bufferedBytes } = dashboard.usage();
    return {
      body: {
        ...toFiguresJson(figures, Date.now()),
        replicas: await mapInTurns(registry.all, (replica) => ({
          ...toReplicaJson(replica, fleet),
          ...toReplicaFiguresJson(figures, replica.name),
        })),
        conditions: toConditionsJson(conditions()),
        sources: sources().map(toSourceJson),
        waiting,
        saturation: {
          workers: figures.eventLoops.map(toWorkerJson),
          connections,
          buffered_bytes: bufferedBytes,
          waiting,
        },
        started_at: gateway.startedAt,
        gateway: toGatewayJson(gateway),
        trace_url_template: dashboard.traceUrlTemplate(),
        stats: toStatsJson(stats()),
        queue_size: dashboard.queueSize,
        export_to: dashboard.exportTo,
        records: latest.map(toShortJson),
        failures: failures.map(toShortJson),
        last_record: recentRecords.lastNumber,
        keeps_history: history.state !== null,
        other_gateways: fleet === null ? null : toOthers(fleet),
        can_change: caller !== null && allows(caller.role, 'operator'),
      },
    };
  },
});

/** The names of the other gateways that run. */
function toOthers(fleet: FleetControl): readonly string[] {
  return fleet
    .gateways()
    .filter(({ isSelf, isAlive }) => isAlive && !isSelf)
    .map(({ name }) => name);
}

function toGatewayJson(gateway: GatewayIdentity): Overview['gateway'] {
  const { name, host, pid, version, startedAt, configLoadedAt, workers } = gateway;
  return { name, host, pid, version, started_at: startedAt, config_loaded_at: configLoadedAt, workers };
}

function toWorkerJson({ worker, share }: EventLoopShare): Overview['saturation']['workers'][number] {
  return { worker, event_loop_utilization: roundTo3(share) };
}

function toShortJson({ prefix_hashes: _hashes, timings: _timings, ...shown }: RequestRecord) {
  return toRecordJson(shown);
}
