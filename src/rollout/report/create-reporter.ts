import type { Invocation } from '#cli/command';
import type { Phase } from '#rollout-board/facts';
import { createDisplay } from './display.ts';
import type { LineReader, Reporter } from './reporter.ts';

/** The reporter for this output: JSON lines, a display on a terminal, or lines elsewhere. */
export function createReporter(
  invocation: Invocation,
  { isJson, names }: { readonly isJson: boolean; readonly names: readonly string[] },
): Reporter {
  const lines = createLineReader(invocation.stdin);
  if (isJson) return createJsonReporter(invocation);
  return invocation.stdout.isTTY === true && invocation.env.TERM !== 'dumb'
    ? createDisplay(invocation, names, lines)
    : createPlainReporter(invocation, lines);
}

function createLineReader(stdin: Invocation['stdin']): LineReader {
  let bytes: AsyncIterator<Uint8Array> | null = null;
  let typed = '';
  return async () => {
    bytes ??= stdin[Symbol.asyncIterator]();
    while (!typed.includes('\n')) {
      const next = await bytes.next();
      if (next.done === true) return null;
      typed += Buffer.from(next.value).toString('latin1');
    }
    const end = typed.indexOf('\n');
    const line = typed.slice(0, end);
    typed = typed.slice(end + 1);
    return line;
  };
}

/** One line for each phase, and for each line of a command. */
function createPlainReporter({ stdout }: Invocation, readLine: LineReader): Reporter {
  const phases = new Map<string, Phase>();
  return {
    show(name, phase, text) {
      if (phases.get(name) === phase) return;
      phases.set(name, phase);
      stdout.write(`${name}: ${text}\n`);
    },
    output: (name, line) => stdout.write(`${name} | ${line}\n`),
    say: (line) => stdout.write(`${line}\n`),
    async ask(question) {
      stdout.write(`${question} `);
      return await readLine();
    },
    end: () => undefined,
  };
}

/** One JSON object for each change. */
function createJsonReporter({ stdout }: Invocation): Reporter {
  const write = (event: object) =>
    stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`);
  return {
    show: (replica, phase, text, figures) =>
      write({ event: 'replica', replica, phase, text, ...(figures === undefined ? {} : { figures }) }),
    output: (replica, line) => write({ event: 'output', replica, line }),
    say: (text) => write({ event: 'rollout', text }),
    ask: async () => null,
    end: () => undefined,
  };
}
