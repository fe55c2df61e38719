import { ClientParts } from '@/lib/server/agui/client-parts';
import { RunProjector, type RunProjectorOptions } from '@/lib/server/agui/run-projector';
import { TaskActivities } from '@/lib/server/agui/task-activity';
import { WellFormedStream } from '@/lib/server/agui/well-formed-stream';

/** A projector for the client run `asked`, which sent the message `u1`. */
export function projectAskedRun(options: Partial<RunProjectorOptions>) {
  const parts = new ClientParts();
  const stream = new WellFormedStream({ threadId: 't', dialect: '1.0', parts });
  const tasks = new TaskActivities({ sessionId: 's', agentId: 'a' }, []);
  const projector = new RunProjector({
    stream,
    parts,
    tasks,
    runId: 'asked',
    messageIds: ['u1'],
    answeredIn: null,
    answersNext: false,
    follows: 'no',
    openTurnId: null,
    pending: [],
    answered: [],
    asOf: '0',
    knownUpTo: '0',
    isTurnless: false,
    isAway: false,
    notices: [],
    ...options,
  });
  return { projector, stream, parts, tasks };
}
