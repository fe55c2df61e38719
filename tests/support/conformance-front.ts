import { overHttp } from './over-http';

type Pass = (request: Request) => Promise<Response>;
/** What a broken server does with a request, and with what a right one would answer. */
export type Tamper = (request: Request, pass: Pass) => Promise<Response>;

/** A server of this process on a port of its own, under the name it is called by, right or broken. */
export function frontOf(
  handle: Pass,
  tamper: Tamper = (request, pass) => pass(request),
): Promise<{ url: string; close(): Promise<void> }> {
  return overHttp({ fetch: (request) => tamper(request, handle) });
}

/** The same answer with another JSON body, where it has one. */
export async function withBody(answer: Response, change: (body: Record<string, unknown>) => object): Promise<Response> {
  if (!/json/.test(answer.headers.get('content-type') ?? '')) return answer;
  const headers = new Headers(answer.headers);
  headers.delete('content-length');
  return new Response(JSON.stringify(change(await answer.json())), { status: answer.status, headers });
}
