import type { OutboxListeners, RunnerOutbox } from '@/lib/runner/host/runner-host';
import { Outbox } from '@/lib/runner/outbox/outbox';

/** The outbox of a runner, in one file. */
export async function outboxAt(file: string, agentId: string, listeners: OutboxListeners): Promise<RunnerOutbox> {
  return { outbox: await Outbox.open(file, { producerId: `${agentId}/p`, agentId, ...listeners }), agentId };
}
