/** Runs actions one after another, in the order of the calls. An action that fails does not stop the next. */
export type InTurn = <T>(action: () => Promise<T>) => Promise<T>;

/** Creates a sequence without actions. */
export function createInTurn(): InTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (action) => {
    const next = last.then(action);
    last = next.catch(() => undefined);
    return next;
  };
}
