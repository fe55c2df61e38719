import { afterEach, expect, it, vi } from 'vitest';
import { fetchJson, postJson, putJson } from '@/components/live/fetch-json';
import { freezeClocks } from '@/components/ui/clock';

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  freezeClocks(null);
});

/** A server that never responds. @returns the timeout of each request, which expires immediately */
function silentServer(): number[] {
  const limits: number[] = [];
  vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => {
    limits.push(ms);
    const late = new AbortController();
    queueMicrotask(() => late.abort(new DOMException('late', 'TimeoutError')));
    return late.signal;
  });
  vi.stubGlobal('fetch', (_url: string, { signal }: { signal: AbortSignal }) => {
    return new Promise((_answer, fail) => {
      signal.addEventListener('abort', () => fail(signal.reason));
    });
  });
  return limits;
}

it('explains an unreachable server, whatever the browser’s error says', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  for (const answer of [fetchJson('/sessions'), postJson('/sessions/s/messages', {})]) {
    await expect(answer).rejects.toThrow(TypeError);
    await expect(answer).rejects.toThrow('The server can’t be reached. Check that it is running and try again.');
  }
});

it('keeps the error of an aborted request', async () => {
  const aborted = new DOMException('aborted', 'AbortError');
  vi.stubGlobal('fetch', () => Promise.reject(aborted));
  await expect(fetchJson('/sessions')).rejects.toBe(aborted);
});

it('uses the server’s own message', async () => {
  const body = { error: { code: 'unavailable', message: 'The database does not answer. Try again in a moment.' } };
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json(body, { status: 503 })));
  await expect(fetchJson('/sessions')).rejects.toThrow('The database does not answer. Try again in a moment.');
});

it('gives up on a silent server after a while', async () => {
  const limits = silentServer();
  for (const answer of [fetchJson('/a', new AbortController().signal), postJson('/b', {}), putJson('/c', {})]) {
    await expect(answer).rejects.toThrow('The server can’t be reached. Check that it is running and try again.');
  }
  expect(limits).toEqual([30_000, 15_000, 15_000]);
});

it('gives up sooner while the connection is stale', async () => {
  const limits = silentServer();
  freezeClocks(1);
  for (const answer of [fetchJson('/a'), postJson('/b', {})]) await expect(answer).rejects.toThrow(TypeError);
  expect(limits).toEqual([5_000, 5_000]);
});
