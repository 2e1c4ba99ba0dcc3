/** Whether all runs take place (`NIGHTLY=1`), or those of a change. */
export const IS_NIGHT = process.env.NIGHTLY === '1';

/** How many runs of a property, or of a seeded scene: all of them at night, a quarter on each change. */
export function runs(atNight: number): number {
  return IS_NIGHT ? atNight : Math.ceil(atNight / 4);
}
