import {
  type IExportMetricsServiceResponse,
  type ISerializer,
  JsonMetricsSerializer,
  ProtobufMetricsSerializer,
} from '@opentelemetry/otlp-transformer';
import { DataPointType, type ResourceMetrics } from '@opentelemetry/sdk-metrics';
import type { OtlpProtocol } from '#otel/collector';
import { ProtobufReader, ProtobufWriter, toTag, WIRE_TYPE } from '#otel/encoding';
import type { Distribution, Exemplar } from '../metric-data.ts';

/** How a call with metrics is written, and its answer read. */
export type MetricsSerializer = ISerializer<ResourceMetrics, IExportMetricsServiceResponse>;

/** The exemplars of each point of the histograms, in the order in which they are written. */
type ExemplarLists = readonly (readonly Exemplar[])[];

/**
 * The SDK's serializer, and the exemplars of the histograms, which the SDK's data has no place for (OpenTelemetry JS
 * 3.1). They are added to what the SDK has written. `sinceEpochMs`: older ones were sent before.
 */
export function createMetricsSerializer(
  protocol: OtlpProtocol,
  sinceEpochMs: () => number,
): MetricsSerializer {
  const sdk = protocol === 'http/json' ? JsonMetricsSerializer : ProtobufMetricsSerializer;
  const insert = protocol === 'http/json' ? insertIntoJson : insertIntoProtobuf;
  return {
    serializeRequest(metrics) {
      const bytes = sdk.serializeRequest(metrics);
      const lists = toExemplarLists(metrics, sinceEpochMs());
      return bytes === undefined || lists.every((list) => list.length === 0) ? bytes : insert(bytes, lists);
    },
    deserializeResponse: (bytes) => sdk.deserializeResponse(bytes),
  };
}

function toExemplarLists({ scopeMetrics }: ResourceMetrics, sinceEpochMs: number): ExemplarLists {
  return scopeMetrics
    .flatMap(({ metrics }) => metrics)
    .flatMap((metric) => (metric.dataPointType === DataPointType.HISTOGRAM ? metric.dataPoints : []))
    .map(({ value }) => {
      // All histograms come from toHistogramData.
      const { exemplars = [] }: Distribution = value as Distribution;
      return exemplars.filter(
        (each) => each !== undefined && each.trace.recordedEpochMs >= sinceEpochMs,
      ) as Exemplar[];
    });
}

/** What is read of a call in JSON. */
interface JsonCall {
  readonly resourceMetrics: readonly {
    readonly scopeMetrics: readonly {
      readonly metrics: readonly { readonly histogram?: { readonly dataPoints: readonly object[] } }[];
    }[];
  }[];
}

function insertIntoJson(bytes: Uint8Array, lists: ExemplarLists): Uint8Array {
  const call = JSON.parse(Buffer.from(bytes).toString()) as JsonCall;
  const points = call.resourceMetrics
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics }) => metrics)
    .flatMap(({ histogram }) => histogram?.dataPoints ?? []);
  for (const [index, point] of points.entries()) {
    const exemplars = lists[index]?.map(({ trace: { traceId, recordedEpochMs }, value }) => ({
      timeUnixNano: `${BigInt(recordedEpochMs) * 1_000_000n}`,
      asDouble: value,
      traceId,
    }));
    Object.assign(point, { exemplars });
  }
  return Buffer.from(JSON.stringify(call));
}

const { fixed64, bytes: sized } = WIRE_TYPE;

/** The tags of an exemplar and of its fields (opentelemetry-proto, metrics.proto). */
const EXEMPLAR = {
  tag: toTag(8, sized),
  time: toTag(2, fixed64),
  double: toTag(3, fixed64),
  traceId: toTag(5, sized),
} as const;

/**
 * The tags of the messages around a point of a histogram, from the outermost on: resource_metrics, scope_metrics, metrics,
 * histogram, data_points (metrics_service.proto, metrics.proto).
 */
const PATH: readonly number[] = [1, 2, 2, 9, 1].map((field) => toTag(field, sized));

/** The memory of a writer grows. */
const MORE_BYTES = 4096;

function insertIntoProtobuf(bytes: Uint8Array, lists: ExemplarLists): Uint8Array {
  const reader = new ProtobufReader(bytes);
  const writer = new ProtobufWriter(bytes.length + MORE_BYTES);
  const remaining = lists.values();
  copyMessage(reader.end, 0);
  return writer.bytes.subarray(0, writer.at);

  /** Copies the fields of a message that is `depth` messages down the path. */
  function copyMessage(end: number, depth: number): void {
    for (let start = reader.at; reader.next(end); start = reader.at) {
      if (reader.tag !== PATH[depth]) {
        reader.skip();
        writer.raw(bytes.subarray(start, reader.at));
        continue;
      }
      const begun = writer.begin(reader.tag);
      copyMessage(reader.message(), depth + 1);
      writer.end(begun);
    }
    if (depth === PATH.length) for (const each of remaining.next().value ?? []) writeExemplar(writer, each);
  }
}

function writeExemplar(writer: ProtobufWriter, { trace, value }: Exemplar): void {
  const { traceId, recordedEpochMs } = trace;
  const begun = writer.begin(EXEMPLAR.tag);
  writer.reserve(20 + traceId.length);
  writer.byte(EXEMPLAR.time);
  writer.time([Math.floor(recordedEpochMs / 1000), (recordedEpochMs % 1000) * 1e6]);
  writer.byte(EXEMPLAR.double);
  writer.double(value);
  const id = writer.begin(EXEMPLAR.traceId);
  writer.hex(traceId);
  writer.end(id);
  writer.end(begun);
}
