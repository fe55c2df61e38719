import type { AccessStage } from './access-stage';
import type { BusyAgent } from './busy-agent';

/** Of a form that every redaction knows. */
export const SECRET = `gh${'p_'}0123456789abcdefghijABCDEFGHIJ0123456789`;
/** Known by its name alone. */
export const PLACED = 'Zk4vq.Tr7wLx';

export const CANARY = /canary-[a-z]+-[a-z]\b/;

/** Gives each part of an agent a mark of its own and two secrets: `canary-words-a` in what agent A says. */
export async function plantCanaries(
  stage: Pick<AccessStage, 'ask'>,
  { agentId, sessionId, taskId }: BusyAgent,
): Promise<void> {
  const letter = agentId.slice(-1);
  const mark = (what: string) => `canary-${what}-${letter} ${SECRET} DB_PASS=${PLACED}`;
  const [messageId, toolCallId] = [`said-${letter}`, `call-${letter}`];
  const custom = (name: string, value: object) => ({ type: 'CUSTOM', name, value });
  const says = (session: string, id: string, what: string) =>
    [
      { type: 'TEXT_MESSAGE_START', messageId: id, role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta: mark(what) },
      { type: 'TEXT_MESSAGE_END', messageId: id },
    ].map((event) => ({ kind: 'event', sessionId: session, event }));
  const records = [
    ...says(sessionId, messageId, 'words'),
    ...says(`other-${letter}`, `other-said-${letter}`, 'elsewhere'),
    ...[
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: `canary-tool-${letter}`, parentMessageId: messageId },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify({ command: mark('arguments') }) },
      { type: 'TOOL_CALL_END', toolCallId },
      { type: 'TOOL_CALL_RESULT', messageId: `result-${letter}`, toolCallId, content: mark('result') },
      custom('task:output', { task_id: taskId, offset: 100, text: mark('output') }),
      custom('task:started', { task_id: `second-${letter}`, description: mark('task') }),
      custom('request:opened', {
        request_id: `asks-${letter}`,
        kind: 'permission',
        tool_name: 'Bash',
        input: { command: mark('input') },
      }),
    ].map((event) => ({ kind: 'event', sessionId, event })),
    { kind: 'log', log: { level: 'error', component: `canary-component-${letter}`, message: mark('line') } },
  ].map((record, at) => ({ ...record, agentId, seq: at + 1, occurredAt: 1_795_170_001_000 + at }));
  await stage.ask('/events', { method: 'POST', body: { producer: { id: `${agentId}/canaries`, epoch: 1 }, records } });
  await stage.ask(`/sessions/${sessionId}/arrangement`, { method: 'PUT', body: { name: mark('title') } });
}
