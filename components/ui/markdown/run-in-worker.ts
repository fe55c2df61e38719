import { whenIdle } from '../when-idle';
import type { TextJob, TextResult } from './text-jobs';
import type { TextReply } from './text-worker';

/** A job that takes longer is abandoned, and its text is shown as written. Loading the worker doesn't count. */
const MAX_MS = 3_000;

interface Waiting {
  job: TextJob;
  settle: (result: unknown) => void;
}

const queue: Waiting[] = [];
let worker: Worker | null = null;
let isBusy = false;

/**
 * Parses or highlights a text off the main thread.
 *
 * Ordering: one job at a time, the newest first.
 * Failure: resolves to null if the job takes too long or the worker can't be loaded. A browser without workers runs it
 * on the main thread.
 */
export function runInWorker<Job extends TextJob>(job: Job): Promise<TextResult<Job> | null> {
  return new Promise((resolve) => {
    queue.push({ job, settle: (result) => resolve(result as TextResult<Job> | null) });
    next();
  });
}

function next(): void {
  const waiting = isBusy ? undefined : queue.pop();
  if (waiting === undefined) return;
  isBusy = true;
  const settle = (result: unknown) => {
    isBusy = false;
    waiting.settle(result);
    next();
  };
  if (typeof Worker === 'undefined') runOnPage(waiting.job, settle);
  else post(waiting.job, settle);
}

function post(job: TextJob, settle: (result: unknown) => void): void {
  worker ??= new Worker(new URL('./text-worker.ts', import.meta.url), { type: 'module' });
  const current = worker;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const giveUp = () => {
    clearTimeout(timer);
    current.terminate();
    worker = null;
    settle(null);
  };
  current.onerror = giveUp;
  current.onmessage = ({ data }: MessageEvent<TextReply>) => {
    clearTimeout(timer);
    if (data === 'started') timer = setTimeout(giveUp, MAX_MS);
    else settle(data.result);
  };
  current.postMessage(job);
}

function runOnPage(job: TextJob, settle: (result: unknown) => void): void {
  import('./text-jobs').then(
    ({ runTextJob }) => whenIdle(() => settle(runTextJob(job))),
    () => settle(null),
  );
}
