import { describe, expect, test } from 'vitest';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { ExportLog } from '../../../otel/export/export-log.ts';

/** The fields of the line about a failed call to this collector. */
function fieldsOf(reason: string, address: string) {
  const log = createQuietLog();
  const exportLog = new ExportLog(log, new VirtualClock(), new URL(address));
  if (reason.startsWith('http_')) exportLog.rejected({ rejectedCount: 1, reason, message: undefined });
  else exportLog.failed(reason, 1);
  return log.lines[0]?.fields as { readonly collector: string; readonly advice?: string };
}

const ADDRESS = 'http://collector:4318/otlp/v1/traces';

describe('a line about the collector', () => {
  test('has its address, without credentials, query and fragment', () => {
    const { collector } = fieldsOf('http_404', 'http://user:hunter2@c:4318/v1/traces?key=hunter2#hunter2');
    expect(collector).toBe('http://c:4318/v1/traces');
    expect(fieldsOf('http_500', 'https://c/v1/traces').collector).toBe('https://c/v1/traces');
  });

  test.each([
    ['http_401', ADDRESS, 'set them in OTEL_EXPORTER_OTLP_HEADERS'],
    ['http_403', ADDRESS, 'correct OTEL_EXPORTER_OTLP_HEADERS'],
    ['http_404', ADDRESS, 'correct the host, port or path of export.endpoint'],
    ['http_405', ADDRESS, 'correct the host, port or path of export.endpoint'],
    ['http_415', ADDRESS, 'OTEL_EXPORTER_OTLP_PROTOCOL'],
    ['http_308', ADDRESS, 'configure the address that it leads to'],
    ['http_404', 'http://c:4317/v1/traces', 'port 4317 is for gRPC'],
    ['HPE_INVALID_CONSTANT', 'http://c:4317/v1/traces', 'port 4317 is for gRPC'],
    ['ECONNREFUSED', ADDRESS, 'start the collector'],
  ])('about %s says what to do', (reason, address, advice) => {
    expect(fieldsOf(reason, address).advice).toContain(advice);
  });

  test.each(['http_500', 'http_400', 'timeout', 'http_4040'])('about %s has no advice', (reason) => {
    expect(fieldsOf(reason, ADDRESS)).not.toHaveProperty('advice');
  });
});
