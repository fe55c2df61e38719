import type { ServerResponse } from 'node:http';
import type { Fields } from '@interlude/protocol/fields';

export interface FakeAnswer {
  status: number;
  body: Fields;
}

export function refusal(status: number, code: string, details: Fields): FakeAnswer {
  return { status, body: { error: { code, message: `This is a test: ${code}.`, ...details } } };
}

export function answer(
  response: ServerResponse,
  { status, body }: FakeAnswer,
  headers: Record<string, string> = {},
): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store', ...headers });
  response.end(JSON.stringify(body));
}
