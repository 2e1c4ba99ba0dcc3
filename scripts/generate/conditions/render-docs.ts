import { SUBJECT_KINDS } from '#conditions';
import { type ConditionEntry, toAlertName } from './read-conditions.ts';

const PLACE = /(<!-- generated: conditions -->\n).*?(<!-- end -->\n)/s;
const MAX_LINE_CHARS = 119;

const HEADINGS: Readonly<Record<(typeof SUBJECT_KINDS)[number], string>> = {
  gateway: 'The gateway',
  replica: 'Replicas',
  model: 'Models',
  tenant: 'Tenants',
  client: 'Clients',
  certificate: 'Certificates',
  file: 'Files',
  source: 'Where replicas and keys come from',
  export: 'The export of records',
  fleet: 'The fleet',
  rollout: 'Rollouts',
};

/** docs/troubleshooting.md with a paragraph for each condition. Throws if the place for them is missing. */
export function renderConditionDocs(current: string, conditions: readonly ConditionEntry[]): string {
  if (!PLACE.test(current)) throw new Error('docs/troubleshooting.md has no place for the conditions');
  const sections = SUBJECT_KINDS.flatMap((kind) => {
    const entries = conditions.filter(({ subject }) => subject === kind);
    return entries.length === 0 ? [] : [`## ${HEADINGS[kind]}\n\n${entries.map(renderEntry).join('\n')}`];
  });
  return current.replace(
    PLACE,
    (_, begin: string, end: string) => `${begin}\n${sections.join('\n')}\n${end}`,
  );
}

function renderEntry({ id, severity, title, begins, ends, means, do: todo }: ConditionEntry): string {
  const paragraphs = [
    `\`${id}\`, ${severity}, ${toAlertName(id)}.`,
    `${means} ${todo}`,
    [labelled('Begins', begins), labelled('Ends', ends)].filter((text) => text !== '').join(' '),
  ].filter((paragraph) => paragraph !== '');
  return `### ${title}\n\n${paragraphs.map(wrap).join('\n\n')}\n`;
}

/** When it begins or ends; empty if that says no more than the title, or than that it does not hold any longer, such as `Fewer are.`. */
function labelled(label: string, when: string): string {
  return when.split(' ').length <= 7 ? '' : `${label}: ${when}`;
}

function wrap(text: string): string {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(/\s+/)) {
    if (line !== '' && line.length + 1 + word.length > MAX_LINE_CHARS) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].join('\n');
}
