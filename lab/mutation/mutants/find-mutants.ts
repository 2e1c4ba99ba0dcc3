import ts from 'typescript';
import { isLogCall, isText, nameOf, unwrap } from './syntax.ts';

/** One small fault: a piece of a source and what stands there instead. */
export interface Mutant {
  readonly file: string;
  /** The function that it is in, with its class: `Admission.end`; empty: outside of functions. */
  readonly where: string;
  readonly line: number;
  readonly original: string;
  readonly mutated: string;
  /** Counts the same change in the same function, from 1. */
  readonly ordinal: number;
  /** The node that is replaced: its first position and its end. */
  readonly start: number;
  readonly end: number;
  readonly form: 'expression' | 'statement';
}

type Found = Omit<Mutant, 'file' | 'ordinal'>;

const BOUNDARIES: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.LessThanToken, '<='],
  [ts.SyntaxKind.LessThanEqualsToken, '<'],
  [ts.SyntaxKind.GreaterThanToken, '>='],
  [ts.SyntaxKind.GreaterThanEqualsToken, '>'],
]);

const COMPARISONS: ReadonlySet<ts.SyntaxKind> = new Set([
  ...BOUNDARIES.keys(),
  ts.SyntaxKind.EqualsEqualsEqualsToken,
  ts.SyntaxKind.ExclamationEqualsEqualsToken,
  ts.SyntaxKind.InKeyword,
  ts.SyntaxKind.InstanceOfKeyword,
]);

const ARITHMETIC: ReadonlyMap<ts.SyntaxKind, string> = new Map([
  [ts.SyntaxKind.PlusToken, '-'],
  [ts.SyntaxKind.MinusToken, '+'],
  [ts.SyntaxKind.AsteriskToken, '/'],
  [ts.SyntaxKind.SlashToken, '*'],
  [ts.SyntaxKind.PercentToken, '*'],
  [ts.SyntaxKind.AmpersandToken, '|'],
  [ts.SyntaxKind.BarToken, '&'],
  [ts.SyntaxKind.LessThanLessThanToken, '>>'],
  [ts.SyntaxKind.GreaterThanGreaterThanToken, '<<'],
  [ts.SyntaxKind.GreaterThanGreaterThanGreaterThanToken, '<<'],
]);

const METHODS: Readonly<Record<string, string>> = {
  max: 'min',
  min: 'max',
  floor: 'ceil',
  ceil: 'floor',
  some: 'every',
  every: 'some',
  startsWith: 'endsWith',
  endsWith: 'startsWith',
  values: 'keys',
  lastIndexOf: 'indexOf',
};

/** Finds the mutants of a source, in the order of their positions. `file`: its path from the root of the checkout. */
export function findMutants(file: string, source: string): readonly Mutant[] {
  const tree = ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true);
  const found: Found[] = [];
  const add = (where: string, node: ts.Node, mutated: string, form: Mutant['form'] = 'expression'): void => {
    const start = node.getStart(tree);
    const line = tree.getLineAndCharacterOfPosition(start).line + 1;
    const original = node.getText(tree);
    if (original !== mutated) found.push({ where, line, original, mutated, start, end: node.end, form });
  };
  const visit = (node: ts.Node, where: string): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) return;
    if (ts.isInterfaceDeclaration(node) || ts.isTypeAliasDeclaration(node)) return;
    const inside = [where, nameOf(node)].filter((part) => part !== '').join('.');
    for (const mutated of expressionMutants(node)) add(inside, node, mutated);
    if (isRemovable(node)) add(inside, node, '', 'statement');
    ts.forEachChild(node, (child) => visit(child, inside));
  };
  visit(tree, '');
  found.sort((a, b) => a.start - b.start || b.end - a.end);
  const counts = new Map<string, number>();
  return found.map((each) => {
    const key = JSON.stringify([each.where, each.original, each.mutated]);
    const ordinal = (counts.get(key) ?? 0) + 1;
    counts.set(key, ordinal);
    return { file, ...each, ordinal };
  });
}

