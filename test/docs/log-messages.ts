import { glob, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import ts from 'typescript';

/** A message that the code logs. `…` stands for a part that varies. */
export interface LogMessage {
  readonly text: string;
  /** Where the call is: a path from the repository's root. */
  readonly file: string;
}

/** What the reader of a call cannot know: the message comes from another file. */
export const FROM_ELSEWHERE = '…';

const LEVELS: ReadonlySet<string> = new Set(['debug', 'info', 'warn', 'error', 'fatal']);

/** Only files that match can have a call of a log (`isLogCall`): to parse the others takes most of the time. */
const HAS_CALL = /\blog\b|crash\.end|this\.toLine/;

/** The messages of all calls of a log in `src/` and `otel/`, as the code has them. */
export async function readLogMessages(root: string): Promise<readonly LogMessage[]> {
  const messages: LogMessage[] = [];
  for await (const file of glob(['src/**/*.ts', 'otel/**/*.ts'], { cwd: root })) {
    const code = await readFile(join(root, file), 'utf8');
    if (!HAS_CALL.test(code)) continue;
    messages.push(...findLogMessages(code).map((text) => ({ text, file })));
  }
  return messages;
}

/** The messages of the calls of a log in one file. */
export function findLogMessages(code: string): readonly string[] {
  const source = ts.createSourceFile('log.ts', code, ts.ScriptTarget.Latest, true);
  const texts = new Texts(source);
  return findAll(source, ts.isCallExpression)
    .filter(isLogCall)
    .flatMap((call) => {
      const message = call.arguments.at(-1);
      return message === undefined ? [] : texts.of(message);
    });
}

function isLogCall({ expression, arguments: [first] }: ts.CallExpression): boolean {
  // Two write a line without a logger: when the process ends by an error, and when lines were lost.
  if (expression.getText() === 'crash.end') return true;
  if (expression.getText() === 'this.toLine') return first !== undefined && ts.isStringLiteral(first);
  const isOfLog = (log: ts.Expression) => /(^|[.#])log$/.test(log.getText());
  if (ts.isElementAccessExpression(expression)) return isOfLog(expression.expression);
  return (
    ts.isPropertyAccessExpression(expression) &&
    LEVELS.has(expression.name.text) &&
    isOfLog(expression.expression)
  );
}

/** Finds what the expressions of a file may be, as texts, without the types of other files. */
class Texts {
  readonly #variables: readonly ts.VariableDeclaration[];
  readonly #functions: readonly ts.FunctionDeclaration[];

  constructor(source: ts.SourceFile) {
    this.#variables = findAll(source, ts.isVariableDeclaration);
    this.#functions = findAll(source, ts.isFunctionDeclaration);
  }

  of(node: ts.Expression): readonly string[] {
    if (ts.isStringLiteralLike(node)) return [node.text];
    if (ts.isTemplateExpression(node)) return this.#ofTemplate(node);
    if (ts.isConditionalExpression(node)) return [...this.of(node.whenTrue), ...this.of(node.whenFalse)];
    if (ts.isIdentifier(node)) return this.#ofName(node);
    if (ts.isElementAccessExpression(node)) return this.#ofMembers(node.expression.getText());
    // Only the name of a member is known, not of which of the file's constants.
    if (ts.isPropertyAccessExpression(node)) return this.#ofMembers(undefined, node.name.text);
    if (ts.isCallExpression(node)) return this.#ofResult(node.expression.getText());
    return [FROM_ELSEWHERE];
  }

  #ofTemplate({ head, templateSpans }: ts.TemplateExpression): readonly string[] {
    return templateSpans.reduce<readonly string[]>(
      (begun, { expression, literal }) =>
        this.of(expression).flatMap((part) => begun.map((text) => text + part + literal.text)),
      [head.text],
    );
  }

  #ofName(node: ts.Identifier): readonly string[] {
    const scope = findAncestor(node, ts.isFunctionLike);
    const parameter = scope?.parameters.find(({ name }) => name.getText() === node.text);
    if (parameter !== undefined) return ofType(parameter.type);
    const value = this.#variables.find(({ name }) => name.getText() === node.text)?.initializer;
    return value === undefined ? [FROM_ELSEWHERE] : this.of(value);
  }

  #ofMembers(constant?: string, member?: string): readonly string[] {
    const found = this.#variables
      .filter(({ name }) => constant === undefined || name.getText() === constant)
      .flatMap(({ initializer }) => (initializer === undefined ? [] : membersOf(initializer)))
      .filter(({ name }) => member === undefined || name.getText() === member)
      .map(({ initializer }) => initializer)
      .filter(ts.isStringLiteral)
      .map(({ text }) => text);
    return found.length === 0 ? [FROM_ELSEWHERE] : found;
  }

  #ofResult(name: string): readonly string[] {
    const results = this.#functions
      .filter((each) => each.name?.text === name)
      .flatMap((each) => findAll(each, ts.isReturnStatement))
      .flatMap(({ expression }) => (expression === undefined ? [] : this.of(expression)));
    return results.length === 0 ? [FROM_ELSEWHERE] : results;
  }
}

function ofType(type: ts.TypeNode | undefined): readonly string[] {
  const parts = type === undefined ? [] : ts.isUnionTypeNode(type) ? type.types : [type];
  const texts = parts.map((part) =>
    ts.isLiteralTypeNode(part) && ts.isStringLiteral(part.literal) ? part.literal.text : FROM_ELSEWHERE,
  );
  return texts.length === 0 ? [FROM_ELSEWHERE] : texts;
}

function membersOf(value: ts.Expression): readonly ts.PropertyAssignment[] {
  if (ts.isAsExpression(value) || ts.isSatisfiesExpression(value)) return membersOf(value.expression);
  return ts.isObjectLiteralExpression(value) ? value.properties.filter(ts.isPropertyAssignment) : [];
}

function findAncestor<Found extends ts.Node>(
  node: ts.Node,
  is: (node: ts.Node) => node is Found,
): Found | undefined {
  for (let at: ts.Node | undefined = node.parent; at !== undefined; at = at.parent) if (is(at)) return at;
  return undefined;
}

function findAll<Found extends ts.Node>(root: ts.Node, is: (node: ts.Node) => node is Found): Found[] {
  const found: Found[] = [];
  const visit = (node: ts.Node): void => {
    if (is(node)) found.push(node);
    ts.forEachChild(node, visit);
  };
  visit(root);
  return found;
}
