/** The first number from `first` on for which this is true, as it is for all after it; `end` if there is none before that. */
export function findSince(first: number, end: number, isSince: (number: number) => boolean): number {
  let [low, high] = [first, end];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (isSince(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
