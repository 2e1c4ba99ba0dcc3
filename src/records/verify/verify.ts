import { type ExportedSpan, SpanReader } from './exported-span.ts';
import { InstanceCheck } from './instance-check.ts';
import { createPageAllowance } from './seq-pages.ts';

/** Instances beyond these are more than one gateway can have had. */
const MAX_INSTANCES = 100_000;

/** More instances than one run can verify. */
export class TooManyInstancesError extends Error {
  override readonly name = 'TooManyInstancesError';
}

/** Everything that the files say, by instance. */
export class Verification {
  readonly #reader = new SpanReader();
  readonly #checks = new Map<string, InstanceCheck>();
  readonly #allowance = createPageAllowance();
  /** Lines that are neither OTLP JSON nor lines of a spool. */
  brokenLines = 0;
  /** Records and ledger spans without an instance or a number. */
  unidentified = 0;

  /** The instances, in the order in which they were found. */
  get checks(): ReadonlyMap<string, InstanceCheck> {
    return this.#checks;
  }

  /** Adds a line of a file: OTLP JSON, or of a spool file. Null: a line that is too long. */
  addLine(line: Buffer | null): void {
    const spans = line === null ? null : this.#reader.readLine(line);
    if (spans === null) this.brokenLines += 1;
    for (const span of spans ?? []) this.#add(span);
  }

  #add(span: ExportedSpan): void {
    if (span.kind === 'unidentified') {
      this.unidentified += 1;
      return;
    }
    const check = this.#checkOf(span.instance);
    if (span.kind === 'record') {
      check.addRecord(span);
      return;
    }
    check.addLedger(span);
    if (!span.isIntact) return;
    for (const { instance, first, last } of span.rejected)
      this.#checkOf(instance).addRejected({ first, last });
  }

  #checkOf(instance: string): InstanceCheck {
    const known = this.#checks.get(instance);
    if (known !== undefined) return known;
    if (this.#checks.size === MAX_INSTANCES) throw new TooManyInstancesError();
    const check = new InstanceCheck(instance, this.#allowance);
    this.#checks.set(instance, check);
    return check;
  }
}
