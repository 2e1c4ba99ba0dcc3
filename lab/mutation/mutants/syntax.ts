import ts from 'typescript';

/** What a node adds to the name of the place that it contains: the name of a class, a method, a function. */
export function nameOf(node: ts.Node): string {
  if (ts.isConstructorDeclaration(node)) return 'constructor';
  if (ts.isVariableDeclaration(node)) {
    const { initializer, name } = node;
    const isFunction =
      initializer !== undefined && (ts.isArrowFunction(initializer) || ts.isFunctionExpression(initializer));
    return isFunction ? name.getText() : '';
  }
  if (ts.isClassDeclaration(node) || ts.isFunctionDeclaration(node)) return node.name?.text ?? '';
  if (ts.isMethodDeclaration(node) || ts.isAccessor(node)) return node.name.getText();
  return '';
}

/** The expression inside of parentheses, types and assertions. */
export function unwrap(node: ts.Expression): ts.Expression {
  if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node) || ts.isSatisfiesExpression(node))
    return unwrap(node.expression);
  return node;
}

/** Whether the operand makes `+` join texts. */
export function isText(node: ts.Expression): boolean {
  const value = unwrap(node);
  if (ts.isBinaryExpression(value)) return isText(value.left) || isText(value.right);
  return (
    ts.isStringLiteral(value) || ts.isNoSubstitutionTemplateLiteral(value) || ts.isTemplateExpression(value)
  );
}

/** Whether the node writes to a log. */
export function isLogCall(node: ts.Node): boolean {
  return ts.isCallExpression(node) && /\blog(ger)?\b|log\.|Log\./.test(node.expression.getText());
}
