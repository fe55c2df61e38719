import { placed } from '@interlude/protocol/base-path.mjs';
import type { Content, JsonSchema, Operation } from '@interlude/protocol/open-api';
import { API_BASE } from '@interlude/protocol/version';
import { ChevronRight } from 'lucide';
import type { ReactNode } from 'react';
import { Icon } from '@/components/ui/icon';
import { curlOf } from './api-curl';
import { typePath } from './api-parts';
import { Fields, SchemaFields, TypeWords } from './api-schema';
import { CopyText } from './copy-text';

/** What can be asked, on a line, and all about it beneath. */
export function ApiOperation(props: { method: string; path: string; operation: Operation }) {
  const { method, path, operation } = props;
  const { operationId, summary } = operation;
  return (
    <li className="border-line border-b">
      <details className="group/op">
        <summary className="grid cursor-pointer list-none grid-cols-[52px_minmax(0,1fr)_12px] items-baseline gap-x-3 rounded-sm py-1.5 text-xs hover:bg-raised/60 @3xl:grid-cols-[52px_minmax(0,4fr)_minmax(0,5fr)_12px] [&::-webkit-details-marker]:hidden">
          <code className="font-medium text-2xs text-ink-2">{method}</code>
          <code className="min-w-0 font-medium [overflow-wrap:anywhere]">{path.replace(API_BASE, '')}</code>
          <span className="min-w-0 text-ink-2 @max-3xl:order-4 @max-3xl:col-span-2 @max-3xl:col-start-2">
            {summary}
          </span>
          <Icon of={ChevronRight} size={12} className="self-center text-ink-3 group-open/op:rotate-90" />
        </summary>
        {/* an address that leads here opens what it is in */}
        <div id={operationId} className="scroll-mt-16 space-y-4 pt-1 pb-5 @3xl:pl-16">
          <p className="text-ink-3 text-xs">
            {operation.description} <code className="text-2xs">{path}</code>
          </p>
          <Asked operation={operation} />
          <Answered operation={operation} />
          <Part title="From a shell">
            <p className="flex items-start gap-3 rounded-md bg-sunken px-3 py-2">
              <code className="min-w-0 flex-1 whitespace-pre-wrap text-xs [overflow-wrap:anywhere]">
                {curlOf(method, path, operation)}
              </code>
              <CopyText label="Copy command" text={curlOf(method, path, operation)} />
            </p>
          </Part>
        </div>
      </details>
    </li>
  );
}

function Part({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="space-y-1">
      <h3 className="font-medium text-xs">{title}</h3>
      {children}
    </div>
  );
}

function Asked({ operation: { parameters, requestBody } }: { operation: Operation }) {
  const rows = parameters.map(({ name, in: place, required, description, schema }) => ({
    name,
    schema,
    isOptional: required !== true,
    about: description,
    place,
  }));
  const bodies = groupedContent(requestBody?.content ?? {});
  return (
    <>
      {rows.length > 0 && (
        <Part title="Takes">
          <Fields label="Takes" rows={rows} />
        </Part>
      )}
      {bodies.map(({ types, schema }) => (
        <Part key={types} title={`Body: ${types}${requestBody?.required ? '' : ', may be empty'}`}>
          {((schema.anyOf as JsonSchema[] | undefined) ?? [schema]).map((one) => (
            <SchemaFields key={JSON.stringify(one)} schema={one} label="Body" />
          ))}
        </Part>
      ))}
    </>
  );
}

function Answered({ operation: { responses } }: { operation: Operation }) {
  const all = Object.entries(responses);
  const good = all.filter(([, { $ref }]) => $ref === undefined);
  const refused = all.filter(([, { $ref }]) => $ref !== undefined).map(([status]) => status);
  return (
    <Part title="Answers">
      {good.map(([status, { description, content = {} }]) => (
        <div key={status} className="text-ink-2 text-xs">
          <p>
            <code className="font-medium text-ink">{status}</code> {description}
          </p>
          {groupedContent(content).map(({ types, schema }) => (
            <Answer key={types} types={types} schema={schema} />
          ))}
        </div>
      ))}
      <p className="text-ink-3 text-xs">
        Otherwise{' '}
        <a
          href={placed(typePath('Error'))}
          className="underline decoration-line-strong underline-offset-2 hover:decoration-ink"
        >
          Error
        </a>{' '}
        with {refused.join(', ')}.
      </p>
    </Part>
  );
}

function Answer({ types, schema }: { types: string; schema: JsonSchema }) {
  const frames = schema['x-frames'] ?? schema['x-lines'];
  if (typeof frames === 'object' && frames !== null) {
    const named = '$ref' in frames ? { data: frames as JsonSchema } : (frames as Record<string, JsonSchema>);
    return (
      <>
        <p className="max-w-prose text-ink-3">{String(schema.description)}</p>
        <SchemaFields schema={{ properties: named, required: Object.keys(named) }} label="Frames" />
      </>
    );
  }
  if (schema.properties !== undefined) return <SchemaFields schema={schema} label="Answer" />;
  return <p>{types === 'application/json' ? <TypeWords schema={schema} /> : <code>{types}</code>}</p>;
}

/** Several types of content that are made alike are one. */
function groupedContent(content: Content): { types: string; schema: JsonSchema }[] {
  const groups = new Map<string, { types: string; schema: JsonSchema }>();
  for (const [type, { schema }] of Object.entries(content)) {
    const key = JSON.stringify(schema);
    const group = groups.get(key);
    groups.set(key, { types: group === undefined ? type : `${group.types}, ${type}`, schema });
  }
  return [...groups.values()];
}
