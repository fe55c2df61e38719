import { ProcessLock, ProcessLockedError } from '@/lib/runner/process-lock';

/**
 * One process per outbox: two would hand out the same `seq`. The lock stands on a file beside the outbox, which itself
 * stays readable for others.
 *
 * @throws OutboxLockedError when another outbox, of this process or another, has the file open.
 */
export async function lockOutbox(outboxFile: string): Promise<ProcessLock> {
  try {
    return await ProcessLock.take(`${outboxFile}.lock`);
  } catch (error) {
    throw error instanceof ProcessLockedError ? new OutboxLockedError(outboxFile, error.pid) : error;
  }
}

export class OutboxLockedError extends Error {
  readonly pid: number;

  constructor(file: string, pid: number) {
    super(`the outbox ${file} is in use by process ${pid || 'unknown'}; stop that one first`);
    this.name = 'OutboxLockedError';
    this.pid = pid;
  }
}
