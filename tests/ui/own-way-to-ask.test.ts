// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from 'vitest';
import { page } from '@/components/live/ask-server';
import { fetchJson } from '@/components/live/fetch-json';
import { readStream } from '@/components/live/read-stream';

afterEach(() => {
  page.way = null;
  vi.unstubAllGlobals();
});

const handlers = { heard() {}, hello() {}, rows() {}, upToDate() {} };

test('a page with a way of its own asks and listens by that alone', async () => {
  const asked: [string, RequestInit | undefined][] = [];
  vi.stubGlobal('fetch', () => {
    throw new Error('asked by the cookie');
  });
  page.way = async (input, init) => {
    asked.push([String(input), init]);
    return Response.json({});
  };
  await fetchJson('/sessions');
  await readStream({ topics: ['fleet'], after: '0', signal: new AbortController().signal }, handlers);
  expect(asked.map(([path]) => path)).toEqual(['/api/v1/sessions', '/api/v1/stream?topic=fleet&after=0']);
});

test('without one it asks as whoever has signed in', async () => {
  const asked: RequestInit[] = [];
  vi.stubGlobal('fetch', async (_input: string, init: RequestInit) => {
    asked.push(init);
    return Response.json({});
  });
  await fetchJson('/sessions');
  expect(asked).toMatchObject([
    {
      credentials: 'same-origin',
      cache: 'no-store',
      headers: { 'x-interlude-page': '1', 'x-interlude-principal': 'ada' },
    },
  ]);
});
