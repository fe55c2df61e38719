import { afterEach, expect, it, vi } from 'vitest';
import { fetchJson, postJson } from '@/components/live/fetch-json';

afterEach(() => void vi.unstubAllGlobals());

it('a server that can’t be reached is told in words that say what to do, whatever the browser calls it', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  for (const answer of [fetchJson('/sessions'), postJson('/sessions/s/messages', {})]) {
    await expect(answer).rejects.toThrow(TypeError);
    await expect(answer).rejects.toThrow('The server can’t be reached. See that it runs and try again.');
  }
});

it('what was given up stays what it is', async () => {
  const aborted = new DOMException('aborted', 'AbortError');
  vi.stubGlobal('fetch', () => Promise.reject(aborted));
  await expect(fetchJson('/sessions')).rejects.toBe(aborted);
});

it('an answer that says why is told in its own words', async () => {
  const body = { error: { code: 'unavailable', message: 'The database does not answer. Try again in a moment.' } };
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json(body, { status: 503 })));
  await expect(fetchJson('/sessions')).rejects.toThrow('The database does not answer. Try again in a moment.');
});
