import { once, setMaxListeners } from 'node:events';
import type { SimulatedReplicaSettings } from './settings.ts';

/** What a simulated replica can play. */
export const SCENES = ['normal', 'slow', 'failing', 'frozen', 'loading'] as const;

/** One of {@link SCENES}. */
export type Scene = (typeof SCENES)[number];

/** What each scene does, in words that follow the name of a replica. */
export const SCENE_TEXTS: Readonly<Record<Scene, string>> = {
  normal: 'answers as configured',
  slow: 'takes eight times as long to the first token, and four times as long for each further one',
  failing: 'answers with 500, cuts its streams, or ends them with an error',
  frozen: 'keeps its connections and sends nothing, as an engine that hangs; /health still answers',
  loading: 'answers everything with 503, as an engine that loads its model',
};

/** The settings of a request that begins during a scene. Whole and slow answers both need times that are not 0. */
export function toSceneSettings(settings: SimulatedReplicaSettings, scene: Scene): SimulatedReplicaSettings {
  switch (scene) {
    case 'slow':
      return {
        ...settings,
        ttftMs: Math.max(settings.ttftMs, 1) * 8,
        gapMs: Math.max(settings.gapMs, 1) * 4,
      };
    case 'failing':
      return { ...settings, errorRate: 1 };
    default:
      return settings;
  }
}

/** Whether a word names a scene. */
export function isScene(word: string): word is Scene {
  return SCENES.some((scene) => scene === word);
}

/** What a replica plays now. */
export class Stage {
  #scene: Scene = 'normal';
  readonly #changes = new EventTarget();

  constructor() {
    setMaxListeners(0, this.#changes); // one for each request that hangs
  }

  get scene(): Scene {
    return this.#scene;
  }

  /** Plays a scene from now on. Requests that are answered keep their speed and their fate; a frozen replica goes on. */
  play(scene: Scene): void {
    this.#scene = scene;
    this.#changes.dispatchEvent(new Event('change'));
  }

  /** Resolves when the replica is not frozen. Rejects as soon as `signal` aborts. */
  async untilThawed(signal: AbortSignal): Promise<void> {
    while (this.#scene === 'frozen') await once(this.#changes, 'change', { signal });
  }
}
