'use client';

import type { Content, JsonSchema, OpenApiDocument, Operation } from '@interlude/protocol/open-api';
import { API_ADDRESS, API_BASE } from '@interlude/protocol/version';
import { ChevronRight } from 'lucide';
import { type ReactNode, useEffect, useState } from 'react';
import { CopyButton } from '@/components/ui/copy-button';
import { Icon } from '@/components/ui/icon';
import { Fields, LINK, SchemaFields, TypeText, WithCode } from './api-schema';
import { Section } from './fact-table';

/**
 * The API reference, rendered from the OpenAPI document. Anchors are operation ids and type names. Details are rendered
 * when opened, because rendering all details would block the server.
 */
export function ApiReference({ document, origin }: { document: OpenApiDocument; origin: string }) {
  const { info, tags, components } = document;
  useEffect(openTarget, []);
  const shell = `export INTERLUDE_URL=${origin}\nread -rs INTERLUDE_TOKEN && export INTERLUDE_TOKEN`;
  return (
    <div className="@container space-y-7 [overflow-wrap:anywhere]">
      <div className="space-y-3">
        <p className="max-w-prose text-pretty text-ink-2">
          <WithCode text={info.description} />
        </p>
        <p className="max-w-prose text-ink-2">
          Paths start with <code>{API_ADDRESS}</code>, except for sign-in and <code>/metrics</code>. For tools, download{' '}
          <a href={`${API_ADDRESS}/openapi.json`} download="interlude-openapi.json" className={LINK}>
            the OpenAPI 3.1 document
          </a>
          .
        </p>
        <p className="text-ink-2 text-xs">To use the commands below, run this in a shell and paste a token:</p>
        <Command text={shell} />
        <nav aria-label="API reference" className="flex flex-wrap gap-x-4 gap-y-2 text-ink-2 text-xs">
          {[...tags.map(({ name }) => name), 'Types'].map((name) => (
            <a key={name} href={`#${anchorOf(name)}`} className={`${LINK} pointer-coarse:py-3`}>
              {name}
            </a>
          ))}
        </nav>
      </div>
      {tags.map(({ name, description }) => (
        <div key={name} id={anchorOf(name)} className="scroll-mt-16">
          <Section title={name} about={<WithCode text={description} />}>
            <ul aria-label={name} className="border-line border-t">
              {operationsOf(document, name).map(({ path, method, operation }) => (
                <Entry
                  key={operation.operationId}
                  id={operation.operationId}
                  label={
                    <>
                      <code className="w-[52px] shrink-0 font-medium text-2xs text-ink-2">{method}</code>
                      <code className="min-w-0 flex-1 font-medium">{path.replace(API_BASE, '')}</code>
                      <span className="min-w-0 flex-1 text-ink-2 @max-3xl:hidden">{operation.summary}</span>
                    </>
                  }
                >
                  {() => <OperationDetails method={method} path={path} operation={operation} />}
                </Entry>
              ))}
            </ul>
          </Section>
        </div>
      ))}
      <div id={anchorOf('Types')} className="scroll-mt-16">
        <Section title="Types" about="The types used in responses.">
          <ul aria-label="Types" className="border-line border-t">
            {Object.entries(components.schemas).map(([name, schema]) => (
              <Entry key={name} id={name} label={<code className="min-w-0 flex-1 font-medium">{name}</code>}>
                {() => (
                  <>
                    {typeof schema.description === 'string' && (
                      <p className="max-w-prose text-ink-2 text-xs">
                        <WithCode text={schema.description} />
                      </p>
                    )}
                    <SchemaFields schema={schema} label={name} />
                  </>
                )}
              </Entry>
            ))}
          </ul>
        </Section>
      </div>
    </div>
  );
}

function anchorOf(group: string): string {
  return group.toLowerCase();
}

