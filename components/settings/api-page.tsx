import type { OpenApiDocument } from '@/lib/protocol/open-api';
import { API_BASE } from '@/lib/protocol/version';
import { ApiOperation } from './api-operation';
import { SchemaFields } from './api-schema';
import { CopyText } from './copy-text';
import { Section } from './section';
import { WithCode } from './with-code';

/** Everything that can be asked of this server, to be read: rendered from its OpenAPI document. */
export function ApiPage({ document, origin }: { document: OpenApiDocument; origin: string }) {
  const { info, tags, paths, components } = document;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method: method.toUpperCase(), operation })),
  );
  const shown = operations.filter(({ method, path }) => method !== 'HEAD' && path !== '/healthz' && path !== '/readyz');
  const shell = `export INTERLUDE_URL=${origin}\nread -rs INTERLUDE_TOKEN && export INTERLUDE_TOKEN`;
  return (
    <div className="@container space-y-9 [overflow-wrap:anywhere]">
      <div className="space-y-3">
        <p className="max-w-prose text-pretty text-ink-2">
          <WithCode text={info.description} />
        </p>
        <p className="max-w-prose text-ink-2">
          Paths below are beneath <code>{API_BASE}</code>, but for those that sign in. For tools there is the same as{' '}
          <a
            href={`${API_BASE}/openapi.json`}
            download="interlude-openapi.json"
            className="underline decoration-line-strong underline-offset-2 hover:decoration-ink"
          >
            an OpenAPI 3.1 document
          </a>
          .
        </p>
        <p className="text-ink-2 text-xs">For the commands below, once in a shell; then paste a token:</p>
        <p className="flex max-w-2xl items-start gap-3 rounded-md bg-sunken px-3 py-2">
          <code className="min-w-0 flex-1 whitespace-pre-wrap text-xs [overflow-wrap:anywhere]">{shell}</code>
          <CopyText label="Copy command" text={shell} />
        </p>
        <nav aria-label="Parts of the API" className="flex flex-wrap gap-x-4 gap-y-1 text-xs">
          {[...tags.map(({ name }) => name), 'Types'].map((name) => (
            <a
              key={name}
              href={`#${anchorOf(name)}`}
              className="text-ink-2 underline decoration-line-strong underline-offset-2 hover:text-ink"
            >
              {name}
            </a>
          ))}
        </nav>
      </div>
      {tags.map(({ name, description }) => (
        <div key={name} id={anchorOf(name)} className="scroll-mt-16">
          <Section title={name} about={<WithCode text={description} />}>
            <ul aria-label={name} className="border-line border-t">
              {shown
                .filter(({ operation }) => operation.tags[0] === name)
                .map(({ path, method, operation }) => (
                  <ApiOperation key={operation.operationId} method={method} path={path} operation={operation} />
                ))}
            </ul>
          </Section>
        </div>
      ))}
      <div id="types" className="scroll-mt-16">
        <Section title="Types" about="What is answered, by name.">
          <ul aria-label="Types" className="border-line border-t">
            {Object.entries(components.schemas).map(([name, schema]) => (
              <li key={name} className="border-line border-b">
                <details className="text-xs">
                  <summary className="rounded-sm py-1.5 hover:bg-raised/60">
                    <code className="font-medium">{name}</code>
                  </summary>
                  <div id={name} className="scroll-mt-16 space-y-2 pt-1 pb-4 @3xl:pl-4">
                    {typeof schema.description === 'string' && (
                      <p className="max-w-prose whitespace-pre-line text-ink-3">
                        <WithCode text={schema.description} />
                      </p>
                    )}
                    <SchemaFields schema={schema} label={name} />
                  </div>
                </details>
              </li>
            ))}
          </ul>
        </Section>
      </div>
    </div>
  );
}

function anchorOf(name: string): string {
  return name.toLowerCase();
}
