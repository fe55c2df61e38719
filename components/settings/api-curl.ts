import type { JsonSchema, Operation } from '@interlude/protocol/open-api';

/** A curl command for a shell in which `INTERLUDE_URL` and `INTERLUDE_TOKEN` are set. */
export function curlOf(method: string, path: string, operation: Operation): string {
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
