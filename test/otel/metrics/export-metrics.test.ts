import { describe, expect, test } from 'vitest';
import { ExportCounters } from '#otel/queue';
import { ExportMetrics } from '../../../otel/metrics/export-metrics.ts';
import { INTERVAL, pointsOf, totalOf } from './collected.ts';

const COLLECTOR = new URL('http://collector.example:4318/v1/traces');
const EXPORTER = {
  'otel.component.type': 'otlp_http_json_span_exporter',
  'otel.component.name': 'otlp_http_json_span_exporter/0',
  'server.address': 'collector.example',
  'server.port': 4318,
};
const PROCESSOR = {
  'otel.component.type': 'spangate.RecordProcessor',
  'otel.component.name': 'spangate.RecordProcessor/0',
};

const toState = (counts: Partial<ExportCounters['values']>, queued = 0, inflight = 0) => ({
  stats: { ...new ExportCounters().values, ...counts, queued },
  queueCapacity: 16_384,
  inflight,
});

const pointValues = (metrics: ReturnType<ExportMetrics['collect']>, name: string) =>
  pointsOf(metrics, name).map(({ attributes, value }) => ({ attributes, value }));

describe('the metrics of the export, by the conventions of SDK metrics', () => {
  test('have the queue, the current batch, dropped and rejected records with their error types', () => {
    const state = toState({ recorded: 100, exported: 60, rejected: 5, dropped: 3 }, 32, 12);
    const metrics = new ExportMetrics(COLLECTOR).collect(state, INTERVAL);
    expect(pointValues(metrics, 'otel.sdk.processor.span.queue.size')).toEqual([
      { attributes: PROCESSOR, value: 32 },
    ]);
    expect(pointValues(metrics, 'otel.sdk.processor.span.queue.capacity')).toEqual([
      { attributes: PROCESSOR, value: 16_384 },
    ]);
    expect(pointValues(metrics, 'otel.sdk.processor.span.processed')).toEqual([
      { attributes: PROCESSOR, value: 77 },
      { attributes: { ...PROCESSOR, 'error.type': 'queue_full' }, value: 3 },
    ]);
    expect(pointValues(metrics, 'otel.sdk.exporter.span.inflight')).toEqual([
      { attributes: EXPORTER, value: 12 },
    ]);
    expect(pointValues(metrics, 'otel.sdk.exporter.span.exported')).toEqual([
      { attributes: EXPORTER, value: 60 },
      { attributes: { ...EXPORTER, 'error.type': 'rejected' }, value: 5 },
    ]);
  });

  test('say plainly how many records were exported, dropped, rejected and lost', () => {
    const state = toState({ recorded: 100, restored: 2, exported: 60, rejected: 5, dropped: 3, lost: 1 });
    const metrics = new ExportMetrics(COLLECTOR).collect(state, INTERVAL);
    const total = (name: string) => totalOf(metrics, `gateway.export.${name}`);
    expect(['recorded', 'restored', 'exported', 'dropped', 'rejected', 'lost'].map(total)).toEqual([
      100, 2, 60, 3, 5, 1,
    ]);
  });

  test('have the default port of an address without one', () => {
    const ports = ['http://collector', 'https://collector', 'https://collector:8443'].map((url) => {
      const metrics = new ExportMetrics(new URL(url)).collect(toState({}), INTERVAL);
      return pointsOf(metrics, 'otel.sdk.exporter.span.inflight')[0]?.attributes['server.port'];
    });
    expect(ports).toEqual([80, 443, 8443]);
  });

  test('name another exporter, and no address, for records in files', () => {
    const metrics = new ExportMetrics(undefined).collect(toState({ exported: 1 }), INTERVAL);
    expect(pointsOf(metrics, 'otel.sdk.exporter.span.inflight')[0]?.attributes).toEqual({
      'otel.component.type': 'spangate.FileExporter',
      'otel.component.name': 'spangate.FileExporter/0',
    });
  });

  test('do not shrink when a batch is sent again in parts', () => {
    const exporting = new ExportMetrics(COLLECTOR);
    const processed = [512, 0, 256].map((inflight) =>
      totalOf(exporting.collect(toState({}, 512, inflight), INTERVAL), 'otel.sdk.processor.span.processed'),
    );
    expect(processed).toEqual([512, 512, 512]);
  });
});
