const ids = new WeakMap<Request, string>();

/**
 * What a request is called in the log: as a proxy called it (`x-request-id`), by its trace (`traceparent`), or by a name of
 * our own. The same whenever it is asked.
 */
export function requestIdOf(request: Request): string {
  const known = ids.get(request);
  if (known !== undefined) return known;
  const { headers } = request;
  const given = headers.get('x-request-id') ?? '';
  const [, traceId] = /^00-([0-9a-f]{32})-/.exec(headers.get('traceparent') ?? '') ?? [];
  const id = /^[\w.:-]{1,128}$/.test(given) ? given : (traceId ?? crypto.randomUUID());
  ids.set(request, id);
  return id;
}