/** Opens the entry that the URL names, now and after changes. */
function openTarget(): () => void {
  const open = () => {
    if (!/^#\w+$/.test(location.hash)) return;
    const entry = window.document.querySelector<HTMLDetailsElement>(`${location.hash} > details`);
    if (entry !== null) entry.open = true;
  };
  open();
  addEventListener('hashchange', open);
  return () => removeEventListener('hashchange', open);
}

function Entry({ id, label, children }: { id: string; label: ReactNode; children: () => ReactNode }) {
  const [isOpen, setIsOpen] = useState(false);
  return (
    <li id={id} className="scroll-mt-16 border-line border-b">
      <details
        // opened before hydration
        ref={(details) => {
          if (details?.open) setIsOpen(true);
        }}
        onToggle={(event) => setIsOpen(event.currentTarget.open)}
        className="group/entry"
      >
        <summary className="flex cursor-pointer list-none items-baseline gap-x-3 rounded-sm py-1.5 text-xs hover:bg-raised/60 [&::-webkit-details-marker]:hidden">
          {label}
          <Icon of={ChevronRight} size={12} className="self-center text-ink-3 group-open/entry:rotate-90" />
        </summary>
        {isOpen && <div className="space-y-4 pt-1 pb-5 @3xl:pl-16">{children()}</div>}
      </details>
    </li>
  );
}

function OperationDetails({ method, path, operation }: { method: string; path: string; operation: Operation }) {
  const { summary, description, parameters, requestBody, responses } = operation;
  const refused = Object.keys(responses).filter((status) => responses[status]?.$ref !== undefined);
  const fields = parameters.map(({ name, in: place, required, description: about, schema }) => ({
    name,
    schema,
    isOptional: required !== true,
    description: about,
    place,
  }));
  return (
    <>
      <p className="text-ink-2 text-xs">
        {summary}. {description} <code className="text-2xs">{path}</code>
      </p>
      {fields.length > 0 && (
        <Part title="Parameters">
          <Fields label="Parameters" fields={fields} />
        </Part>
      )}
      {mergedContent(requestBody?.content).map(({ types, schema }) => (
        <Part key={types} title={`Body: ${types}${requestBody?.required ? '' : ' (optional)'}`}>
          {((schema.anyOf as JsonSchema[] | undefined) ?? [schema]).map((choice) => (
            <SchemaFields key={JSON.stringify(choice)} schema={choice} label="Body" />
          ))}
        </Part>
      ))}
      <Part title="Responses">
        {Object.entries(responses).map(
          ([status, { $ref, description: meaning, content }]) =>
            $ref === undefined && (
              <div key={status} className="text-ink-2 text-xs">
                <p>
                  <code className="font-medium text-ink">{status}</code> {meaning}
                </p>
                {mergedContent(content).map(({ types, schema }) => (
                  <ResponseContent key={types} types={types} schema={schema} />
                ))}
              </div>
            ),
        )}
        <p className="text-ink-3 text-xs">
          <a href="#Error" className={LINK}>
            Error
          </a>{' '}
          with {refused.join(', ')}
        </p>
      </Part>
      <Part title="From a shell">
        <Command text={curlOf(method, path, operation)} />
      </Part>
    </>
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

function Command({ text }: { text: string }) {
  return (
    <p className="flex max-w-2xl items-start gap-3 rounded-md bg-sunken px-3 py-2">
      <code className="min-w-0 flex-1 whitespace-pre-wrap text-xs">{text}</code>
      <CopyText label="Copy command" text={text} />
    </p>
  );
}

function ResponseContent({ types, schema }: { types: string; schema: JsonSchema }) {
  const parts = (schema['x-frames'] ?? schema['x-lines']) as JsonSchema | undefined;
  if (parts !== undefined) {
    const data = '$ref' in parts ? { data: parts } : parts;
    return (
      <>
        <p className="max-w-prose text-ink-3">
          <WithCode text={String(schema.description)} />
        </p>
        <SchemaFields schema={{ properties: data, required: Object.keys(data) }} label="Data" />
      </>
    );
  }
  if (schema.properties !== undefined) return <SchemaFields schema={schema} label="Response" />;
  return <p>{types === 'application/json' ? <TypeText schema={schema} /> : <code>{types}</code>}</p>;
}

/** Media types with the same schema, merged. */
function mergedContent(content: Content = {}): { types: string; schema: JsonSchema }[] {
  const merged = new Map<string, { types: string; schema: JsonSchema }>();
  for (const [type, { schema }] of Object.entries(content)) {
    const key = JSON.stringify(schema);
    const known = merged.get(key);
    merged.set(key, { types: known === undefined ? type : `${known.types}, ${type}`, schema });
  }
  return [...merged.values()];
}

/** The operations of a group, except those for load balancers (HEAD, and health checks outside the API's path). */
function operationsOf({ paths }: OpenApiDocument, group: string) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method, { tags }]) => tags[0] === group && method !== 'head' && !/^\/(healthz|readyz)$/.test(path))
      .map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
}

