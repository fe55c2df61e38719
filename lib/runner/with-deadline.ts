/**
 * Runs `work` with a signal that fires after `ms`, or with `signal`, whichever comes first.
 *
 * Not `AbortSignal.any([signal, AbortSignal.timeout(ms)])`: in Node 20 nothing but that composite refers to the timeout,
 * and it does so weakly. The garbage collector takes the timeout away before it fires, and a request to a server that
 * accepts and never answers waits for ever. A timer is held by the event loop.
 *
 * @throws what `work` throws; after `ms` that is a `TimeoutError` where it passes the signal's reason on, as fetch does
 */
export async function withDeadline<Result>(
  ms: number,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const controller = new AbortController();
  const stop = () => controller.abort(signal.reason);
  const timer = setTimeout(() => controller.abort(new DOMException('no answer in time', 'TimeoutError')), ms);
  signal.addEventListener('abort', stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await work(controller.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
