import { runTextJob, type TextJob } from './text-jobs';

declare const self: { onmessage: ((event: MessageEvent<TextJob>) => void) | null; postMessage(result: unknown): void };

self.onmessage = ({ data }) => self.postMessage(runTextJob(data));
