import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** The wire type of a value, by its type in the registry; an enumeration is one of its texts. */
const WIRE_TYPES = {
  string: 'string',
  int: 'int',
  double: 'double',
  boolean: 'bool',
  'string[]': 'strings',
  'template[double]': 'doubles',
} as const;

/** The wire types of otel/record/registry/attribute-names.ts. */
export type WireType = (typeof WIRE_TYPES)[keyof typeof WIRE_TYPES];

/** An attribute at its definition, or where a span or event refers to it with more details. */
export interface RegistryAttribute {
  readonly name: string;
  readonly type: WireType;
  readonly brief: string;
  readonly note: string;
  readonly unit: string;
  /** `always`, or the condition for its presence. */
  readonly presence: string;
  readonly isRequired: boolean;
  /** Whether the value differs in nearly every request. */
  readonly varies: boolean;
  /** The title in the dashboard; empty if the attribute is not shown. */
  readonly label: string;
  /** The field of the record that has the same value; empty if there is none. */
  readonly sameAs: string;
  /** Whether it is not sent with the newest names of the conventions. */
  readonly isOnlyPinned: boolean;
}

/** The instrument of a metric. */
export type Instrument = 'counter' | 'updowncounter' | 'gauge' | 'histogram';

/** The name of a metric on the wire, its unit (UCUM), and for a histogram the upper bounds of its buckets. */
export interface RegistryMetric {
  readonly name: string;
  readonly instrument: Instrument;
  readonly unit: string;
  readonly buckets: readonly number[] | undefined;
  /** Set only for a metric of the client's side of the operation. */
  readonly client: RegistryClientMetric | undefined;
}

/** What a metric of the client's side counts: see metrics.yaml. */
export interface RegistryClientMetric {
  readonly pinned?: string;
  readonly latest?: string;
  readonly values: readonly {
    readonly field: string;
    readonly zero?: boolean;
    readonly without?: readonly string[];
    readonly attributes?: Readonly<Record<string, string>>;
  }[];
}

/** A group of the registry; `attributes` are those that it lists itself, with their references resolved. */
export interface RegistryGroup {
  readonly id: string;
  readonly type: string;
  readonly title: string;
  readonly brief: string;
  /** The group whose attributes this one inherits. */
  readonly extends: string | undefined;
  /** The name of an event on the wire. */
  readonly eventName: string | undefined;
  /** Set only for a metric. */
  readonly metric: RegistryMetric | undefined;
  /** The version of the semantic conventions from which the definitions are taken. */
  readonly schemaUrl: string | undefined;
  /** The field of the record whose items are these events. */
  readonly field: string | undefined;
  readonly attributes: readonly RegistryAttribute[];
}

/** The registry: its name, and its groups by id. */
export interface Registry {
  readonly name: string;
  readonly groups: ReadonlyMap<string, RegistryGroup>;
}

/** The content of the files, as far as it is used (Weaver, schemas/semconv-syntax.md). */
interface YamlAttribute {
  readonly id?: string;
  readonly ref?: string;
  readonly type?: string | { readonly members: readonly { readonly value: string }[] };
  readonly stability?: string;
  readonly brief?: string;
  readonly note?: string;
  readonly examples?: unknown;
  readonly requirement_level?: 'required' | { readonly conditionally_required: string };
  readonly annotations?: {
    readonly unit?: string;
    readonly varies?: true;
    readonly label?: string;
    readonly same_as?: string;
    readonly only_pinned?: true;
  };
}

interface YamlGroup {
  readonly id: string;
  readonly type: string;
  readonly name?: string;
  readonly display_name?: string;
  readonly brief: string;
  readonly extends?: string;
  readonly metric_name?: string;
  readonly instrument?: string;
  readonly unit?: string;
  readonly annotations?: {
    readonly schema_url?: string;
    readonly buckets?: readonly number[];
    readonly client?: RegistryClientMetric;
    readonly field?: string;
  };
  readonly attributes: readonly YamlAttribute[];
}

