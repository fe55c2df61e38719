import type { OpenApiDocument } from '@interlude/protocol/open-api';
import { markRedacted } from '@interlude/protocol/redaction/redact-model';
import type { DescribedRoute } from './open-api-document';

/** `GET /openapi.json`. The document contains no data of the fleet, so every credential may read it. */
export async function getOpenApi(routes: readonly DescribedRoute[]): Promise<Response> {
  return markRedacted(Response.json(await describeApi(routes), { headers: { 'cache-control': 'no-store' } }));
}

const described = new WeakMap<readonly DescribedRoute[], OpenApiDocument>();

/** The document, built once per route table. */
export async function describeApi(routes: readonly DescribedRoute[]): Promise<OpenApiDocument> {
  const known = described.get(routes);
  if (known !== undefined) return known;
  // loaded on demand, because few servers ever serve the document
  const { openApiDocument } = await import('./open-api-document');
  const document = openApiDocument(routes);
  described.set(routes, document);
  return document;
}
