/**
 * `fetch` whose response's body fails once the signal aborts.
 *
 * With Node 20's own `fetch`, a compressed body that is aborted while it arrives may never settle.
 */
export async function abortableFetch(input: string | Request, init: RequestInit): Promise<Response> {
  const response = await fetch(input, init);
  const { body, status, statusText, headers, url } = response;
  if (body === null || !init.signal) return response;
  const settling = body.pipeThrough(new TransformStream(), { signal: init.signal });
  return Object.defineProperty(new Response(settling, { status, statusText, headers }), 'url', { value: url });
}
