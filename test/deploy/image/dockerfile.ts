/** An instruction of a Dockerfile, such as `RUN` with everything behind it. */
export interface Instruction {
  readonly name: string;
  readonly value: string;
}

/** A stage of a Dockerfile: its instructions from FROM on. */
export type Stage = readonly Instruction[];

/** Parses a Dockerfile without heredocs and parser directives. Throws if a line is no instruction. */
export function parseDockerfile(text: string): readonly Stage[] {
  const lines = text
    .split('\n')
    .filter((line) => !/^\s*(?:#|$)/.test(line))
    .join('\n')
    .replace(/\\\n\s*/g, ' ')
    .split('\n');
  const stages: Instruction[][] = [];
  for (const line of lines) {
    const { name = '', value = '' } = /^(?<name>[A-Z]+) +(?<value>.*)$/.exec(line)?.groups ?? {};
    if (name === '') throw new Error(`not an instruction: ${line}`);
    if (name === 'FROM') stages.push([]);
    stages.at(-1)?.push({ name, value });
  }
  return stages;
}

/** The values of the instructions of this name, in order. */
function valuesOf(stage: Stage, name: string): readonly string[] {
  return stage.filter((instruction) => instruction.name === name).map(({ value }) => value);
}

/** The value of the only instruction of this name. Throws if there are others. */
export function onlyValueOf(stage: Stage, name: string): string {
  const [value, ...others] = valuesOf(stage, name);
  if (value === undefined || others.length > 0) throw new Error(`not exactly one ${name}`);
  return value;
}

/** The variables that the ENV instructions set. Values have no blanks. */
export function toEnvironment(stage: Stage): Readonly<Record<string, string>> {
  const pairs = valuesOf(stage, 'ENV').flatMap((value) => value.split(/ +/));
  return Object.fromEntries(
    pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
  );
}
