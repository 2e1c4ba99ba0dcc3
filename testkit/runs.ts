/** How many runs of a property, or of a seeded scene: all of them at night (`NIGHTLY=1`), a quarter on each change. */
export function runs(atNight: number): number {
  return process.env.NIGHTLY === '1' ? atNight : Math.ceil(atNight / 4);
}
