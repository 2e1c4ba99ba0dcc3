import { type ConditionEntry, toAlertName } from './read-conditions.ts';

const PLACE = /(# generated: conditions\n).*?( *# end\n)/s;

/** deploy/alerts.test.yaml with made series for each condition. Throws if the place for them is missing. */
export function renderAlertTests(current: string, conditions: readonly ConditionEntry[]): string {
  if (!PLACE.test(current)) throw new Error('deploy/alerts.test.yaml has no place for the conditions');
  const tests = conditions.map(renderTest).join('\n');
  return current.replace(PLACE, (_, begin: string, end: string) => `${begin}${tests}${end}`);
}

/** A condition that is on for a minute more than its alert waits: only this alert fires, then it ends. */
function renderTest({ id, severity, title, alert }: ConditionEntry): string {
  const minutes = toMinutes(alert);
  const target = 'job="gw",instance="a"';
  const fired = `ALERTS{alertname="${toAlertName(id)}",alertstate="firing",severity="${severity}",${target},subject="s"}`;
  const early =
    minutes === 0
      ? ''
      : `      - { <<: *firing, eval_time: ${minutes - 1}m, exp_samples: [] }
`;
  return `  - name: '${title.replaceAll("'", "''")}'
    interval: 1m
    input_series:
      - { series: 'gateway_build_info{${target}}', values: '1x${minutes + 5}' }
      - {
          series: 'gateway_condition{${target},id="${id}",severity="${severity}",subject="s"}',
          values: '1x${minutes + 1} stale',
        }
    promql_expr_test:
${early}      - <<: *firing
        eval_time: ${minutes}m
        exp_samples:
          - { labels: '${fired}', value: 1 }
      - { <<: *firing, eval_time: ${minutes + 2}m, exp_samples: [] }
`;
}

/** `5m`, `2h` → minutes. */
function toMinutes(duration: string): number {
  return Number.parseInt(duration, 10) * (duration.endsWith('h') ? 60 : 1);
}
