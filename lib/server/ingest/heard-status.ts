import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { ProcessExit } from '@interlude/protocol/agent-state';
import { readAgentStatus } from '@interlude/protocol/agent-status';
import type { StatusRecord } from '@interlude/protocol/envelope';
import { CUSTOM } from '@interlude/protocol/event-fields';
import { compact } from '@interlude/protocol/fields';
import { type StatusTold, statusTold } from '@interlude/protocol/projections/status-told';

const READ = new WeakMap<StatusRecord, StatusTold | null>();

/** The session's state according to a status record. Parses each record once, though two callers ask. */
export function heardStatus(record: StatusRecord): StatusTold | null {
  const known = READ.get(record);
  if (known !== undefined) return known;
  const told = statusTold(readAgentStatus(record.status), record.occurredAt);
  READ.set(record, told);
  return told;
}

/** The end of a session whose status record says that its process has ended: the same as its agent's `session:ended`. */
export function endOf({ code, signal }: ProcessExit): AgUiEvent {
  const reason = signal === null ? {} : { reason: `killed by ${signal}` };
  const value = compact({ exitCode: code ?? undefined, signal: signal ?? undefined, ...reason });
  return { type: 'CUSTOM', name: CUSTOM.sessionEnded, value, metadata: { interlude: { presumed: true } } };
}
