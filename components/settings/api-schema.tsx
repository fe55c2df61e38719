import type { JsonSchema } from '@interlude/protocol/open-api';
import { Fragment, type ReactNode } from 'react';

export const LINK = 'underline decoration-line-strong underline-offset-2 hover:decoration-ink';

const COMPONENTS = '#/components/schemas/';

/** A type in TypeScript's notation. Named types link to their place on the page. */
export function TypeText({ schema }: { schema: JsonSchema }): ReactNode {
  const { $ref, type, items, additionalProperties } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.slice(COMPONENTS.length);
    return (
      <a href={`#${name}`} className={LINK}>
        {name}
      </a>
    );
  }
  const choices = choicesOf(schema);
  if (choices !== undefined) {
    return choices.map((choice, index) => (
      <Fragment key={JSON.stringify(choice)}>
        {index > 0 && ' | '}
        <TypeText schema={choice} />
      </Fragment>
    ));
  }
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if (type === 'array') {
    const item = (items ?? {}) as JsonSchema;
    const isUnion = choicesOf(item) !== undefined || Array.isArray(item.enum) || Array.isArray(item.type);
    const { minItems, maxItems } = schema;
    return (
      <>
        {isUnion && '('}
        <TypeText schema={item} />
        {isUnion && ')'}[]{range(minItems, maxItems, 'items')}
      </>
    );
  }
  if (type === 'object' && typeof additionalProperties === 'object' && schema.properties === undefined) {
    return (
      <>
        {'{ [name]: '}
        <TypeText schema={additionalProperties as JsonSchema} />
        {' }'}
      </>
    );
  }
  const names = [type].flat().filter((name) => typeof name === 'string');
  if (names.length === 0) return 'any';
  const isNumber = names.includes('integer') || names.includes('number');
  const limits = isNumber
    ? range(schema.minimum, schema.maximum)
    : range(schema.minLength, schema.maxLength, 'characters');
  return `${names.join(' | ')}${limits}`;
}

function choicesOf({ anyOf, oneOf, allOf }: JsonSchema): JsonSchema[] | undefined {
  return (anyOf ?? oneOf ?? allOf) as JsonSchema[] | undefined;
}

/** ` (1 to 200 items)`; empty if there is no limit besides that of JSON's numbers. */
function range(least: unknown, max: unknown, unit = ''): string {
  const to = typeof max === 'number' && max < Number.MAX_SAFE_INTEGER ? max.toLocaleString('en') : null;
  const from = typeof least === 'number' && least > Number.MIN_SAFE_INTEGER ? String(least) : null;
  const words = from === null ? to && `at most ${to}` : to === null ? `at least ${from}` : `${from} to ${to}`;
  return words === null ? '' : ` (${`${words} ${unit}`.trim()})`;
}

export interface Field {
  name: string;
  schema: JsonSchema;
  isOptional: boolean;
  description?: unknown;
  /** `path`, `query` or `header`. */
  place?: string;
}

/** The fields of an object type; for other types, the type itself. */
export function SchemaFields({ schema, label }: { schema: JsonSchema; label: string }) {
  const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const required = (schema.required ?? []) as string[];
  if (fields.length > 0) {
    const rows = fields.map(([name, field]) => ({
      name,
      schema: field,
      isOptional: !required.includes(name),
      description: field.description,
    }));
    return <Fields label={label} fields={rows} />;
  }
  return (
    <p className="text-ink-2 text-xs">
      <TypeText schema={schema} />
    </p>
  );
}

export function Fields({ label, fields }: { label: string; fields: readonly Field[] }) {
  return (
    <dl aria-label={label} className="border-line border-t text-xs">
      {fields.map(({ name, schema, isOptional, description, place }) => (
        <div
          key={`${place} ${name}`}
          className="grid gap-x-4 border-line border-b py-1 @xl:grid-cols-[minmax(0,13rem)_minmax(0,1fr)]"
        >
          <dt className="min-w-0 text-ink-3">
            <code className="font-medium text-ink">{name}</code>
            {isOptional && ' optional'}
            {place !== undefined && ` ${place}`}
          </dt>
          <dd className="min-w-0 text-ink-2">
            <TypeText schema={schema} />
            {schema.default !== undefined && `, default ${JSON.stringify(schema.default)}`}
            {typeof description === 'string' && (
              <p className="max-w-prose text-ink-3">
                <WithCode text={description} />
              </p>
            )}
            <AnonymousTypes schema={schema} label={name} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** Object types without a name are shown below the field that uses them. */
function AnonymousTypes({ schema, label }: { schema: JsonSchema; label: string }) {
  const inner = [schema, schema.items as JsonSchema | undefined, ...(choicesOf(schema) ?? [])];
  return inner.map(
    (type) =>
      type?.properties !== undefined && (
        <div key={JSON.stringify(type)} className="mt-1 border-line border-l pl-3">
          <SchemaFields schema={type} label={label} />
        </div>
      ),
  );
}

/** Renders text between backquotes as code. */
export function WithCode({ text }: { text: string }) {
  return text.split('`').map((part, index) => {
    const key = `${index} ${part}`;
    return index % 2 === 1 ? <code key={key}>{part}</code> : <Fragment key={key}>{part}</Fragment>;
  });
}
