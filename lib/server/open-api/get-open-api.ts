import type { OpenApiDocument } from '@interlude/protocol/open-api';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { DescribedRoute } from './open-api-document';

/**
 * `GET /openapi.json`: what the API understands. It tells nothing of what there is, so that anybody with a credential
 * may read it.
 */
export async function getOpenApi(routes: readonly DescribedRoute[]): Promise<Response> {
  return markRedacted(Response.json(await describeApi(routes), { headers: { 'cache-control': 'no-store' } }));
}

const described = new WeakMap<readonly DescribedRoute[], OpenApiDocument>();

/** It is made once: nothing in it changes. */
export async function describeApi(routes: readonly DescribedRoute[]): Promise<OpenApiDocument> {
  const known = described.get(routes);
  if (known !== undefined) return known;
  // it is long, and most servers are never asked for it
  const { openApiDocument } = await import('./open-api-document');
  const made = openApiDocument(routes);
  described.set(routes, made);
  return made;
}