/** What may stand in place of an expression. */
function expressionMutants(node: ts.Node): readonly string[] {
  if (ts.isBinaryExpression(node)) return binaryMutants(node);
  if (ts.isPrefixUnaryExpression(node)) return prefixMutants(node);
  if (ts.isNumericLiteral(node)) return numberMutants(node);
  if (ts.isStringLiteral(node)) return isMeaningful(node) ? ["''"] : [];
  if (node.kind === ts.SyntaxKind.TrueKeyword && ts.isExpression(node)) return ['false'];
  if (node.kind === ts.SyntaxKind.FalseKeyword && ts.isExpression(node)) return ['true'];
  if (!ts.isExpression(node)) return [];
  const mutants: string[] = [];
  if (isBareCondition(node)) mutants.push('true', 'false');
  else if (isReturned(node) && isPlainValue(node)) mutants.push('undefined');
  const method = methodMutant(node);
  if (method !== null) mutants.push(method);
  if (isWholeChain(node)) mutants.push(...chainMutants(node));
  return mutants;
}

function binaryMutants(node: ts.BinaryExpression): readonly string[] {
  const { left, right } = node;
  const operator = node.operatorToken.kind;
  const parts = (between: string) => `${left.getText()} ${between} ${right.getText()}`;
  const boundary = BOUNDARIES.get(operator);
  if (COMPARISONS.has(operator)) {
    const constants = isOperandOfLogic(node) ? [] : ['true', 'false'];
    const whole = isLoopCondition(node) ? ['false'] : constants;
    return boundary === undefined ? whole : [...whole, parts(boundary)];
  }
  const isAnd = operator === ts.SyntaxKind.AmpersandAmpersandToken;
  if (isAnd || operator === ts.SyntaxKind.BarBarToken) {
    const isChained = ts.isBinaryExpression(left) && left.operatorToken.kind === operator;
    const operands = isChained ? [left.getText()] : [left.getText(), right.getText()];
    return isOperandOfLogic(node) ? operands : [...operands, isAnd ? 'false' : 'true'];
  }
  if (operator === ts.SyntaxKind.QuestionQuestionToken) {
    return isDefaultOfElement(right) ? [right.getText()] : [left.getText(), right.getText()];
  }
  const swapped = ARITHMETIC.get(operator);
  if (swapped === undefined || [left, right].some(isText)) return [];
  return [parts(swapped)];
}

function prefixMutants(node: ts.PrefixUnaryExpression): readonly string[] {
  const isWhole = isCondition(node);
  if (node.operator === ts.SyntaxKind.ExclamationToken) {
    if (isWhole) return isLoopCondition(node) ? ['false'] : ['true', 'false'];
    return isOperandOfLogic(node) ? [] : [node.operand.getText()];
  }
  return node.operator === ts.SyntaxKind.MinusToken ? [node.operand.getText()] : [];
}

function numberMutants(node: ts.NumericLiteral): readonly string[] {
  const { parent } = node;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return [];
  if (isDefaultOfElement(node)) return [];
  if (ts.isBinaryExpression(parent)) {
    const operator = parent.operatorToken.kind;
    // The boundary and the other operator say the same.
    if (operator === ts.SyntaxKind.PlusToken || operator === ts.SyntaxKind.MinusToken) return [];
    if (operator === ts.SyntaxKind.LessThanToken || operator === ts.SyntaxKind.GreaterThanEqualsToken)
      return [];
  }
  return [String(Number(node.text.replaceAll('_', '')) + 1)];
}

/** What stands in place of an element that is there: the compiler asks for it, because it does not know. */
function isDefaultOfElement({ parent }: ts.Node): boolean {
  return (
    ts.isBinaryExpression(parent) &&
    parent.operatorToken.kind === ts.SyntaxKind.QuestionQuestionToken &&
    ts.isElementAccessExpression(unwrap(parent.left))
  );
}

/** Whether a string is a value: not a text for people, the name of a member, or what a comparison is about. */
function isMeaningful(node: ts.StringLiteral): boolean {
  const { parent } = node;
  if (node.text === '' || node.text.includes(' ')) return false;
  if (ts.isPropertyAssignment(parent) && parent.name === node) return false;
  if (ts.isPropertyDeclaration(parent) && parent.name === node) return false;
  if (ts.isBinaryExpression(parent) && COMPARISONS.has(parent.operatorToken.kind)) return false;
  for (let outer: ts.Node = parent; !ts.isBlock(outer) && !ts.isSourceFile(outer); outer = outer.parent) {
    if (ts.isNewExpression(outer) || isLogCall(outer)) return false;
  }
  return true;
}

