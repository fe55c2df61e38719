import { placed } from '@interlude/protocol/base-path.mjs';
import type { JsonSchema } from '@interlude/protocol/open-api';
import { Fragment, type ReactNode } from 'react';
import { typePath } from './api-parts';
import { WithCode } from './with-code';

const COMPONENTS = '#/components/schemas/';

/** What a value is, in a few words: the name of a type leads to it. */
export function TypeWords({ schema }: { schema: JsonSchema }): ReactNode {
  const { $ref, type, items, additionalProperties } = schema;
  if (typeof $ref === 'string') {
    const name = $ref.slice(COMPONENTS.length);
    return (
      <a
        href={placed(typePath(name))}
        className="underline decoration-line-strong underline-offset-2 hover:decoration-ink"
      >
        {name}
      </a>
    );
  }
  const choices = (schema.anyOf ?? schema.oneOf ?? schema.allOf) as JsonSchema[] | undefined;
  if (choices !== undefined)
    return <Choice of={choices.map((one) => [JSON.stringify(one), <TypeWords key="" schema={one} />])} />;
  const values = schema.const === undefined ? (schema.enum as unknown[] | undefined) : [schema.const];
  if (values !== undefined) {
    return <Choice of={values.map((value) => [String(value), <code key="">{JSON.stringify(value)}</code>])} />;
  }
  if (type === 'array') {
    const { minItems, maxItems } = schema;
    return (
      <>
        list of <TypeWords schema={(items ?? {}) as JsonSchema} />
        {(minItems !== undefined || maxItems !== undefined) && ` (${range(minItems, maxItems)})`}
      </>
    );
  }
  if (type === 'object' && typeof additionalProperties === 'object' && schema.properties === undefined) {
    return (
      <>
        object of <TypeWords schema={additionalProperties as JsonSchema} />
      </>
    );
  }
  const words = [type].flat().filter((one) => typeof one === 'string');
  if (words.length === 0) return 'anything';
  const { minimum, maximum, maxLength } = schema;
  const isNumber = words.includes('integer') || words.includes('number');
  const isBound = isNumber && (minimum !== undefined || (typeof maximum === 'number' && maximum < LARGEST));
  const about = isBound ? range(minimum, maximum) : maxLength === undefined ? '' : range(undefined, maxLength);
  return `${words.join(' or ')}${about === '' ? '' : ` (${about})`}`;
}

/** What any number that JSON carries whole is below: nothing to say. */
const LARGEST = Number.MAX_SAFE_INTEGER;

function range(from: unknown, to: unknown): string {
  const upTo = typeof to === 'number' && to < LARGEST ? to.toLocaleString('en') : null;
  if (typeof from !== 'number') return upTo === null ? '' : `at most ${upTo}`;
  return upTo === null ? `from ${from}` : `${from} to ${upTo}`;
}

function Choice({ of }: { of: [string, ReactNode][] }) {
  return of.map(([key, words], at) => (
    <Fragment key={key}>
      {at > 0 && ' or '}
      {words}
    </Fragment>
  ));
}

/** The fields of an object, or what else it is; and of what its fields are made, if that has no name. */
export function SchemaFields({ schema, label }: { schema: JsonSchema; label: string }) {
  const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>);
  const required = (schema.required ?? []) as string[];
  if (fields.length === 0) {
    return (
      <p className="text-ink-2 text-xs">
        <TypeWords schema={schema} />
      </p>
    );
  }
  return (
    <Fields
      label={label}
      rows={fields.map(([name, field]) => ({
        name,
        schema: field,
        isOptional: !required.includes(name),
        about: typeof field.description === 'string' ? field.description : undefined,
      }))}
    />
  );
}

export interface FieldRow {
  name: string;
  schema: JsonSchema;
  isOptional: boolean;
  about?: string | undefined;
  /** Where it is sent, if that is not where the others are. */
  place?: string;
}

/** Names, what they are, and what they mean. */
export function Fields({ label, rows }: { label: string; rows: readonly FieldRow[] }) {
  return (
    <dl aria-label={label} className="border-line border-t text-xs">
      {rows.map(({ name, schema, isOptional, about, place }) => (
        <div
          key={`${place} ${name}`}
          className="grid gap-x-4 border-line border-b py-1 @xl:grid-cols-[minmax(0,13rem)_minmax(0,1fr)]"
        >
          <dt className="min-w-0 [overflow-wrap:anywhere]">
            <code className="font-medium">{name}</code>
            {isOptional && <span className="text-ink-3"> optional</span>}
            {place !== undefined && <span className="text-ink-3"> in the {place}</span>}
          </dt>
          <dd className="min-w-0 text-ink-2 [overflow-wrap:anywhere]">
            <TypeWords schema={schema} />
            {schema.default !== undefined && (
              <span className="text-ink-3">
                , otherwise <code>{JSON.stringify(schema.default)}</code>
              </span>
            )}
            {about !== undefined && (
              <p className="max-w-prose text-ink-3">
                <WithCode text={about} />
              </p>
            )}
            <Within schema={schema} label={name} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** What has no name of its own is told where it stands. */
function Within({ schema, label }: { schema: JsonSchema; label: string }) {
  const inner = [schema, schema.items, ...((schema.anyOf ?? []) as JsonSchema[])] as (JsonSchema | undefined)[];
  const shapes = inner.filter((one) => one?.properties !== undefined) as JsonSchema[];
  return shapes.map((shape) => (
    <div key={JSON.stringify(shape)} className="mt-1 border-line border-l pl-3">
      <SchemaFields schema={shape} label={label} />
    </div>
  ));
}
