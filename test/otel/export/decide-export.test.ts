import { describe, expect, test } from 'vitest';
import { decideExport } from '../../../otel/export/decide-export.ts';

describe('after an export of 10 records', () => {
  test.each([301, 304, 307, 308, 429, 502, 503, 504])('status %i is retried', (status) => {
    expect(decideExport({ kind: 'answered', status, retryAfterMs: 3000 }, 10)).toEqual({
      action: 'retry',
      reason: `http_${status}`,
      retryAfterMs: 3000,
    });
  });

  test.each([400, 401, 403, 404, 408, 415, 500, 501, 505])(
    'status %i rejects the batch for good',
    (status) => {
      expect(decideExport({ kind: 'answered', status, message: 'no' }, 10)).toEqual({
        action: 'reject',
        reason: `http_${status}`,
        message: 'no',
      });
    },
  );

  test('status 413 splits the batch', () => {
    expect(decideExport({ kind: 'answered', status: 413 }, 10)).toEqual({
      action: 'split',
      reason: 'http_413',
    });
  });

  test.each(['ECONNRESET', 'EPIPE'])('a connection cut with %s may have been a 413', (code) => {
    expect(decideExport({ kind: 'unanswered', code }, 10)).toEqual({
      action: 'retry',
      reason: code,
      mayBeTooLarge: true,
    });
  });

  test('no answer is retried', () => {
    expect(decideExport({ kind: 'unanswered', code: 'ECONNREFUSED' }, 10)).toEqual({
      action: 'retry',
      reason: 'ECONNREFUSED',
    });
  });

  test('an answer of more than 4 MiB rejects the batch for good', () => {
    expect(decideExport({ kind: 'oversized' }, 10)).toMatchObject({ action: 'reject' });
  });

  test.each([
    { rejectedCount: 0, exported: 10, rejected: 0 },
    { rejectedCount: 3, exported: 7, rejected: 3 },
    { rejectedCount: 99, exported: 0, rejected: 10 },
    { rejectedCount: -1, exported: 10, rejected: 0 },
  ])('a success that claims $rejectedCount rejected counts $exported exported', (row) => {
    expect(decideExport({ kind: 'taken', rejectedCount: row.rejectedCount }, 10)).toMatchObject({
      action: 'settle',
      exportedCount: row.exported,
      rejectedCount: row.rejected,
    });
  });
});

test('a single record that is too large is rejected for good', () => {
  expect(decideExport({ kind: 'answered', status: 413 }, 1)).toMatchObject({ action: 'reject' });
});
