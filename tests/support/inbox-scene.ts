import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import { EventWriter } from './event-writer';
import { userTurn } from './turn-events';
import { requestOpened } from './wire-runner';

export const starts = (runId: string): AgUiEvent => ({ type: 'RUN_STARTED', threadId: 's', runId });
export const fails = (runId: string, message: string): AgUiEvent[] => [
  starts(runId),
  { type: 'RUN_ERROR', threadId: 's', runId, message },
];
export const asks = (id: string, title: string): AgUiEvent =>
  requestOpened({ request_id: id, kind: 'permission', tool_name: 'Bash', title, input: { command: 'ls' } });

/** A request in the session `asks` and a failure in the session `fails`. @returns their agent `builder` */
export async function writeInbox(server: { url: string; token: string }): Promise<EventWriter> {
  const agent = new EventWriter(server, 'builder');
  await agent.write('asks', [
    ...userTurn('r1', 'List the **files**', 'Yes.'),
    starts('r2'),
    asks('q1', 'List the files'),
  ]);
  await agent.staysInTouch();
  await agent.write('fails', [...userTurn('r1', 'Mend the login test', 'Trying.'), ...fails('r2', 'No credit left')]);
  return agent;
}