/** A curl command for a shell in which `INTERLUDE_URL` and `INTERLUDE_TOKEN` are set. */
function curlOf(method: string, path: string, operation: Operation): string {
  const { security, parameters, requestBody } = operation;
  const needed = parameters.filter((one) => one.in === 'query' && one.required === true);
  const query = needed.map(({ name, schema }) => `${name}=${exampleOf(name, schema)}`).join('&');
  const at = path.replace(/\{(\w+)\}/g, (_, name: string) => placeholder(name));
  const [mediaType, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const isStream = operation.responses[200]?.content?.['text/event-stream'] !== undefined;
  const parts = [
    `curl ${isStream ? '-N ' : ''}"$INTERLUDE_URL${at}${query === '' ? '' : `?${query}`}"`,
    ...(method === 'GET' ? [] : [`-X ${method}`]),
    ...(security.length === 0 ? [] : ['-H "Authorization: Bearer $INTERLUDE_TOKEN"']),
    ...(mediaType === undefined ? [] : [`-H 'Content-Type: ${mediaType.replace('*', 'plain')}'`]),
    ...(mediaType === undefined || content === undefined ? [] : [bodyOf(mediaType, content.schema)]),
  ];
  return parts.join(' \\\n  ');
}

function bodyOf(mediaType: string, schema: JsonSchema): string {
  if (mediaType === 'application/json') {
    return `-d '${JSON.stringify(sampleOf(schema)).replaceAll("'", '’')}'`;
  }
  if (mediaType !== 'application/x-www-form-urlencoded') return '--data-binary @FILE';
  return ((schema.required ?? []) as string[]).map((name) => `-d ${name}=${placeholder(name)}`).join(' ');
}

/** A name to replace: `SESSION_ID` for `sessionId`. */
function placeholder(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase();
}

function exampleOf(name: string, schema: JsonSchema): string {
  if (name === 'topic') return 'fleet';
  return schema.type === 'integer' ? '1' : placeholder(name);
}

/** The smallest value that matches a body's schema. */
function sampleOf(schema: JsonSchema, name = ''): unknown {
  const [first] = (schema.anyOf ?? schema.oneOf ?? []) as JsonSchema[];
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (first !== undefined && schema.properties === undefined) return sampleOf(first, name);
  const fields = (schema.properties ?? {}) as Record<string, JsonSchema>;
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (type === 'array') return [sampleOf((schema.items ?? {}) as JsonSchema)];
  if (type === 'integer' || type === 'number') return 1;
  if (type === 'boolean') return true;
  if (type === 'string') return name === '' ? '…' : placeholder(name);
  const required = (schema.required ?? []) as string[];
  return Object.fromEntries(required.map((field) => [field, sampleOf(fields[field] ?? {}, field)]));
}

/** A `CopyButton` for a fixed text. */
function CopyText({ label, text }: { label: string; text: string }) {
  return <CopyButton label={label} text={() => text} className="mt-px shrink-0" />;
}
