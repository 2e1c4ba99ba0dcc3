import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { PLACES, SEVERITIES, SUBJECT_KINDS } from '#conditions';
import { FIGURE_KINDS } from '../../../src/conditions/definition.ts';

const text = z.string().trim().min(1);
const seconds = z.number().positive();

const entrySchema = z.strictObject({
  severity: z.enum(SEVERITIES),
  subject: z.enum(SUBJECT_KINDS),
  title: text,
  sentence: text,
  figures: z.record(z.string().regex(/^[a-z_]+$/), z.enum(FIGURE_KINDS)),
  begins: text,
  ends: text,
  after: seconds.optional(),
  until: seconds.optional(),
  lasts: seconds.optional(),
  means: text,
  do: text,
  place: z.enum(PLACES),
  alert: z.string().regex(/^\d+[mh]$/),
});

/** One entry of the registry of conditions, with its id. */
export type ConditionEntry = z.output<typeof entrySchema> & { readonly id: string };

/** Reads src/conditions/registry/conditions.yaml. Throws if an entry is wrong, or its sentence names no figure of it. */
export function readConditions(): readonly ConditionEntry[] {
  const file = join(import.meta.dirname, '../../../src/conditions/registry/conditions.yaml');
  const entries = z
    .record(z.string().regex(/^[a-z0-9_]+$/), entrySchema)
    .parse(parse(readFileSync(file, 'utf8')));
  return Object.entries(entries).map(([id, entry]) => {
    for (const [, name = ''] of entry.sentence.matchAll(/\{(\w+)\}/g)) {
      if (name !== 'subject' && !Object.hasOwn(entry.figures, name))
        throw new Error(`the sentence of ${id} names ${name}, which is no figure of it`);
    }
    return { id, ...entry };
  });
}

/** replica_unreachable → ReplicaUnreachable: the name of its alert. */
export function toAlertName(id: string): string {
  return id.replaceAll(/(?:^|_)(\w)/g, (_, first: string) => first.toUpperCase());
}

/** The anchor of a condition's heading in docs/troubleshooting.md, as GitHub makes it. */
export function toAnchor({ title }: ConditionEntry): string {
  return title
    .toLowerCase()
    .replaceAll(/[^a-z0-9 _-]/g, '')
    .replaceAll(' ', '-');
}