/** An expression that is tested for truth. */
function isCondition(node: ts.Node): boolean {
  const { parent } = node;
  if (ts.isIfStatement(parent) || ts.isWhileStatement(parent) || ts.isDoStatement(parent))
    return parent.expression === node;
  if (ts.isForStatement(parent) || ts.isConditionalExpression(parent)) return parent.condition === node;
  return false;
}

function isLoopCondition(node: ts.Node): boolean {
  return isCondition(node) && !ts.isIfStatement(node.parent) && !ts.isConditionalExpression(node.parent);
}

/** A condition with mutants of no other kind. */
function isBareCondition(node: ts.Expression): boolean {
  return isCondition(node) && !isLoopCondition(node);
}

function isOperandOfLogic(node: ts.Node): boolean {
  let { parent } = node;
  while (ts.isParenthesizedExpression(parent)) parent = parent.parent;
  if (!ts.isBinaryExpression(parent)) return false;
  const operator = parent.operatorToken.kind;
  return operator === ts.SyntaxKind.AmpersandAmpersandToken || operator === ts.SyntaxKind.BarBarToken;
}

function isReturned(node: ts.Expression): boolean {
  const { parent } = node;
  return (
    (ts.isReturnStatement(parent) && parent.expression === node) ||
    (ts.isArrowFunction(parent) && parent.body === node)
  );
}

/** An expression whose value has no mutants in its parts. */
function isPlainValue(node: ts.Expression): boolean {
  const value = unwrap(node);
  if (ts.isIdentifier(value)) return value.text !== 'undefined';
  return (
    ts.isCallExpression(value) ||
    ts.isAwaitExpression(value) ||
    ts.isPropertyAccessExpression(value) ||
    ts.isElementAccessExpression(value) ||
    ts.isTemplateExpression(value)
  );
}

function methodMutant(node: ts.Expression): string | null {
  if (!ts.isCallExpression(node) || !ts.isPropertyAccessExpression(node.expression)) return null;
  // Parentheses would end what a question mark skips.
  if (node.getText().includes('?.')) return null;
  const { expression, name } = node.expression;
  const other = Object.hasOwn(METHODS, name.text) ? METHODS[name.text] : undefined;
  if (other === undefined) return null;
  const rest = node.getText().slice(name.end - node.getStart());
  return `${node.getText().slice(0, expression.end - node.getStart())}.${other}${rest}`;
}

/** The outermost node of a chain of members and calls: in its middle, `this` and what is skipped would change. */
function isWholeChain(node: ts.Expression): boolean {
  if (!isLink(node)) return false;
  const { parent } = node;
  return !(isLink(parent) && parent.expression === node) && !ts.isNonNullExpression(parent);
}

function isLink(
  node: ts.Node,
): node is ts.PropertyAccessExpression | ts.ElementAccessExpression | ts.CallExpression {
  return (
    ts.isPropertyAccessExpression(node) || ts.isElementAccessExpression(node) || ts.isCallExpression(node)
  );
}

/** The chain without one of its question marks. */
function chainMutants(node: ts.Expression): readonly string[] {
  const mutants: string[] = [];
  for (let link: ts.Expression = node; isLink(link); link = link.expression) {
    const token = link.questionDotToken;
    if (token === undefined) continue;
    const at = token.getStart() - node.getStart();
    const text = node.getText();
    const isMember = ts.isPropertyAccessExpression(link);
    mutants.push(`${text.slice(0, at)}${isMember ? '.' : ''}${text.slice(at + 2)}`);
  }
  return mutants;
}

/** A statement that the rest of the function can do without. */
function isRemovable(node: ts.Node): boolean {
  if (ts.isContinueStatement(node) || ts.isThrowStatement(node)) return true;
  if (ts.isReturnStatement(node)) return node.expression === undefined;
  if (ts.isBreakStatement(node)) return !ts.isCaseClause(node.parent) && !ts.isDefaultClause(node.parent);
  if (!ts.isExpressionStatement(node)) return false;
  const value = unwrap(node.expression);
  return !(ts.isCallExpression(value) && value.expression.kind === ts.SyntaxKind.SuperKeyword);
}
