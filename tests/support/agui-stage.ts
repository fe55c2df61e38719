import { requestDigest } from '@interlude/protocol/request-digest';
import { AgUiSource, type AgUiSourceOptions } from '@interlude/runner/sources/agui/agui-source';
import { expect, onTestFinished } from 'vitest';
import { AmbientServer } from './ambient-server';
import { toldInLines } from './recorded';
import { MemorySurroundings } from './source-surroundings';

export const SESSION = 's';

/** A source in front of a server; what it told, in lines, and what it logged. */
export async function listening(options: Partial<AgUiSourceOptions> = {}, ambient?: AmbientServer) {
  const server = ambient ?? (await AmbientServer.start());
  const around = new MemorySurroundings();
  const { sessionId = SESSION } = options;
  const source = new AgUiSource({
    context: around,
    url: server.url,
    sessionId,
    history: 'all',
    headers: {},
    random: () => 0,
    waits: { longestMs: 20, missingMs: 50, beginMs: 50, trailMs: 50 },
    ...options,
  });
  await source.start();
  onTestFinished(() => source.close(0, 'the test is over'));
  let messages = 0;
  return {
    server,
    around,
    source,
    turn: () => around.openWork(sessionId).turn,
    tasks: () => around.openWork(sessionId).tasks.map(({ id }) => id),
    requests: () => around.openWork(sessionId).requests,
    trouble: () => source.sessions[0]?.trouble,
    lines: () => toldInLines(around.told).trimEnd().split('\n'),
    /** What the agent said, in the turns in which it did. */
    turns: () => turnsOf(around),
    say(text: string, again = false) {
      const messageId = again ? `m${messages}` : `m${++messages}`;
      return source.deliver(message(messageId, text, sessionId), again);
    },
    interrupt: (turnId?: string) =>
      source.interrupt({ ...about(sessionId, 'interrupt'), body: turnId === undefined ? {} : { turnId } }),
    stop: (taskId: string) => source.stop({ ...about(sessionId, 'task.stop'), body: { taskId } }),
    allow: (requestId: string, isAllowed = true) =>
      source.answer({
        ...about(sessionId, 'permission.decision'),
        body: { ...answered(around, sessionId, requestId), behavior: isAllowed ? 'allow' : 'deny' },
      }),
    reply: (requestId: string, answers: Record<string, string>) =>
      source.answer({
        ...about(sessionId, 'question.answer'),
        body: { ...answered(around, sessionId, requestId), answers },
      }),
  };
}

export const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });

export function message(messageId: string, text: string, sessionId = SESSION) {
  return {
    ...about(sessionId, 'message'),
    id: messageId,
    body: { messageId, text, from: { kind: 'person', id: 'operator' } },
  } as const;
}

function about<Type extends string>(sessionId: string, type: Type) {
  return { id: 'c', type, sessionId, createdAt: 1, expiresAt: 2 };
}

/** What a person saw who answers. */
function answered(around: MemorySurroundings, sessionId: string, requestId: string) {
  const opened = around.events.findLast(
    ({ name, value }) => name === 'request:opened' && (value as { request_id: string }).request_id === requestId,
  );
  const { tool_name: tool = null, input = null } = (opened?.value ?? {}) as { tool_name?: string; input?: unknown };
  const openedPosition = '7';
  return {
    requestId,
    openedPosition,
    digest: requestDigest({ sessionId, requestId, tool, input, position: openedPosition }),
  };
}

export interface SeenTurn {
  kind: string;
  trigger?: unknown;
  asked: string[];
  said: string[];
  end: string | null;
}

function turnsOf(around: MemorySurroundings): SeenTurn[] {
  const turns: SeenTurn[] = [];
  const outside: SeenTurn = { kind: 'none', asked: [], said: [], end: null };
  let open: SeenTurn | null = null;
  for (const { type, metadata, delta, outcome } of around.events) {
    const { turn, trigger, userMessageIds = [] } = metadata?.interlude ?? {};
    if (type === 'RUN_STARTED') {
      open = { kind: turn ?? '', ...(trigger ? { trigger } : {}), asked: userMessageIds, said: [], end: null };
      turns.push(open);
    } else if (type === 'RUN_FINISHED' || type === 'RUN_ERROR') {
      if (open !== null) open.end = type === 'RUN_ERROR' ? 'failed' : (outcome as { type: string }).type;
      open = null;
    } else if (type === 'TEXT_MESSAGE_CONTENT') (open ?? outside).said.push(String(delta));
  }
  return outside.said.length > 0 ? [...turns, outside] : turns;
}
