import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { asksOf, Cell, ENGINES } from '#testkit/engines/matrix.ts';
import { runs } from '#testkit/runs.ts';

let authority: TestAuthority;
let server: IssuedCertificate;

beforeAll(async () => {
  authority = await createAuthority();
  server = await authority.issue('server');
});

afterAll(() => authority[Symbol.asyncDispose]());

const cuts = fc.array(fc.nat(20_000), { maxLength: 6 });

test.for(ENGINES.map((engine) => [engine.name, engine] as const))(
  '%s: over TLS the client gets what the engine sends to its own request, however the reads are cut',
  async ([, engine]) => {
    const [exchange] = engine.cases;
    if (exchange === undefined) throw new Error('no case');
    await using cell = await Cell.start(engine, exchange, { server, ca: authority.ca.cert });
    const isEqual = async (ask: ReturnType<typeof asksOf>[number], places: readonly number[]) => {
      expect(await cell.compare(ask, places)).toBeNull();
    };
    await fc.assert(fc.asyncProperty(fc.constantFrom(...asksOf(exchange)), cuts, isEqual), {
      numRuns: runs(24),
    });
  },
);
