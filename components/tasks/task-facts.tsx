import type { Task } from '@interlude/protocol/read-models';
import { SessionLink } from '@/components/sessions/session-link';
import { CopyButton } from '@/components/ui/copy-button';
import { formatCount, plural } from '@/components/ui/duration';
import { Name } from '@/components/ui/name';
import { nameText } from '@/components/ui/verbatim';

/** The small facts of a task: what it used, what it does just now, where its output is. */
export function TaskFacts({ task }: { task: Task }) {
  const { usage, outputFile } = task;
  return (
    <>
      {task.status === 'running' && task.lastToolName !== null && (
        <span>
          now in <Name text={task.lastToolName} layout="tool" />
        </span>
      )}
      {usage?.toolUses != null && usage.toolUses > 0 && <span>{plural(usage.toolUses, 'tool call')}</span>}
      {usage?.totalTokens != null && usage.totalTokens > 0 && <span>{formatCount(usage.totalTokens)} tokens</span>}
      {outputFile !== null && (
        <span className="flex min-w-0 max-w-full items-center gap-1.5">
          {/* The end of a path tells; dir=rtl would clip the front but also turn its slashes around. */}
          <span className="truncate font-mono" title={nameText(outputFile)}>
            <Name text={shortPath(outputFile)} />
          </span>
          <CopyButton label="Copy output path" text={() => outputFile} />
        </span>
      )}
    </>
  );
}

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

function shortPath(path: string): string {
  const parts = path.split('/');
  return parts.length > 3 ? `…/${parts.slice(-2).join('/')}` : path;
}
