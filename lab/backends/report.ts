import { readCircumstances } from '#testkit/programs/results.ts';
import { type Questions, type State, VIEWS, type View } from './question.ts';

/** What one backend answered, each view as it was asked. */
export interface Asked {
  readonly title: string;
  readonly questions: Questions;
}

const WORDS: Readonly<Record<State, string>> = {
  lit: '**lit**',
  attribute: 'attribute',
  own: 'its own prices',
  dark: 'dark',
  text: 'text',
};

/** The text between the markers of docs/evidence/backends.md: a table of all views, and the questions. */
export function toReport(asked: readonly Asked[]): string {
  const { date, commit } = readCircumstances();
  const views = Object.keys(VIEWS) as View[];
  return [
    `On ${date} at commit ${commit}, by \`npm run lab -- backends\`.`,
    '',
    `| | ${asked.map(({ title }) => title).join(' | ')} |`,
    `|---|${asked.map(() => '---|').join('')}`,
    ...views.map(
      (view) =>
        `| ${VIEWS[view]} | ${asked.map(({ questions }) => WORDS[questions[view].state]).join(' | ')} |`,
    ),
    '',
    'What was asked; each answer was that of the records, or empty where the table says so:',
    '',
    '| Backend | View | Question |',
    '|---|---|---|',
    ...asked.flatMap(({ title, questions }) =>
      views.map((view) => `| ${title} | ${VIEWS[view]} | ${toCode(questions[view].query)} |`),
    ),
  ].join('\n');
}

/** A bar ends a cell even in code. */
function toCode(text: string): string {
  const mark = text.includes('`') ? '``' : '`';
  return `${mark}${text.replaceAll('|', '\\|')}${mark}`;
}
