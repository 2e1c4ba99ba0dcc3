import { setTimeout } from 'node:timers/promises';

/**
 * Asks again until the answer is as it is wanted, and returns it: for what has no event. Without a pause between an answer and
 * the next question, a test that waits would take all the CPU that there is.
 */
export async function askUntil<T>(
  ask: () => Promise<T>,
  isWanted: (answer: T) => boolean,
  pauseMs = 20,
): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (isWanted(answer)) return answer;
    await setTimeout(pauseMs);
  }
}
