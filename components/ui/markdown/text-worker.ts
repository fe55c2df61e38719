import { runTextJob, type TextJob, type TextResult } from './text-jobs';

/** Each job has two. The first one tells the page that the worker is loaded and not just waiting for its turn. */
export type TextReply = 'started' | { result: TextResult<TextJob> };

declare const self: { onmessage: ((event: MessageEvent<TextJob>) => void) | null; postMessage(reply: TextReply): void };

self.onmessage = ({ data }) => {
  self.postMessage('started');
  self.postMessage({ result: runTextJob(data) });
};
