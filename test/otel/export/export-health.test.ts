import { describe, expect, test } from 'vitest';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { ExportHealth } from '../../../otel/export/export-health.ts';

function createHealth(address = ADDRESS) {
  const log = createQuietLog();
  const clock = new VirtualClock();
  return { log, clock, health: new ExportHealth(log, clock, new URL(address)) };
}

/** What is known of a failed call to this collector. */
function problemOf(reason: string, address: string) {
  const { health } = createHealth(address);
  if (reason.startsWith('http_')) health.rejected({ rejectedCount: 1, reason, message: undefined });
  else health.failed(reason);
  const problem = health.outage ?? health.rejection;
  return { collector: problem?.collector, advice: problem?.advice };
}

const ADDRESS = 'http://collector:4318/otlp/v1/traces';

describe('a problem with the collector', () => {
  test('has its address, without credentials, query and fragment', () => {
    const { collector } = problemOf('http_404', 'http://user:hunter2@c:4318/v1/traces?key=hunter2#hunter2');
    expect(collector).toBe('http://c:4318/v1/traces');
    expect(problemOf('http_500', 'https://c/v1/traces').collector).toBe('https://c/v1/traces');
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
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', ADDRESS, 'OTEL_EXPORTER_OTLP_CERTIFICATE'],
  ])('about %s says what to do', (reason, address, advice) => {
    expect(problemOf(reason, address).advice).toContain(advice);
  });

  test.each(['http_500', 'http_400', 'timeout', 'http_4040'])('about %s has no advice', (reason) => {
    expect(problemOf(reason, ADDRESS)).toMatchObject({ advice: '' });
  });
});

test('an outage counts its failed calls, and ends with an answer', () => {
  const { health } = createHealth();
  expect(health.outage).toBeNull();
  health.failed('ECONNREFUSED');
  health.failed('timeout');
  expect(health.outage).toMatchObject({ reason: 'timeout', failedCalls: 2 });
  health.answered();
  expect(health.outage).toBeNull();
  health.failed('timeout');
  expect(health.outage).toMatchObject({ failedCalls: 1 });
});

test('a rejection ends when a batch is taken whole, or a minute after the last one', async () => {
  const { health, clock } = createHealth();
  const reject = () => health.rejected({ rejectedCount: 2, reason: 'http_400', message: 'no' });
  reject();
  expect(health.rejection).toMatchObject({ reason: 'http_400', message: 'no', rejected: 2, isGoingOn: true });
  health.tookAll();
  expect(health.rejection).toMatchObject({ rejected: 2, isGoingOn: false });
  reject();
  await clock.advance(59_999);
  expect(health.rejection).toMatchObject({ rejected: 4, isGoingOn: true });
  await clock.advance(1);
  expect(health.rejection).toMatchObject({ isGoingOn: false });
});

test('a call counts while it goes on, and ten seconds longer', async () => {
  const { health, clock } = createHealth();
  health.callBegins();
  await clock.advance(6_000);
  expect(health.callMs).toBe(6_000);
  health.callEnds();
  await clock.advance(9_999);
  expect(health.callMs).toBe(6_000);
  await clock.advance(1);
  expect(health.callMs).toBe(0);
  health.callBegins();
  await clock.advance(7);
  health.callEnds();
  expect(health.callMs).toBe(7);
});

test('a collector that warns with every batch is logged once a minute', async () => {
  const { health, clock, log } = createHealth();
  for (let second = 0; second < 90; second += 1) {
    health.warned('old schema');
    await clock.advance(1_000);
  }
  expect(log.lines).toMatchObject([
    { level: 'warn', fields: { collector_message: 'old schema' } },
    { level: 'warn' },
  ]);
});

test('the end has one line with all records that were rejected', () => {
  const { health, log } = createHealth();
  for (let batch = 0; batch < 2; batch += 1)
    health.rejected({ rejectedCount: 3, reason: 'http_401', message: 'no token' });
  health.end();
  health.end();
  expect(log.lines).toMatchObject([
    { level: 'error', fields: { rejected: 6, reason: 'http_401', collector_message: 'no token' } },
  ]);
});
