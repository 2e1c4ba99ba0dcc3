import { describe, expect, test } from 'vitest';
import { toHealthFinding, toListFinding } from '../../../src/replicas/probes/findings.ts';

describe('an answer', () => {
  const loading = { status: 503, text: '{"error":{"message":"Loading model"}}' };

  test.each([
    [{ status: 200, text: '' }, 'reachable'],
    [{ status: 404, text: '' }, 'reachable'],
    [{ status: 500, text: '' }, 'engine_failed'],
    [{ status: 503, text: '' }, 'engine_failed'],
    [loading, 'loading_model'],
  ] as const)('to a health probe, %o, shows: %s', (answer, finding) => {
    expect(toHealthFinding(answer)).toBe(finding);
  });

  test.each([
    [{ status: 200, text: '{}' }, true, 'reachable'],
    [{ status: 200, text: '<html>' }, false, 'not_an_engine'],
    [{ status: 404, text: '' }, false, 'not_an_engine'],
    [{ status: 301, text: '' }, false, 'not_an_engine'],
    [{ status: 401, text: '' }, false, 'reachable'],
    [{ status: 429, text: '' }, false, 'reachable'],
    [{ status: 502, text: '' }, false, 'engine_failed'],
    [loading, false, 'loading_model'],
  ] as const)('to GET /v1/models, %o, a list: %s, shows: %s', (answer, hasList, finding) => {
    expect(toListFinding(answer, hasList)).toBe(finding);
  });
});
