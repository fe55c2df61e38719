// @vitest-environment happy-dom
import { afterEach, expect, test, vi } from 'vitest';
import { pageHeaders, pageTransport } from '@/components/live/api-fetch';
import { fetchJson } from '@/components/live/fetch-json';
import { readStream } from '@/components/live/read-stream';

afterEach(() => {
  pageTransport.fetch = null;
  vi.unstubAllGlobals();
});

const handlers = { active() {}, hello() {}, rows() {}, upToDate() {} };

test('a page with its own fetch uses nothing else', async () => {
  const asked: [string, RequestInit | undefined][] = [];
  vi.stubGlobal('fetch', () => {
    throw new Error('asked by the cookie');
  });
  pageTransport.fetch = async (input, init) => {
    asked.push([String(input), init]);
    return Response.json({});
  };
  await fetchJson('/sessions');
  await readStream({ topics: ['fleet'], after: '0', signal: new AbortController().signal }, handlers);
  expect(asked.map(([path]) => path)).toEqual(['/api/v1/sessions', '/api/v1/stream?topic=fleet&after=0']);
});

test('a page without one uses the signed-in person’s cookie', async () => {
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

test('requests count as use for a minute after an input', () => {
  vi.useFakeTimers();
  const said = () => pageHeaders()['x-interlude-page'];
  const send = (type: string, isTrusted: boolean) =>
    document.dispatchEvent(Object.defineProperty(new Event(type), 'isTrusted', { value: isTrusted }));
  for (const type of ['pointerdown', 'click', 'keydown', 'wheel']) {
    send(type, false);
    expect(said()).toBe('1');
    send(type, true);
    vi.advanceTimersByTime(59_000);
    expect(said()).toBe('used');
    vi.advanceTimersByTime(1_000);
    expect(said()).toBe('1');
  }
  vi.useRealTimers();
  // Ends the press: tests share the module that tracks presses.
  send('pointerup', true);
});
