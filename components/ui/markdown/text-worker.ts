import { runTextJob, type TextJob, type TextResult } from './text-jobs';

/** A worker sends `started` when it begins a job, so that the time limit excludes loading, and then the result. */
export type TextReply = 'started' | { result: TextResult<TextJob> };

declare const self: { onmessage: ((event: MessageEvent<TextJob>) => void) | null; postMessage(reply: TextReply): void };

self.onmessage = ({ data }) => {
  self.postMessage('started');
  self.postMessage({ result: runTextJob(data) });
};
