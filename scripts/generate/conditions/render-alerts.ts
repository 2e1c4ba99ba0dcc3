import { type ConditionEntry, toAlertName, toAnchor } from './read-conditions.ts';

const PLACE = /(# generated: conditions\n).*?( *# end\n)/s;

/** deploy/alerts.yaml with a rule for each condition. Throws if the place for them is missing. */
export function renderAlerts(current: string, conditions: readonly ConditionEntry[]): string {
  if (!PLACE.test(current)) throw new Error('deploy/alerts.yaml has no place for the conditions');
  const rules = conditions.map(renderRule).join('\n');
  return current.replace(PLACE, (_, begin: string, end: string) => `${begin}${rules}${end}`);
}

function renderRule(entry: ConditionEntry): string {
  const { id, severity, title, means, alert } = entry;
  const subject = entry.subject === 'gateway' ? '' : ': {{ $labels.subject }}';
  return `      - alert: ${toAlertName(id)}
        expr: max by (job, instance, subject) (gateway_condition{id="${id}"}) == 1
${alert === '0m' ? '' : `        for: ${alert}\n`}        labels: { severity: ${severity} }
        annotations:
          summary: ${quote(`${title}${subject} ({{ $labels.instance }})`)}
          description: ${quote(means)}
          runbook_url: docs/troubleshooting.md#${toAnchor(entry)}
`;
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}
