import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { OutboxListeners, RunnerOutbox } from '@/lib/runner/host/runner-host';
import { Outbox } from '@/lib/runner/outbox/outbox';

/** @throws OutboxLockedError when another demo runs the agent */
export async function openDemoOutbox(
  folder: string,
  agentId: string,
  listeners: OutboxListeners,
): Promise<RunnerOutbox> {
  const outbox = await Outbox.open(join(folder, `demo-${agentId}.db`), {
    producerId: `demo-${agentId}/${randomBytes(6).toString('hex')}`,
    agentId,
    ...listeners,
  });
  return { outbox, agentId };
}
