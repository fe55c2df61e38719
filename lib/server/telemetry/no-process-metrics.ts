import type { CountProcess } from './metrics';

/** Without Node a process doesn't outlive its requests, and its counters mean nothing. */
export const processMetrics: CountProcess = () => null;