/** Reads the registry of a directory. Throws on a type, a reference or an omission that Weaver would refuse. */
export function readRegistry(directory = join(import.meta.dirname, '../../otel/record/registry')): Registry {
  const read = (file: string): unknown => parse(readFileSync(join(directory, file), 'utf8'));
  const { name } = read('manifest.yaml') as { readonly name: string };
  const files = readdirSync(directory).filter((file) => file.endsWith('.yaml') && file !== 'manifest.yaml');
  const yamlGroups = files.flatMap((file) => (read(file) as { readonly groups: YamlGroup[] }).groups);
  const definitions = new Map<string, YamlAttribute>();
  for (const { id, ...definition } of yamlGroups.flatMap(({ attributes }) => attributes)) {
    if (id === undefined) continue;
    if (definitions.has(id)) throw new Error(`${id} is defined twice`);
    definitions.set(id, definition);
  }
  const groups = yamlGroups.map((group) => toGroup(group, definitions));
  return { name, groups: new Map(groups.map((group) => [group.id, group])) };
}

/** The attributes of a group, inherited ones first; an unknown id is an error. */
export function attributesOf(registry: Registry, id: string): readonly RegistryAttribute[] {
  const group = registry.groups.get(id);
  if (group === undefined) throw new Error(`the registry has no group ${id}`);
  const inherited = group.extends === undefined ? [] : attributesOf(registry, group.extends);
  return [...inherited, ...group.attributes];
}

function toGroup(group: YamlGroup, definitions: ReadonlyMap<string, YamlAttribute>): RegistryGroup {
  return {
    id: group.id,
    type: group.type,
    title: group.display_name ?? '',
    brief: group.brief,
    extends: group.extends,
    eventName: group.name,
    metric: group.type === 'metric' ? toMetric(group) : undefined,
    schemaUrl: group.annotations?.schema_url,
    field: group.annotations?.field,
    attributes: group.attributes.map((attribute) => toAttribute(attribute, definitions)),
  };
}

const INSTRUMENTS: readonly Instrument[] = ['counter', 'updowncounter', 'gauge', 'histogram'];

function toMetric({ id, metric_name, instrument: name, unit, annotations }: YamlGroup): RegistryMetric {
  const instrument = INSTRUMENTS.find((known) => known === name);
  if (metric_name === undefined || unit === undefined || instrument === undefined) {
    throw new Error(`${id} has no name, no unit, or an unknown instrument: ${name}`);
  }
  const buckets = annotations?.buckets;
  if ((instrument === 'histogram') !== (buckets !== undefined)) {
    throw new Error(`${id} is a histogram without buckets, or has buckets and is no histogram`);
  }
  return { name: metric_name, instrument, unit, buckets, client: annotations?.client };
}

function toAttribute(
  attribute: YamlAttribute,
  definitions: ReadonlyMap<string, YamlAttribute>,
): RegistryAttribute {
  const name = attribute.ref ?? attribute.id ?? '';
  const definition = definitions.get(name);
  if (definition === undefined) throw new Error(`${name} is not defined`);
  const { type, stability, brief = '', note = '', examples, annotations } = { ...definition, ...attribute };
  if (brief === '' || stability === undefined) throw new Error(`${name} has no brief or no stability`);
  const wireType = toWireType(name, type);
  // Weaver requires examples of texts and lists; enumerations are their own examples.
  if ((type === 'string' || type === 'string[]') && examples === undefined)
    throw new Error(`${name} has no examples`);
  const level = attribute.requirement_level;
  const presence = typeof level === 'object' ? level.conditionally_required : 'always';
  return {
    name,
    type: wireType,
    brief,
    note,
    presence,
    unit: annotations?.unit ?? '',
    isRequired: presence === 'always',
    varies: annotations?.varies === true,
    label: annotations?.label ?? '',
    sameAs: annotations?.same_as ?? '',
    isOnlyPinned: annotations?.only_pinned === true,
  };
}

function toWireType(name: string, type: YamlAttribute['type']): WireType {
  if (typeof type === 'object') return 'string';
  const wireType = Object.entries(WIRE_TYPES).find(([registered]) => registered === type)?.[1];
  if (wireType === undefined) throw new Error(`${name} has an unknown type: ${type}`);
  return wireType;
}
