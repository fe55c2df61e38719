import { type StatusTold, statusTold } from '@/lib/projections/status-told';
import { readAgentStatus } from '@/lib/protocol/agent-status';
import type { StatusRecord } from '@/lib/protocol/envelope';

const READ = new WeakMap<StatusRecord, StatusTold | null>();

/** What a status record tells of its session's state. Each is read once, though it is looked at twice. */
export function heardStatus(record: StatusRecord): StatusTold | null {
  const known = READ.get(record);
  if (known !== undefined) return known;
  const told = statusTold(readAgentStatus(record.status), record.occurredAt);
  READ.set(record, told);
  return told;
}
