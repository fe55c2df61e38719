import { AppError, withErrors } from '@interlude/protocol/errors';
import { afterEach, expect, test, vi } from 'vitest';
import { ReadQueue } from '@/db/reader';

afterEach(() => {
  vi.restoreAllMocks();
});

test('withErrors logs nothing when a client disconnects while its read waits', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const reads = new ReadQueue({ concurrency: 1 });
  let end = () => {};
  void reads.run('a', () => new Promise<void>((resolve) => (end = resolve)));
  const client = new AbortController();
  const response = withErrors(({ signal }) => reads.run('b', async () => Response.json({}), { signal }))(
    new Request('http://127.0.0.1/', { signal: client.signal }),
  );
  client.abort(new Error('the connection was reset'));
  end();
  expect((await response).ok).toBe(false);
  expect(logged).not.toHaveBeenCalled();
});

test('withErrors logs a failure after the client disconnected', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const fail = withErrors(async (_request: Request) => {
    throw new Error('a fault');
  });
  expect((await fail(new Request('http://127.0.0.1/', { signal: AbortSignal.abort() }))).status).toBe(500);
  expect(logged).toHaveBeenCalledOnce();
});

test('instanceof AppError recognizes errors of another copy of the module', async () => {
  vi.resetModules();
  const copy = await import('@interlude/protocol/errors');
  expect(copy.AppError).not.toBe(AppError);
  expect(new AppError('unavailable', 'Away.') instanceof copy.AppError).toBe(true);
  expect(new Error('Away.') instanceof copy.AppError).toBe(false);
  expect(copy.toResponse(new AppError('unavailable', 'Away.')).status).toBe(503);
});
