import { z } from 'zod';
import {
  CONDITIONS,
  type Condition,
  type ConditionDefinition,
  PLACES,
  SEVERITIES,
  SUBJECT_KINDS,
  toFigureTexts,
} from '#conditions';

const text = () => z.string();

/** A condition that is on, with what docs/troubleshooting.md says of it. */
export const conditionSchema = z
  .object({
    id: text().describe('The kind of condition: `replica_unreachable`.'),
    severity: z
      .enum(SEVERITIES)
      .describe(
        '`critical`: clients or records are lost now. `warning`: they will be, or somebody gets less than he should. ' +
          '`notice`: nothing is lost.',
      ),
    subject_kind: z.enum(SUBJECT_KINDS).describe('What kind of thing is wrong.'),
    subject: text().describe(
      'Its name; empty for the gateway itself; `_OTHER` for those beyond 100 of one condition.',
    ),
    since: z.iso.datetime().describe('When it began.'),
    sentence: text().describe('What is wrong, with the figures of now.'),
    figures: z
      .record(z.string(), z.union([z.string(), z.number()]))
      .describe('Shares are of 1, times are in seconds, sizes in bytes.'),
    figure_texts: z.record(z.string(), text()).describe('The same, as people read them.'),
    title: text().describe('What is wrong, without names and figures.'),
    means: text().describe('What it means. Markdown with code spans.'),
    remedy: text().describe('What to do. Markdown with code spans.'),
    place: z.enum(PLACES).describe('The part of the dashboard that is about it.'),
  })
  .meta({ id: 'Condition' });

/** The conditions in the shape of `conditionSchema`. */
export function toConditionsJson(conditions: readonly Condition[]): z.output<typeof conditionSchema>[] {
  return conditions.map(({ id, severity, subjectKind, subject, sinceEpochMs, sentence, figures }) => {
    const { title, means, remedy, place, figures: kinds }: ConditionDefinition = CONDITIONS[id];
    return {
      id,
      severity,
      subject_kind: subjectKind,
      subject,
      since: new Date(sinceEpochMs).toISOString(),
      sentence,
      figures,
      figure_texts: toFigureTexts(kinds, figures),
      title,
      means,
      remedy,
      place,
    };
  });
}
