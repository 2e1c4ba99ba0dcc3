import ts from 'typescript';
import type { Mutant } from './find-mutants.ts';

/** Where the worker keeps what the mutated sources call. */
export const SWITCH_NAME = '__spangateMutants';

/**
 * Compiles all mutants of a source into it, each behind a question about the one that is switched on: their numbers
 * start at `firstId`, in their order. Every turn of a loop is told too, so that a mutant that never ends can be stopped.
 */
export function instrument(source: string, mutants: readonly Mutant[], firstId: number): string {
  const tree = ts.createSourceFile('source.ts', source, ts.ScriptTarget.Latest, true);
  const byNode = new Map<string, { readonly id: number; readonly mutant: Mutant }[]>();
  for (const [index, mutant] of mutants.entries()) {
    const key = `${mutant.form} ${mutant.start} ${mutant.end}`;
    const those = byNode.get(key) ?? [];
    those.push({ id: firstId + index, mutant });
    byNode.set(key, those);
  }
  const take = (form: Mutant['form'], node: ts.Node) => {
    const key = `${form} ${node.getStart(tree)} ${node.end}`;
    const those = byNode.get(key) ?? [];
    byNode.delete(key);
    return those;
  };
  /** The text of a node, from its first token, with the mutants in it. */
  const print = (node: ts.Node): string => {
    // The outermost of the nodes with the same extent takes the mutants: they replace all of its text.
    const own = ts.isExpression(node) ? take('expression', node) : [];
    const removal = ts.isStatement(node) ? take('statement', node) : [];
    let text = '';
    let at = node.getStart(tree);
    ts.forEachChild(node, (child) => {
      const start = child.getStart(tree);
      text += `${source.slice(at, start)}${print(child)}`;
      at = child.end;
    });
    text += source.slice(at, node.end);
    for (const { id, mutant } of own) text = `(__on(${id}) ? (${mutant.mutated}) : ${text})`;
    if (own.length > 0 && ts.isArrowFunction(node.parent)) text = `(${text})`;
    for (const { id } of removal) text = `{ if (!__on(${id})) { ${text} } }`;
    // Outside of what is removed: the loop may turn for ever without it.
    if (isLoopBody(node)) text = `{ __tick(); ${text} }`;
    return text;
  };
  const parts = print(tree);
  if (byNode.size > 0) throw new Error(`mutants without a place: ${[...byNode.keys()].join(', ')}`);
  const head = `const { on: __on, tick: __tick } = globalThis.${SWITCH_NAME};`;
  return `${head}${source.slice(0, tree.getStart(tree))}${parts}${source.slice(tree.end)}`;
}

function isLoopBody(node: ts.Node): boolean {
  return (
    ts.isIterationStatement(node.parent ?? node, false) &&
    'statement' in node.parent &&
    node.parent.statement === node
  );
}
