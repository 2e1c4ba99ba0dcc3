import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { InspectionQueue } from '../../../../src/proxy/request/inspection/inspection-queue.ts';

interface Job {
  readonly name: string;
  readonly sizeBytes: number;
  /** What arrives before it gives way for the first, second, … time. */
  readonly arrivals?: readonly (readonly Job[])[];
}

/** Runs the first job, the others having arrived with it; returns what happened, in order. */
function run([first, ...others]: readonly [Job, ...Job[]]): {
  begun: string[];
  done: string[];
  depths: number[];
} {
  const arrived = [...others];
  const begun: string[] = [];
  const done: string[] = [];
  const depths: number[] = [];
  const queue = new InspectionQueue<Job>({
    receive: () => arrived.shift(),
    carryOut({ name, arrivals = [] }, giveWay, depth) {
      begun.push(name);
      depths.push(depth);
      for (const arrival of arrivals) {
        arrived.push(...arrival);
        giveWay();
      }
      done.push(name);
    },
  });
  queue.run(first);
  return { begun, done, depths };
}

const small = (name: string): Job => ({ name, sizeBytes: 200_000 });

describe('the queue of inspections', () => {
  test('runs the smallest job first, and jobs of one size in order of arrival', () => {
    const sizes = { a: 30, b: 5, c: 10, d: 5 };
    const [first, ...others] = Object.entries(sizes).map(([name, sizeBytes]) => ({ name, sizeBytes }));
    expect(run([first as Job, ...others]).done).toEqual(['b', 'd', 'c', 'a']);
  });

  test('lets a large job give way to small ones that arrive while it runs', () => {
    const large: Job = {
      name: 'L',
      sizeBytes: 30_000_000,
      arrivals: [[], [small('a'), small('b')], [small('c')]],
    };
    expect(run([large])).toMatchObject({ begun: ['L', 'a', 'b', 'c'], done: ['a', 'b', 'c', 'L'] });
  });

  test('does not let a job give way to one of about its size', () => {
    const other: Job = { name: 'M', sizeBytes: 20_000_000 };
    const large: Job = { name: 'L', sizeBytes: 30_000_000, arrivals: [[other, small('a')]] };
    expect(run([large]).done).toEqual(['a', 'L', 'M']);
  });

  test('tells how many jobs have given way, so that each has its own hasher', () => {
    const middle: Job = { name: 'M', sizeBytes: 2_000_000, arrivals: [[small('a')]] };
    const large: Job = { name: 'L', sizeBytes: 30_000_000, arrivals: [[middle], [small('b')]] };
    expect(run([large])).toMatchObject({ begun: ['L', 'M', 'a', 'b'], depths: [0, 1, 2, 1] });
  });

  test('finishes a large job however many small ones arrive', () => {
    const arrivals = Array.from({ length: 100 }, (_, i) => [small(`${i}`)]);
    expect(run([{ name: 'L', sizeBytes: 30_000_000, arrivals }]).done.at(-1)).toBe('L');
  });

  test('runs each job once, and a much smaller one before a larger one that began later', () => {
    const { job } = fc.letrec<{ job: Job }>((tie) => ({
      job: fc.record({
        name: fc.uuid(),
        sizeBytes: fc.integer({ min: 1, max: 64 }),
        arrivals: fc.oneof(
          { maxDepth: 3 },
          fc.constant([]),
          fc.array(fc.array(tie('job'), { maxLength: 3 }), { maxLength: 3 }),
        ),
      }),
    }));
    const all = (jobs: readonly Job[]): Job[] =>
      jobs.flatMap((one) => [one, ...all((one.arrivals ?? []).flat())]);
    fc.assert(
      fc.property(job, fc.array(job, { maxLength: 4 }), (first, others) => {
        const { begun, done, depths } = run([first, ...others]);
        const expected = all([first, ...others]).map(({ name }) => name);
        expect(begun.toSorted()).toEqual(expected.toSorted());
        expect(done.toSorted()).toEqual(expected.toSorted());
        // Each gives way to those of half its size: from 64 there are seven halves.
        expect(Math.max(...depths)).toBeLessThan(7);
      }),
    );
  });
});
