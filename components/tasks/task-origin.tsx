import { SessionLink } from '@/components/sessions/session-link';
import { Name } from '@/components/ui/name';
import type { Task } from '@/lib/protocol/read-models';

/** Who else has to do with the task: whose runner told how it ended, and which turn elsewhere was told of it. */
export function TaskOrigin({ task }: { task: Task }) {
  const { reportedBy, assignedBy, toldElsewhere, answeredInTurnId } = task;
  return (
    <>
      {reportedBy !== null && (
        <span>
          Reported by <SessionLink id={reportedBy} />
        </span>
      )}
      {assignedBy !== null && (
        <span>
          Assigned to this session by <Name text={assignedBy} />
        </span>
      )}
      {toldElsewhere !== null && answeredInTurnId === null && (
        <span>
          Told in <SessionLink id={toldElsewhere.sessionId} anchor={`turn-${toldElsewhere.turnId}`} />
        </span>
      )}
    </>
  );
}
