import { placed } from '@interlude/protocol/base-path.mjs';
import type { OpenApiDocument, Operation } from '@interlude/protocol/open-api';
import { API_ADDRESS, API_BASE } from '@interlude/protocol/version';
import { ApiOperation } from './api-operation';
import { ApiParts, partPath, typePath } from './api-parts';
import { SchemaFields } from './api-schema';
import { CopyText } from './copy-text';
import { Section } from './section';
import { WithCode } from './with-code';

const LINK = 'underline decoration-line-strong underline-offset-2 hover:decoration-ink';

/** Everything that can be asked of this server, to be read: rendered from its OpenAPI document. */
export function ApiPage({ document, origin }: { document: OpenApiDocument; origin: string }) {
  const { info, tags } = document;
  const shell = `export INTERLUDE_URL=${origin}\nread -rs INTERLUDE_TOKEN && export INTERLUDE_TOKEN`;
  return (
    <div className="@container space-y-7 [overflow-wrap:anywhere]">
      <div className="space-y-3">
        <p className="max-w-prose text-pretty text-ink-2">
          <WithCode text={info.description} />
        </p>
        <p className="max-w-prose text-ink-2">
          Paths are beneath <code>{API_ADDRESS}</code>, but for those that sign in and for <code>/metrics</code>. For
          tools there is the same as{' '}
          <a href={`${API_ADDRESS}/openapi.json`} download="interlude-openapi.json" className={LINK}>
            an OpenAPI 3.1 document
          </a>
          .
        </p>
        <p className="text-ink-2 text-xs">For the commands on these pages, once in a shell; then paste a token:</p>
        <p className="flex max-w-2xl items-start gap-3 rounded-md bg-sunken px-3 py-2">
          <code className="min-w-0 flex-1 whitespace-pre-wrap text-xs">{shell}</code>
          <CopyText label="Copy command" text={shell} />
        </p>
      </div>
      {tags.map(({ name, description }) => (
        <Section key={name} title={name} about={<WithCode text={description} />}>
          <ul aria-label={name} className="border-line border-t">
            {operationsOf(document, name).map(({ path, method, operation }) => (
              <li key={operation.operationId} className="border-line border-b">
                <a
                  href={`${placed(partPath(name))}#${operation.operationId}`}
                  className="grid grid-cols-[52px_minmax(0,1fr)] items-baseline gap-x-3 rounded-sm py-1.5 text-xs hover:bg-raised/60 @3xl:grid-cols-[52px_minmax(0,4fr)_minmax(0,5fr)]"
                >
                  <code className="font-medium text-2xs text-ink-2">{method}</code>
                  <code className="min-w-0 font-medium">{path.replace(API_BASE, '')}</code>
                  <span className="min-w-0 text-ink-2 @max-3xl:col-start-2">{operation.summary}</span>
                </a>
              </li>
            ))}
          </ul>
        </Section>
      ))}
      <ApiParts document={document} />
    </div>
  );
}

/** The routes of one part, each with all about it. */
export function ApiPartPage({ document, part }: { document: OpenApiDocument; part: string }) {
  const tag = document.tags.find(({ name }) => name === part);
  return (
    <div className="@container space-y-6 [overflow-wrap:anywhere]">
      <ApiParts document={document} here={part} />
      <Section title={part} about={<WithCode text={tag?.description ?? ''} />}>
        <ul aria-label={part} className="border-line border-t">
          {operationsOf(document, part).map(({ path, method, operation }) => (
            <ApiOperation key={operation.operationId} method={method} path={path} operation={operation} />
          ))}
        </ul>
      </Section>
    </div>
  );
}

/** The names of all types. */
export function ApiTypesPage({ document }: { document: OpenApiDocument }) {
  return (
    <div className="space-y-6">
      <ApiParts document={document} here="Types" />
      <Section title="Types" about="What is answered, by name.">
        <ul aria-label="Types" className="columns-[14rem] gap-x-6 text-xs">
          {Object.keys(document.components.schemas).map((name) => (
            <li key={name} className="py-0.5">
              <a href={placed(typePath(name))} className={LINK}>
                <code>{name}</code>
              </a>
            </li>
          ))}
        </ul>
      </Section>
    </div>
  );
}

/** One type. */
export function ApiTypePage({ document, name }: { document: OpenApiDocument; name: string }) {
  const schema = document.components.schemas[name] ?? {};
  const about = typeof schema.description === 'string' ? <WithCode text={schema.description} /> : undefined;
  return (
    <div className="@container space-y-6 [overflow-wrap:anywhere]">
      <ApiParts document={document} />
      <Section title={name} about={about}>
        <SchemaFields schema={schema} label={name} />
      </Section>
    </div>
  );
}

interface Listed {
  path: string;
  method: string;
  operation: Operation;
}

/** Without those that are there twice for whoever checks the server’s health. */
function operationsOf({ paths }: OpenApiDocument, part: string): Listed[] {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method, { tags }]) => tags[0] === part && method !== 'head' && !/^\/(healthz|readyz)$/.test(path))
      .map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
}
