import { bearer, type Headers, type Sent } from './access-stage';
import type { LiveServer } from './live-server';

/** Asks the API of a live server as its owner, as `AccessStage.ask` does. @throws Error unless the answer is a success */
export async function askLive<Model>(
  server: Pick<LiveServer, 'url' | 'token'>,
  path: string,
  { method = 'GET', body, headers = {} }: Sent = {},
): Promise<Model> {
  const isRaw = body === undefined || body instanceof Uint8Array;
  const type: Headers = isRaw ? {} : { 'content-type': 'application/json' };
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers: { ...bearer(server.token), ...type, ...headers },
    body: isRaw ? (body as Uint8Array<ArrayBuffer> | undefined) : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return (await response.json()) as Model;
}
