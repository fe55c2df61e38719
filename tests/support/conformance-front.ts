import { overHttp } from './over-http';

type Pass = (request: Request) => Promise<Response>;
/** Changes a request, or the answer of a correct server. */
export type Tamper = (request: Request, pass: Pass) => Promise<Response>;

/** Serves a handler of this process on its own port. */
export function frontOf(
  handle: Pass,
  tamper: Tamper = (request, pass) => pass(request),
): Promise<{ url: string; close(): Promise<void> }> {
  return overHttp({ fetch: (request) => tamper(request, handle) });
}

/** Replaces the JSON body of an answer, if it has one. */
export async function withBody(answer: Response, change: (body: Record<string, unknown>) => object): Promise<Response> {
  if (!/json/.test(answer.headers.get('content-type') ?? '')) return answer;
  const headers = new Headers(answer.headers);
  headers.delete('content-length');
  return new Response(JSON.stringify(change(await answer.json())), { status: answer.status, headers });
}
