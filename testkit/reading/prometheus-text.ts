/** One line of Prometheus' text format. */
export interface TextSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The samples of a text of our serializer; in test/e2e/prometheus.test.ts Prometheus itself reads it. */
export function parseSamples(text: string): readonly TextSample[] {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [, name = '', labels = '', value = ''] = /^([^{ ]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', quoted = '']) => [
      key,
      quoted.replace(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped)),
    ]);
    return { name, labels: Object.fromEntries(pairs), value: Number(value) };
  });
}

/** The sums of the samples of a name by one label; the empty text is for samples without it. */
export function sumBy(samples: readonly TextSample[], name: string, label = ''): Record<string, number> {
  const sums: Record<string, number> = {};
  for (const sample of samples) {
    if (sample.name !== name) continue;
    const key = sample.labels[label] ?? '';
    sums[key] = (sums[key] ?? 0) + sample.value;
  }
  return sums;
}
