import type { Browser } from 'playwright-core';
import type { Fed, Way } from './feed.ts';
import type { Questions } from './question.ts';

/** A backend that is run and asked. */
export interface Backend {
  /** Its name on the command line. */
  readonly id: string;
  /** Installs or builds it, unless it is there. Called outside the namespace, which has no network. */
  readonly prepare: () => Promise<void>;
  /** Starts it on its usual ports. `folder` is empty, and its own. */
  readonly start: (folder: string) => Promise<RunningBackend>;
}

/** A backend that waits for records. */
export interface RunningBackend extends AsyncDisposable {
  /** Name and version, as in the table. */
  readonly title: string;
  /** How the gateway sends to it without a collector. */
  readonly direct: Way;
  /**
   * How the shipped collector sends to it: the heading above its YAML in docs/backends.md, null if the shipped
   * configuration is enough, and the environment. Undefined: it is not fed by a collector.
   */
  readonly behindCollector?: {
    readonly heading: string | null;
    readonly env: Readonly<Record<string, string>>;
    /** How the gateway sends to the collector then. */
    readonly way?: Partial<Way>;
  };
  readonly questions: (fed: Fed) => Questions;
  /** Resolves with what is wrong beyond the views. */
  readonly findMore?: (fed: Fed) => Promise<readonly string[]>;
  /** Takes the picture of docs/images; resolves with its name. */
  readonly takePicture?: (browser: Browser, fed: Fed) => Promise<string>;
}
