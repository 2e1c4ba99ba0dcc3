/** Whose stored responses a request asks for, where the gateway asks for keys. */
export interface ResponseReader {
  readonly tenant: string;
  /** The models that its key may use; null: all. */
  readonly models: readonly string[] | null;
}
