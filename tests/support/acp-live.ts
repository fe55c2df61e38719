import type { AgUiEvent } from '@interlude/protocol/ag-ui';
import type { CommandBodies } from '@interlude/protocol/commands';
import { fieldsOf } from '@interlude/protocol/fields';
import { requestDigest } from '@interlude/protocol/request-digest';
import { InFlightMessages } from '@interlude/runner/host/message-delivery';
import { AcpSource, type AcpSourceOptions } from '@interlude/runner/sources/acp/acp-source';
import { readSessions } from '@interlude/runner/sources/acp/session-setup';
import { expect, onTestFinished } from 'vitest';
import { type AcpAgentOptions, PlayedAcpAgent } from './acp-agent';
import { MemorySurroundings } from './source-surroundings';

export const ID = 's';

export async function openAcpSource(
  agent: PlayedAcpAgent,
  around: MemorySurroundings,
  options: Partial<AcpSourceOptions> = {},
) {
  const [known] = await readSessions(around as never);
  return new AcpSource({
    context: around,
    memory: known ?? { sessionId: ID, nativeId: null, note: null, cwd: process.cwd(), pid: null, running: false },
    inFlight: await InFlightMessages.recall(around, ID),
    command: agent.command,
    env: { PATH: process.env.PATH },
    answerWithinMs: 60_000,
    ...options,
  });
}

/** A source that runs, with an agent that the test plays. */
export async function live(agentOptions: AcpAgentOptions = {}, options: Partial<AcpSourceOptions> = {}) {
  const agent = await PlayedAcpAgent.open(agentOptions);
  const around = new MemorySurroundings();
  const lines: string[] = [];
  let gaveUp: string | null = null;
  Object.assign(around, {
    log: (level: string, message: string) => lines.push(`${level} ${message}`),
    failRunner: (why: string) => {
      gaveUp = why;
    },
  });
  const source = await openAcpSource(agent, around, options);
  await source.start();
  onTestFinished(() => source.close(0, 'the test is over'));
  const common = { sessionId: ID, createdAt: 1, expiresAt: 2 } as const;
  const from = { kind: 'person', id: 'operator' } as const;
  return {
    agent,
    around,
    source,
    lines,
    gaveUp: () => gaveUp,
    turn: () => around.openWork(ID).turn,
    say: (messageId: string, text: string, again = false) =>
      source.deliver({ ...common, id: messageId, type: 'message', body: { messageId, text, from } }, again),
    interrupt: (body: CommandBodies['interrupt'] = {}) =>
      source.interrupt({ ...common, id: 'c', type: 'interrupt', body }),
    decide: (request: Record<string, unknown>, said: object) => {
      const { request_id: requestId, tool_name: tool, input, options: offered } = request as never;
      const digest = requestDigest({ sessionId: ID, requestId, tool, input, options: offered, position: '7' });
      const body = { requestId, digest, openedPosition: '7', behavior: 'allow' as const, ...said };
      return source.answer({ ...common, id: 'd', type: 'permission.decision', body });
    },
    until: (look: () => unknown) => expect.poll(look, { interval: 5 }),
  };
}

export const custom = (events: readonly AgUiEvent[], name: string) =>
  events.filter((event) => event.name === name).map((event) => fieldsOf(event.value));
export const turnEnds = (events: readonly AgUiEvent[]) =>
  events
    .filter(({ type }) => type === 'RUN_FINISHED' || type === 'RUN_ERROR')
    .map(({ type, outcome, metadata }) => [
      type === 'RUN_ERROR' ? 'failed' : fieldsOf(outcome).type,
      metadata?.interlude?.userMessageIds,
    ]);
export const texts = (events: readonly AgUiEvent[]) =>
  events.filter(({ type }) => type === 'TEXT_MESSAGE_CONTENT').map(({ delta }) => delta);
