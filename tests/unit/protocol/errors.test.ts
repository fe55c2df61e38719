import { AppError, withErrors } from '@interlude/protocol/errors';
import { afterEach, expect, test, vi } from 'vitest';
import { ReadQueue } from '@/db/reader';

afterEach(() => {
  vi.restoreAllMocks();
});

test('a client that hangs up while its read waits in line is no error of the server’s', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const reads = new ReadQueue({ atOnce: 1 });
  let end = () => {};
  void reads.run('a', () => new Promise<void>((resolve) => (end = resolve)));
  const client = new AbortController();
  const answer = withErrors(({ signal }) => reads.run('b', async () => Response.json({}), { signal }))(
    new Request('http://127.0.0.1/', { signal: client.signal }),
  );
  client.abort(new Error('the connection was reset'));
  end();
  expect((await answer).ok).toBe(false);
  expect(logged).not.toHaveBeenCalled();
});

test('what fails by itself is logged, though the client has hung up', async () => {
  const logged = vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const fail = withErrors(async (_request: Request) => {
    throw new Error('a fault');
  });
  expect((await fail(new Request('http://127.0.0.1/', { signal: AbortSignal.abort() }))).status).toBe(500);
  expect(logged).toHaveBeenCalledOnce();
});

test('another copy of this file knows an error of this one', async () => {
  vi.resetModules();
  const copy = await import('@interlude/protocol/errors');
  expect(copy.AppError).not.toBe(AppError);
  expect(new AppError('unavailable', 'Away.') instanceof copy.AppError).toBe(true);
  expect(new Error('Away.') instanceof copy.AppError).toBe(false);
  expect(copy.toResponse(new AppError('unavailable', 'Away.')).status).toBe(503);
});
