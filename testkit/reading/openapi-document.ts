import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { expect } from 'vitest';
import type { StartedGateway } from '../start-gateway.ts';

type Schema = { readonly [keyword: string]: unknown };

interface DocumentedResponse {
  readonly $ref?: string;
  readonly content: Readonly<Record<string, { readonly schema?: Schema }>>;
}

/** One method of one path in the document. */
export interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly description?: string;
  }[];
  readonly responses: Readonly<Record<string, DocumentedResponse>>;
}

interface OpenApi {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly responses: Readonly<Record<string, DocumentedResponse>>;
  };
}

/** The OpenAPI document that a gateway serves. */
export class OpenApiDocument {
  readonly json: OpenApi;
  /** By method and path, such as `GET /admin/stats`. */
  readonly operations: ReadonlyMap<string, Operation>;
  /** Knows the schemas that others refer to, as the schema `components`. */
  readonly #ajv = addFormats.default(
    new Ajv2020({ allErrors: true, strictTypes: false, code: { optimize: false } }),
  );
  readonly #compiled = new Map<Schema, ValidateFunction>();

  private constructor(json: OpenApi) {
    this.json = json;
    this.operations = new Map(
      Object.entries(json.paths).flatMap(([path, methods]) =>
        Object.entries(methods).map(([method, operation]) => [`${method.toUpperCase()} ${path}`, operation]),
      ),
    );
    this.#ajv.addSchema({ $id: 'components', $defs: close(json.components.schemas) });
  }

  static async read(gateway: StartedGateway): Promise<OpenApiDocument> {
    return new OpenApiDocument((await (await gateway.admin('/openapi.json')).json()) as OpenApi);
  }

  /**
   * Fails unless the answer is documented for the operation and valid. It is stricter than clients should be: members
   * that are not documented fail, too.
   */
  async check({ responses }: Operation, response: Response): Promise<void> {
    const documented = this.#resolve(responses[response.status]);
    const mediaType = response.headers.get('content-type') ?? '';
    expect(Object.keys(documented?.content ?? {}), `status ${response.status}`).toContain(mediaType);
    const schema = documented?.content[mediaType]?.schema;
    const text = await response.text();
    if (schema !== undefined) this.#validate(schema, JSON.parse(text));
  }

  #resolve(response: DocumentedResponse | undefined): DocumentedResponse | undefined {
    const name = response?.$ref?.replace('#/components/responses/', '');
    return name === undefined ? response : this.json.components.responses[name];
  }

  #validate(schema: Schema, value: unknown): void {
    const validate = this.#compiled.get(schema) ?? this.#ajv.compile(close(schema));
    this.#compiled.set(schema, validate);
    expect(validate(value) ? [] : validate.errors, JSON.stringify(value)).toEqual([]);
  }
}

/** Schemas that refer to those of `components`; their objects allow no other members. */
function close<T extends object>(schemas: T): T {
  return JSON.parse(
    JSON.stringify(schemas).replaceAll('#/components/schemas/', 'components#/$defs/'),
    (_, node) =>
      node?.type === 'object' && node.properties !== undefined
        ? { additionalProperties: false, ...node }
        : node,
  );
}
